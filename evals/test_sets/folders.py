"""Reading test sets: folders in BEIR format, folders of files with judged pages, data sets of Hugging Face and
ir_datasets that are on this machine, or the shipped sample.
"""

from __future__ import annotations

import csv
import json
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn, TypeVar, cast

from evals.test_set import (
    MAX_GRADE,
    MAX_IMPORT_CHARS,
    MIN_GRADE,
    FolderCorpus,
    Judgment,
    Question,
    TestSet,
    best_span_grades,
    read_number,
    read_plain_or_gzip,
    read_question,
)
from workbench.errors import ConfigurationError, InvalidInput, WorkbenchError, list_choices
from workbench.ingestion.incoming import IngestItem, list_files
from workbench.types import JsonObject, JsonValue

# JSON Lines files


_Value = TypeVar("_Value")
UNDECODABLE = re.compile("[\udc80-\udcff]")


def read_json_lines(path: Path, parse: Callable[[int, JsonObject], _Value], problems: list[str]) -> list[_Value]:
    """Call ``parse`` with (line number from 1, object) for every non-empty line, and return its results.

    A line without a valid value is left out and added to ``problems``.

    Raises:
        InvalidInput: The file is unreadable, or all of its lines are.
    """
    values: list[_Value] = []
    broken: list[str] = []
    for number, line in enumerate(read_text(path, most=None).split("\n"), start=1):
        try:
            if line.strip():
                values.append(parse(number, _parse_row(path, number, check_line(path, number, line))))
        except InvalidInput as error:
            broken.append(str(error))
    if broken and not values:
        raise InvalidInput(broken[0])
    problems += broken
    return values


def _parse_row(path: Path, number: int, line: str) -> JsonObject:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"{path.name}, line {number} is not JSON ({error}); correct the line.") from None
    if not isinstance(row, dict):
        raise InvalidInput(f"{path.name}, line {number} is not a JSON object; correct the line.")
    return row


def read_text(path: Path, most: int | None = MAX_IMPORT_CHARS) -> str:
    """Return a test set's file as text; see ``check_line`` for bytes that are not UTF-8. Raises InvalidInput."""
    try:
        return read_plain_or_gzip(path, "surrogateescape", most)
    except FileNotFoundError:
        raise InvalidInput(f"The folder {path.resolve().parent.name!r} has no {path.name}; add it.") from None
    except OSError as error:
        raise InvalidInput(f"Failed to open {path.name} ({error.strerror or error}); check the file.") from None


def check_line(path: Path, number: int, line: str) -> str:
    """Return a line of ``read_text``. Raises InvalidInput if it is not UTF-8."""
    if UNDECODABLE.search(line):
        raise InvalidInput(f"{path.name}, line {number} is not UTF-8 text; convert the line.")
    return line


def read_id(path: Path, number: int, row: JsonObject) -> str:
    """Return a line's ``_id`` or ``id``, under any of its names. Raises InvalidInput if there is none."""
    if key := clean_id(str(_pick(row, "id"))):
        return key
    raise InvalidInput(f"{path.name}, line {number} has no '_id' or 'id'; add one.")


def clean_id(text: str) -> str:
    """Return an id as it is stored: stripped, and without NUL, which Postgres cannot store."""
    return text.replace("\x00", "").strip()


# Folders with judged pages

QUESTIONS_FILE = "questions.jsonl"
KNOWN_FIELDS = ("id", "_id", "text", "answer", "document", "pages", "evidence")


def read_page_folder(folder: Path) -> TestSet:
    """Return the folder's questions with their relevant pages.

    A document is named by its path below the folder, or by its file name if that is unique. A line without text,
    document or pages is left out and named in the test set's problems.

    Raises:
        InvalidInput: None of the lines can be read.
    """
    documents = list_page_documents(folder)
    keys: dict[str, list[str]] = {}
    for item in documents:
        for name in {item.key, item.name}:
            keys.setdefault(name, []).append(item.key)
    for item in list_files([folder]).items:
        keys.setdefault(item.key, [item.name] if item.name in keys else [])
    questions: dict[str, Question] = {}
    judgments: list[Judgment] = []
    problems: list[str] = []

    def parse(number: int, row: JsonObject) -> None:
        question_id, place = read_id(folder / QUESTIONS_FILE, number, row), f"{QUESTIONS_FILE}, line {number}"
        text, document, pages = str(row.get("text") or "").strip(), str(row.get("document") or ""), _parse_pages(row)
        if not text or not pages or question_id in questions:
            raise InvalidInput(
                f"{place}: a question needs a unique id, a text, and pages as a list of numbers from 1; "
                "correct the line."
            )
        found = [document] if document in keys and document in keys[document] else keys.get(document, [])
        if len(found) > 1:
            raise InvalidInput(f"{place}: {document!r} is in several folders; write its path: {list_choices(found)}.")
        if not found:
            paths = list_choices(sorted(item.key for item in documents))
            raise InvalidInput(f"{place}: there is no document {document!r} below the folder; it has {paths}.")
        metadata = {name: value for name, value in row.items() if name not in KNOWN_FIELDS}
        own: JsonObject = {"text": text, "reference_answer": row.get("answer"), "metadata": metadata}
        questions[question_id] = make_question(place, question_id, own)
        judgments.append(Judgment(question_id, found[0], 2, pages=pages))

    read_json_lines(folder / QUESTIONS_FILE, parse, problems)
    if not questions:
        raise InvalidInput(f"{QUESTIONS_FILE} of {folder.name!r} is empty; each of its lines is one question.")
    corpus = FolderCorpus(lambda: documents)
    name = folder.resolve().name
    return TestSet(name, tuple(questions.values()), tuple(judgments), corpus, read_problems=tuple(problems))


def list_page_documents(folder: Path) -> list[IngestItem]:
    """Return the readable files below the folder, each under its name, or its path if several share the name."""
    items = list_files([folder]).items
    own = [item for item in items if item.name != QUESTIONS_FILE and item.name != "SOURCE.md"]
    times = Counter(item.name for item in own)
    keys = [item.name if times[item.name] == 1 else item.key for item in own]
    return [
        IngestItem(key, item.name, item.load, path=key, size=item.size) for key, item in zip(keys, own, strict=True)
    ]


def _parse_pages(row: JsonObject) -> tuple[int, ...]:
    """Return the pages in order; empty if they are not a list of whole numbers from 1."""
    values = row.get("pages")
    if not isinstance(values, list):
        return ()
    pages = [page for page in values if type(page) is int and page >= 1]
    return tuple(sorted(set(pages))) if len(pages) == len(values) else ()


SAMPLE_NAME = "sample"
SPANS_FILE = "spans.jsonl"  # judged parts of documents, next to BEIR's files
# Places of the judgments, best first; of several splits, the test questions are used.
QRELS_FILES = tuple(
    f"{name}.{suffix}"
    for name in ("qrels", "qrels/test", "qrels/dev", "qrels/validation", "qrels/train", "test", "dev")
    for suffix in ("tsv", "txt", "tsv.gz", "txt.gz")
)
MAX_SPAN_END = 2**31 - 1  # Postgres integer
EMPTY_TITLE = " "  # gives no context header, so only the text is embedded


def has_no_path(name: str) -> bool:
    """True if a name is not that of a folder: the sample, or a data set of another library."""
    return name == SAMPLE_NAME or name.startswith((IR_DATASETS, HUGGING_FACE))


def load_test_set(name: str | Path) -> TestSet:
    """Return the sample ("sample"), the test set in a folder, ``hf:OWNER/NAME`` or ``ir_datasets:NAME``.

    A folder holds corpus.jsonl (``_id`` or ``id``, title, text, metadata), queries.jsonl (``_id`` or ``id``, text,
    reference_answer, ``answerable`` false for a question without an answer, and ``turns``: the earlier turns of its
    conversation from the oldest) and one of ``QRELS_FILES`` (query, document, grade, separated by tabs or spaces, with
    or without a header). A folder of files with questions.jsonl has judged pages (``read_page_folder``), one with
    tables is a data set of Hugging Face (``read_tables``). BEIR's files may be compressed (``.gz``). An unreadable
    line is left out and named in the test set's problems.

    Raises:
        InvalidInput: No such folder, a missing file, or a file without any readable line.
    """
    from workbench.sample import questions_dir

    if str(name).startswith(IR_DATASETS):
        return read_ir_dataset(str(name).removeprefix(IR_DATASETS))
    if str(name).startswith(HUGGING_FACE):
        return read_tables(find_cached_data_set(str(name).removeprefix(HUGGING_FACE)), str(name))
    folder = questions_dir() if str(name) == SAMPLE_NAME else Path(name)
    if not folder.is_dir():
        raise InvalidInput(f"There is no test set folder {str(name)!r}; give a folder in BEIR format, or 'sample'.")
    corpora, asked = ({path.parent for path in folder.glob(f"*/{name}.jsonl*")} for name in ("corpus", "queries"))
    if len(asked) == 1 and asked <= corpora and not any(folder.glob("*.jsonl*")):  # an unpacked archive around it
        folder = asked.pop()
    corpus, queries = _find_file(folder, "corpus.jsonl"), _find_file(folder, "queries.jsonl")
    if (folder / QUESTIONS_FILE).is_file() and not corpus.is_file():  # with judged pages
        return read_page_folder(folder)
    sample = folder.resolve() == questions_dir().resolve()
    has_qrels = any((folder / name).is_file() for name in QRELS_FILES)
    is_beir = any(one.is_file() and (has_qrels or one.suffix != ".gz") for one in (corpus, queries))
    if not is_beir and not sample and list_tables(folder):
        return read_tables(folder, folder.resolve().name)
    if not corpus.is_file() and not sample:
        raise InvalidInput(f"The test set {folder.name!r} has no corpus.jsonl; each of its lines is one document.")
    problems: list[str] = []
    questions = read_questions(queries, problems)
    all_questions_read = not problems
    spans = read_spans(_find_file(folder, SPANS_FILE), problems)
    best, ids = best_span_grades(spans), {question.id for question in questions}
    whole = read_judgments(folder, ids, problems)
    judged = [j for j in whole if best.get((j.question_id, j.document)) != j.grade]  # qrels repeat spans' grades
    judgments = tuple({(j.question_id, j.document, j.start, j.end): j for j in (*judged, *spans)}.values())
    if not any(judgment.question_id in ids and judgment.grade > 0 for judgment in judgments):
        raise InvalidInput(
            f"No question of {folder.name!r} has a relevant document; its qrels must use the queries' ids."
        )
    unknown = {judgment.question_id for judgment in judgments} - ids
    if unknown and all_questions_read:
        shown = list_choices(sorted(unknown), 5)
        problems.append(f"Judged for questions that queries.jsonl lacks, so not used: {shown}; check the ids.")
    left_out: list[str] = []
    own = FolderCorpus(lambda: read_corpus(corpus, left_out), left_out)
    return TestSet(
        name=SAMPLE_NAME if sample else folder.resolve().name,
        questions=questions,
        judgments=judgments,
        corpus=FolderCorpus(list_sample_documents) if sample else own,
        read_problems=tuple(problems),
    )


def _find_file(folder: Path, name: str) -> Path:
    """Return the path of a file in a folder, or of the compressed one if only that exists."""
    plain, compressed = folder / name, folder / f"{name}.gz"
    return compressed if compressed.is_file() and not plain.is_file() else plain


def read_corpus(path: Path, problems: list[str]) -> list[IngestItem]:
    """Return the documents of a corpus.jsonl, one per line; a document without text uses its title."""
    documents: dict[str, IngestItem] = {}

    def parse(number: int, row: JsonObject) -> None:
        key = read_id(path, number, row)
        if key in documents:
            raise InvalidInput(f"{path.name}, line {number}: duplicate id {key!r}; make ids unique.")
        title, text = str(row.get("title") or "").strip(), str(_pick(row, "text"))
        documents[key] = IngestItem(
            key=key,
            name=f"{key}.txt",
            load=_make_loader(text if text.strip() else title),
            path=key,
            title=title or EMPTY_TITLE,
            metadata=_parse_metadata(row),
        )

    read_json_lines(path, parse, problems)
    if not documents:
        raise InvalidInput(f"{path.name} is empty; each of its lines is one document.")
    return list(documents.values())


def list_sample_documents() -> list[IngestItem]:
    """Return the sample's articles; a document's key is the article's slug."""
    from workbench.sample import articles_dir

    paths = sorted(articles_dir().glob("*/*.md"))
    return [IngestItem(key=path.stem, name=path.name, load=path.read_bytes, path=path.stem) for path in paths]


def read_questions(path: Path, problems: list[str]) -> tuple[Question, ...]:
    """Return the questions of a queries.jsonl. Raises InvalidInput."""
    questions: dict[str, Question] = {}

    def parse(number: int, row: JsonObject) -> None:
        named = {name: value for name, value in row.items() if name not in _COLUMNS["document"]}
        key, text = read_id(path, number, named), str(_pick(row, "text")).strip()
        if not text or key in questions:
            reason = "has no text" if not text else f"has the duplicate id {key!r}"
            raise InvalidInput(f"{path.name}, line {number}: the question {reason}; correct the line.")
        own = {**row, "text": text, "metadata": _parse_metadata(row)}
        questions[key] = make_question(f"{path.name}, line {number}", key, own)

    read_json_lines(path, parse, problems)
    return tuple(questions.values())


def make_question(place: str, key: str, row: JsonObject) -> Question:
    """Return the question of a line. Raises InvalidInput, naming the ``place``, if its turns are not texts."""
    try:
        return read_question(row, key)
    except InvalidInput as error:
        raise InvalidInput(f"{place}: {error}") from None


def read_judgments(folder: Path, question_ids: Collection[str], problems: list[str]) -> tuple[Judgment, ...]:
    """Return the judgments of a folder's qrels; if the first line is not a judgment, it may be a header.

    A first line that starts with one of ``question_ids`` is not a header.

    Raises:
        InvalidInput: No qrels, or none of their lines is a judgment.
    """
    paths = [folder / name for name in QRELS_FILES if (folder / name).is_file()]
    if not paths:
        raise InvalidInput(f"The test set {folder.name!r} has no judgments; write qrels.tsv: query, document, grade.")
    path = paths[0]
    if len(paths) > 1:
        others = ", ".join(other.relative_to(folder).as_posix() for other in paths[1:])
        verb = "is" if len(paths) == 2 else "are"
        problems.append(f"The judgments are from {path.relative_to(folder).as_posix()}; {others} {verb} not used.")
    return read_qrels(path, question_ids, problems)


def read_qrels(path: Path, question_ids: Collection[str], problems: list[str]) -> tuple[Judgment, ...]:
    """Return the judgments of a qrels file in the format of TREC or BEIR, or a CSV; see ``read_judgments``."""
    judgments: list[Judgment] = []
    grades: dict[tuple[str, str], int] = {}
    broken: list[str] = []
    first, text = True, read_text(path)
    columns = {mark: _split_cells(text.partition("\n")[0], mark) for mark in ";,"}
    mark = next((mark for mark, own in columns.items() if len(own) in (3, 4) and len(own[-1].split()) < 2), None)
    for number, line in enumerate(text.split("\n"), start=1):
        cells = _split_cells(line, mark)
        if len(cells) == 4:  # trec_eval's format has an unused column
            del cells[1]
        if not any(cells):
            continue
        try:
            check_line(path, number, line)
            question_id, document, given = cells
            grade = _parse_grade(path, number, read_number(given, f"{path.name}, line {number}"))
            if grades.setdefault((question_id, document), grade) != grade:
                broken.append(
                    f"{path.name}, line {number}: {document!r} has two grades for {question_id!r}; this one is used."
                )
            judgments.append(Judgment(question_id, document, grade))
        except InvalidInput as error:
            broken.append(str(error))
        except ValueError:
            if not first or cells[0] in question_ids:  # a header has column names, never a question id
                broken.append(
                    f"{path.name}, line {number}: expected query, document and grade separated by tabs, not "
                    f"{line[:80]!r}."
                )
        first = False
    if broken and not judgments:
        raise InvalidInput(broken[0])
    problems += broken
    return tuple(judgments)


def _split_cells(line: str, mark: str | None) -> list[str]:
    """Return the cells of a line of qrels, separated by ``mark`` as in a CSV, or by tabs or blanks without one."""
    try:
        cells = next(csv.reader([line], delimiter=mark, skipinitialspace=True), []) if mark else None
    except csv.Error:  # longer than a cell of a CSV may be
        cells = [line[:80]]
    return [clean_id(cell) for cell in (line.split("\t" if "\t" in line else None) if cells is None else cells)]


def read_spans(path: Path, problems: list[str]) -> tuple[Judgment, ...]:
    """Return the judged spans of a spans.jsonl (question_id, document, grade, start, end); empty without the file."""
    if not path.is_file():
        return ()

    def parse(number: int, row: JsonObject) -> Judgment:
        try:
            start, end = int(_check_number(row["start"])), int(_check_number(row["end"]))
            grade = _parse_grade(path, number, float(_check_number(row["grade"])))
            span = Judgment(clean_id(str(row["question_id"])), clean_id(str(row["document"])), grade, start, end)
        except (KeyError, TypeError, ValueError, OverflowError):
            raise InvalidInput(
                f"{path.name}, line {number}: needs question_id, document, grade, start and end; correct the line."
            ) from None
        if not 0 <= start < end <= MAX_SPAN_END:
            raise InvalidInput(f"{path.name}, line {number}: the span from {start} to {end} is empty; correct it.")
        return replace(span, quote=str(row.get("quote") or ""))

    return tuple(read_json_lines(path, parse, problems))


def _check_number(value: JsonValue) -> str | int | float:
    if isinstance(value, str | int | float):
        return value
    raise TypeError(value)


def _parse_grade(path: Path, number: int, given: float) -> int:
    if not (given.is_integer() and MIN_GRADE <= given <= MAX_GRADE):
        raise InvalidInput(
            f"{path.name}, line {number}: the grade {given:g} is not a whole number from {MIN_GRADE} to "
            f"{MAX_GRADE}; correct the line."
        )
    return int(given)


def _parse_metadata(row: JsonObject) -> JsonObject:
    metadata = row.get("metadata")
    return dict(metadata) if isinstance(metadata, dict) else {}


def _make_loader(text: str) -> Callable[[], bytes]:
    data = text.encode(errors="replace")
    return lambda: data


# Data sets of other libraries: each is written as a folder in BEIR format, and read from it

IR_DATASETS, HUGGING_FACE = "ir_datasets:", "hf:"  # start the names of data sets
_TABLE_PATTERNS = ("*.parquet", "*.arrow", "*.jsonl", "*.jsonl.gz")
_SPLITS = ("test", "dev", "validation", "train")  # of several splits, the first is used
_TABLES = (  # the names of each: documents, questions, judgments
    ("corpus", "docs", "documents", "passages"),
    ("queries", "questions"),
    ("qrels", "default", "data"),
)
_COLUMNS = {  # the names of a column in the data sets of others, the usual one first
    "id": ("_id", "id", "doc_id", "query_id", "corpus-id", "query-id", "docid", "pid", "qid"),
    "text": ("text", "contents", "body", "query", "question"),
    "query": ("query-id", "query_id", "qid"),
    "document": ("corpus-id", "corpus_id", "doc_id", "docid", "pid"),
    "grade": ("score", "relevance", "grade", "label"),
    "question": ("question", "query", "anchor"),
    "passage": ("context", "passage", "positive"),
    "answer": ("reference_answer", "answer", "answers"),
}
_Rows = Iterable[Mapping[str, object]]


def _pick(row: Mapping[str, object], column: str) -> object:
    """Return the value of the first name of a column that a row has; "" if it has none."""
    return next((row[name] for name in _COLUMNS[column] if row.get(name) is not None), "")


def _write_and_load(name: str, corpus: _Rows, queries: _Rows, qrels: _Rows | Path) -> TestSet:
    """Return the test set in the tables of a data set; ``qrels`` may be a file in BEIR's format."""
    with tempfile.TemporaryDirectory() as place:
        (folder := Path(place) / Path(name).name).mkdir()  # errors name it
        for file_name, rows in (("corpus.jsonl", corpus), ("queries.jsonl", queries)):
            with (folder / file_name).open("w", encoding="utf-8") as file:
                file.writelines(json.dumps(dict(row), default=str) + "\n" for row in rows)
        if isinstance(qrels, Path):
            (folder / "qrels.tsv").write_text(read_text(qrels), "utf-8", errors="surrogateescape")
        else:
            with (folder / "qrels.tsv").open("w", encoding="utf-8", errors="replace") as file:
                for row in qrels:
                    grade = _pick(row, "grade")
                    file.write(f"{_pick(row, 'query')}\t{_pick(row, 'document')}\t{1 if grade == '' else grade}\n")
        test_set = load_test_set(folder)
        left_out: list[str] = []
        documents = tuple(read_corpus(folder / "corpus.jsonl", left_out))
    return replace(test_set, name=name, corpus=FolderCorpus(lambda: documents, left_out))


def read_ir_dataset(name: str) -> TestSet:
    """Return a data set of the package ``ir_datasets``, such as ``beir/scifact/test``; nothing is downloaded.

    Raises:
        ConfigurationError: The package is not installed.
        InvalidInput: There is no such data set, it has no questions or judgments, or its data are not here.
    """
    try:
        import ir_datasets
    except ImportError:
        raise ConfigurationError("Data sets by name need a package; run: pip install ir-datasets") from None
    try:
        data = cast("Any", ir_datasets).load(name)
    except KeyError:
        raise InvalidInput(f"ir_datasets has no data set {name!r}; ir-datasets.com lists them.") from None
    if not (data.has_docs() and data.has_queries() and data.has_qrels()):
        raise InvalidInput(
            f"{name!r} has no documents, questions or judgments of its own; choose a part such as /test."
        )
    refused: list[object] = []
    try:
        with _refuse_downloads(refused):
            corpus = ({"text": row.default_text(), **row._asdict()} for row in data.docs_iter())
            queries = ({"id": row.query_id, "text": row.default_text()} for row in data.queries_iter())
            return _write_and_load(name, corpus, queries, (row._asdict() for row in data.qrels_iter()))
    except Exception as error:  # of any kind: each data set has a reader of its own
        if refused:
            raise InvalidInput(
                f"The data of {name!r} are not on this machine; get them first: ir_datasets export {name} docs, and "
                "the same with queries and qrels."
            ) from error
        if isinstance(error, WorkbenchError):
            raise
        raise InvalidInput(f"The data set {name!r} is not readable: {error}.") from error


@contextmanager
def _refuse_downloads(refused: list[object]) -> Generator[None]:
    """Let ir_datasets fail instead of downloading, and list what it wanted."""
    from ir_datasets.util import download

    def refuse(wanted: object) -> NoReturn:
        refused.append(wanted)
        raise FileNotFoundError(str(wanted))

    kinds = [cast("Any", download).RequestsDownload, cast("Any", download).GoogleDriveDownload]
    before = [kind.stream for kind in kinds]
    for kind in kinds:
        kind.stream = refuse
    try:
        yield
    finally:
        for kind, stream in zip(kinds, before, strict=True):
            kind.stream = stream


def find_cached_data_set(name: str) -> Path:
    """Return the folder of a Hugging Face data set in the cache of its hub. Raises InvalidInput if it is not there."""
    from huggingface_hub import snapshot_download

    try:
        return Path(snapshot_download(name, repo_type="dataset", local_files_only=True))
    except Exception as error:  # of any kind: an invalid name, or no files
        raise InvalidInput(
            f"The data set {name!r} is not in the cache of Hugging Face; get it first: hf download {name} --repo-type "
            "dataset"
        ) from error


def list_tables(folder: Path) -> list[Path]:
    """Return the files of a Hugging Face data set; none if the folder is something else."""
    return sorted(path for pattern in _TABLE_PATTERNS for path in folder.rglob(pattern))


def read_tables(folder: Path, name: str) -> TestSet:
    """Return the test set of a Hugging Face data set: a clone, a snapshot, or a folder of ``save_to_disk``.

    It has tables ``corpus``, ``queries`` and ``qrels`` (as files or folders of Parquet, Arrow or JSON lines), or one
    table with a question and the passage that answers it in each row.

    Raises:
        InvalidInput: It has neither.
    """
    files = list_tables(folder)
    corpus, queries, qrels = (_choose_files(folder, files, names) for names in _TABLES)
    if not (corpus and queries):
        return _read_pairs(name, _choose_split(files))
    text = next((folder / place for place in QRELS_FILES if (folder / place).is_file()), None)  # as BEIR stores them
    judged = text if text is not None and not qrels else _read_rows(_choose_split(qrels))
    return _write_and_load(name, _read_rows(corpus), _read_rows(queries), judged)


def _choose_files(folder: Path, files: Sequence[Path], names: Sequence[str]) -> list[Path]:
    """Return the files of a table: those in a folder with one of its names, or with names that start with it."""
    for name in names:
        pattern = re.compile(rf"(^|/){name}([-./]|$)")
        if found := [path for path in files if pattern.search(path.relative_to(folder).as_posix())]:
            return found
    return []


def _choose_split(files: Sequence[Path]) -> list[Path]:
    """Return the files of the first split; all of them if none names a split."""
    for split in _SPLITS:
        if found := [
            path for path in files if re.search(rf"(^|[-_]){split}\b", path.name) or path.parent.name == split
        ]:
            return found
    return list(files)


def _read_rows(files: Sequence[Path]) -> Iterator[Mapping[str, object]]:
    """Yield the rows of tables."""
    try:
        import pyarrow as arrow
        import pyarrow.parquet as parquet
    except ImportError:
        raise ConfigurationError("Tables of Hugging Face need a package; run: pip install pyarrow") from None
    library, tables = cast("Any", arrow), cast("Any", parquet)
    for path in files:
        try:
            if path.suffix == ".parquet":
                batches: Iterable[Any] = tables.ParquetFile(path).iter_batches()
            elif path.suffix == ".arrow":
                batches = library.ipc.open_stream(path)
            else:
                yield from (
                    json.loads(line) for line in read_plain_or_gzip(path, most=None).split("\n") if line.strip()
                )
                continue
            for batch in batches:
                yield from batch.to_pylist()
        except (OSError, ValueError, library.ArrowException) as error:
            raise InvalidInput(f"{path.name} is not readable ({error}); get the data set again.") from error


def _read_pairs(name: str, files: Sequence[Path]) -> TestSet:
    """Return the test set of a table whose rows have a question and the passage that answers it."""
    passages: dict[str, dict[str, object]] = {}
    queries: dict[str, dict[str, object]] = {}
    qrels: list[dict[str, object]] = []
    columns: dict[str, None] = {}
    unused = 0
    for row in _read_rows(files):
        columns |= dict.fromkeys(row)
        question, passage, answer = (_pick(row, column) for column in ("question", "passage", "answer"))
        if not (isinstance(question, str) and isinstance(passage, str) and question.strip() and passage.strip()):
            unused += 1
            continue
        if isinstance(answer, Mapping):  # SQuAD's, of texts and their places
            answer = cast("Mapping[str, object]", answer).get("text", "")
        if isinstance(answer, list):
            answer = next(iter(cast("list[object]", answer)), "")
        found = passages.setdefault(
            passage, {"_id": f"p{len(passages) + 1}", "text": passage, "title": row.get("title")}
        )
        asked = queries.setdefault(
            question, {"_id": f"q{len(queries) + 1}", "text": question, "reference_answer": answer}
        )
        qrels.append({"qid": asked["_id"], "docid": found["_id"]})
    if not qrels:
        raise InvalidInput(
            f"The data set {name!r} has no tables corpus, queries and qrels, and no question and context in a row (its "
            f"columns: {list_choices(columns, 20) or 'none'}); rename them."
        )
    made = _write_and_load(name, passages.values(), queries.values(), qrels)
    left_out = f"Left out because a question or its context is missing: {unused:,} of the rows."
    return replace(made, read_problems=(*made.read_problems, *([left_out] if unused else [])))

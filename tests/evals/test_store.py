"""Test sets in the database: every edit is a version, and none is lost."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from evals.experiments import runs
from evals.gateway import index_corpus
from evals.test_sets.exchange import export_folder, import_csv, to_csv
from evals.test_sets.folders import load_test_set
from evals.test_sets.store import TestSetStore
from evals.test_sets.traffic import add_agent_queries
from tests.evals.conftest import TEXTS, WriteTestSet
from workbench import Workbench
from workbench.errors import Conflict, InvalidInput, NotFound
from workbench.storage.tool_calls import ToolCall

FILES = {f"{key}.md": f"# {title}\n\n{text}" for key, (title, text) in TEXTS.items()}


@pytest.fixture
def store(wb: Workbench) -> TestSetStore:
    return TestSetStore(wb)


@pytest.fixture
def mine(wb: Workbench, store: TestSetStore, folder: Callable[..., Path]) -> str:
    """A test set over the user's own sources, with one question."""
    wb.ingest(folder(FILES), source="Animals")
    info = store.create("Mine")
    store.add_questions(info.id, ["Why do cats purr?"])
    return info.id


def document_id(wb: Workbench, title: str) -> str:
    return next(document.id for document in wb.documents.list() if document.title == title)


def test_every_version_can_be_read_again(store: TestSetStore, mine: str) -> None:
    (question,) = store.load(mine).questions
    store.judge(mine, question.id, "doc_1", "partly")
    store.judge(mine, question.id, "doc_1", "relevant")
    store.add_questions(mine, [replace(question, text="Why does a cat purr?")])
    last = store.remove_questions(mine, [question.id])
    texts = [[question.text for question in store.load(mine, version).questions] for version in range(1, last + 1)]
    grades = [store.load(mine, version).qrels for version in range(1, last + 1)]
    assert texts == [
        [],
        ["Why do cats purr?"],
        ["Why do cats purr?"],
        ["Why do cats purr?"],
        ["Why does a cat purr?"],
        [],
    ]
    assert grades[2:] == [{question.id: {"doc_1": 1}}, {question.id: {"doc_1": 2}}, {question.id: {"doc_1": 2}}, {}]
    assert store.info(mine).version == last


def test_a_judgment_can_be_taken_back_and_a_span_is_a_judgment_of_its_own(store: TestSetStore, mine: str) -> None:
    (question,) = store.load(mine).questions
    store.judge(mine, question.id, "doc_1", "not")
    store.judge(mine, question.id, "doc_1", 2, start=0, end=9)
    assert store.load(mine).qrels == {question.id: {"doc_1": 2}}
    store.judge(mine, question.id, "doc_1", None, start=0, end=9)
    assert store.load(mine).qrels == {question.id: {"doc_1": 0}}


def test_an_llms_judgment_does_not_replace_a_persons(store: TestSetStore, mine: str) -> None:
    (question,) = store.load(mine).questions
    store.judge(mine, question.id, "doc_1", "relevant")
    store.judge(mine, question.id, "doc_1", "not", judge="llm")
    assert store.load(mine).qrels == {question.id: {"doc_1": 2}}


@pytest.mark.parametrize("grade", ["good", 101, -101, "", 1.5])
def test_an_unknown_grade_is_refused_with_the_valid_ones(store: TestSetStore, mine: str, grade: str) -> None:
    with pytest.raises(InvalidInput, match="'not', 'partly', 'relevant'"):
        store.judge(mine, store.load(mine).questions[0].id, "doc_1", grade)


def test_what_is_not_there_is_reported_in_a_sentence(store: TestSetStore, mine: str) -> None:
    with pytest.raises(NotFound, match="Test set not found"):
        store.load("nothing")
    with pytest.raises(NotFound, match="versions 1 to 2"):
        store.load(mine, 9)
    with pytest.raises(NotFound, match="Question not found"):
        store.judge(mine, "q_none", "doc_1", "not")
    with pytest.raises(Conflict):
        store.create("Mine")
    with pytest.raises(InvalidInput, match="empty"):
        store.add_questions(mine, ["\x00 "])


def test_a_question_that_is_there_is_not_added_twice(store: TestSetStore, mine: str) -> None:
    assert (
        store.add_questions(mine, ["why do cats  purr?", "Emoji 🦉 '; DROP TABLE datasets; --", "Emoji"])[1].text
        == "Emoji"
    )
    assert len(store.load(mine).questions) == 3


def test_a_folder_is_stored_with_its_corpus_and_measures_the_same(
    wb: Workbench, store: TestSetStore, beir: WriteTestSet
) -> None:
    read = load_test_set(beir())
    stored = store.load(store.add(read).id)
    assert stored.questions_hash == read.questions_hash
    values = []
    for test_set in (read, stored):
        corpus = index_corpus(wb, test_set)
        values.append(
            (corpus.index.name, runs.run_strategies(wb, test_set, corpus, ["hybrid"]).strategies["hybrid"].values)
        )
    assert values[0] == values[1]


def test_grades_of_public_test_sets_are_stored_as_they_are_and_the_later_of_two_judgments_is_kept(
    wb: Workbench, store: TestSetStore, beir: WriteTestSet
) -> None:
    root = beir()
    (root / "qrels.tsv").write_text("q1\tcats\t2\nq1\tcats\t1\nq1\tdogs\t-1\nq1\tfish\t4\n")
    test_set = load_test_set(root)
    stored = store.load(store.add(test_set).id)
    assert stored.qrels["q1"] == test_set.qrels["q1"] == {"cats": 1, "dogs": -1, "fish": 4}
    assert store.add(load_test_set(root)).version == stored.version
    assert import_csv(wb, store, stored.name, to_csv(stored)).problems == ()
    assert store.load(stored.name).qrels == stored.qrels


def test_metadata_as_pandas_writes_it_is_stored(store: TestSetStore, beir: WriteTestSet) -> None:
    root = beir()
    (root / "corpus.jsonl").write_text('{"_id": "cats", "text": "Cats purr.", "metadata": {"year": NaN}}')
    (root / "queries.jsonl").write_text('{"_id": "q1", "text": "Who purrs?", "metadata": {"year": NaN}}')
    (question,) = store.load(store.add(load_test_set(root)).id).questions
    assert question.metadata == {"year": None}


def test_a_stored_corpus_can_be_cut_and_embedded_in_another_way(
    wb: Workbench, store: TestSetStore, beir: WriteTestSet
) -> None:
    stored = store.load(store.add(load_test_set(beir())).id)
    wb.indexes.create("small", chunker="sentence", options={"size": 16})
    corpus = index_corpus(wb, stored, "small")
    assert (corpus.documents, corpus.index.documents_count, corpus.index.chunker) == (5, 5, "sentence")


def test_storing_the_same_folder_again_makes_no_version_and_a_changed_one_makes_one(
    store: TestSetStore, beir: WriteTestSet
) -> None:
    info = store.add(load_test_set(beir()))
    assert store.add(load_test_set(beir())).version == info.version
    root = beir()
    (root / "qrels.tsv").write_text("q1\tcats\t1\nq2\tdogs\t2\n")
    again = store.add(load_test_set(root))
    assert (again.id, again.version, store.load(info.id).qrels["q1"]) == (info.id, info.version + 1, {"cats": 1})
    assert store.load(info.id, info.version).qrels["q1"] == {"cats": 2}


def test_deleting_a_test_set_takes_its_own_corpus_along(wb: Workbench, store: TestSetStore, beir: WriteTestSet) -> None:
    store.delete(store.add(load_test_set(beir())).id)
    assert store.list() == []
    assert wb.corpus.sources.list(source_type="dataset") == []
    assert [index.name for index in wb.indexes.list()] == ["main"]


def test_csv_finds_documents_by_name_and_quotes_by_themselves(wb: Workbench, store: TestSetStore, mine: str) -> None:
    text = (
        "question,document,quote,grade,start,end\r\n"
        'Why do cats purr?,,"purr when\nthey are content",relevant,,\r\n'
        "Who barks?,Dogs,,partly,,\r\n"
        "Who barks?,cats.md,,not,0,6\r\n"
        "Anything?,,,,,\r\n"
    )
    report = import_csv(wb, store, mine, text)
    assert (report.questions, report.judgments, report.problems) == (2, 3, ())
    test_set = store.load(mine)
    barks = next(question.id for question in test_set.questions if question.text == "Who barks?")
    assert test_set.qrels[barks] == {document_id(wb, "Dogs"): 1, document_id(wb, "Cats"): 0}
    (span,) = next(iter(test_set.spans.values()))
    found = wb.documents.get(span.document).text or ""
    assert found[span.start : span.end] == "purr when they are content"


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ("Q?,Unicorns,,relevant,,", "There is no document 'Unicorns'"),
        ("Q?,,nowhere to be found,relevant,,", "is in none of the documents"),
        ("Q?,Cats,,good,,", "'good'"),
        ("Q?,Cats,,relevant,5,3", "start and end must be"),
        (" ,Cats,,relevant,,", "The question is empty"),
        ("Q" * 10_001 + ",Cats,,relevant,,", "shorten it to at most 10,000"),
    ],
)
def test_unusable_rows_are_listed_and_the_rest_is_imported(
    wb: Workbench, store: TestSetStore, mine: str, row: str, says: str
) -> None:
    text = f"question,document,quote,grade,start,end\n{row}\nWho barks?,Dogs,,relevant,,\n"
    report = import_csv(wb, store, mine, text)
    assert report.judgments == 1
    assert [problem.startswith("Row 2: ") and says in problem for problem in report.problems] == [True]


def test_a_rater_without_a_grade_has_not_judged_and_spreadsheets_may_write_2_0_and_empty_rows(
    wb: Workbench, store: TestSetStore, mine: str
) -> None:
    text = "question;document;grade\r\nWhy do cats purr?;Cats;2.0\r\nWhy do cats purr?;Dogs;\r\n;;\r\n"
    report = import_csv(wb, store, mine, text, "Ada")
    assert (report.judgments, report.problems) == (1, ("Row 3: The grade of Ada is missing.",))
    assert list(store.load(mine).qrels.values()) == [{document_id(wb, "Cats"): 2}]
    comma = text.replace("2.0", "2,0")  # without a rater, a list of relevant documents
    assert import_csv(wb, store, mine, comma).judgments == 2


def test_a_quote_without_a_grade_is_no_judgment_of_a_rater_but_its_question_is_kept(
    wb: Workbench, store: TestSetStore, mine: str
) -> None:
    before = len(store.load(mine).questions)
    text = "question,quote,grade,reference_answer\nWho purrs at night?,Cats purr,,A cat\n"
    report = import_csv(wb, store, mine, text, "Ada")
    assert (report.judgments, report.problems) == (0, ("Row 2: The grade of Ada is missing.",))
    questions = store.load(mine).questions
    assert [one.reference_answer for one in questions[before:]] == ["A cat"]


def test_qrels_come_back_with_blanks_in_names_compressed_or_as_a_csv(
    wb: Workbench, beir: WriteTestSet, tmp_path: Path
) -> None:
    folder = beir({"d 1": ("Cats", "Cats purr."), "d2": ("Dogs", "Dogs bark.")}, {"q 1": ("Who purrs?", {"d 1": 2})})
    info = wb.test_sets.from_folder(folder)
    wb.test_sets.export(info.id, tmp_path / "out.qrels", format="qrels")
    assert (tmp_path / "out.qrels").read_text() == "q%201 0 d%201 2\n"
    (tmp_path / "out.qrels.gz").write_bytes(gzip.compress(b"q%201 0 d%201 1\n"))
    (tmp_path / "beir.csv").write_text('query-id,corpus-id,score\r\n"q 1","d 1",0\r\n', encoding="utf-8-sig")
    for rater, (name, grade) in enumerate([("out.qrels", 2), ("out.qrels.gz", 1), ("beir.csv", 0)]):
        report = wb.test_sets.import_judgments(info.id, tmp_path / name, rater=f"Rater {rater}")
        assert (report.judgments, report.problems) == (1, ())
        (own,) = [one.judgment for one in wb.test_sets.ratings(info.id) if one.rater == f"Rater {rater}"]
        assert (own.question_id, own.document, own.grade) == ("q 1", "d 1", grade)
    (tmp_path / "cut.gz").write_bytes((tmp_path / "out.qrels.gz").read_bytes()[:25])
    with pytest.raises(InvalidInput, match=r"Failed to open cut.gz \(it is damaged"):
        wb.test_sets.import_judgments(info.id, tmp_path / "cut.gz")


@pytest.mark.parametrize("text", ["", "query,document\n", "colour\ny\n"])
def test_a_csv_without_the_columns_is_refused(wb: Workbench, store: TestSetStore, mine: str, text: str) -> None:
    with pytest.raises(InvalidInput, match="header needs 'question'"):
        import_csv(wb, store, mine, text)


def test_csv_that_was_written_can_be_read_into_another_test_set(wb: Workbench, store: TestSetStore, mine: str) -> None:
    (question,) = store.load(mine).questions
    store.judge(mine, question.id, document_id(wb, "Cats"), "relevant", start=2, end=6, quote="Cats")
    store.judge(mine, question.id, document_id(wb, "Dogs"), "not")
    copy = store.create("Copy").id
    report = import_csv(wb, store, copy, to_csv(store.load(mine)))
    assert report.problems == ()
    assert store.load(copy).questions_hash == store.load(mine).questions_hash


def test_a_span_comes_back_from_csv_at_its_own_place_though_its_words_are_elsewhere_too(
    wb: Workbench, store: TestSetStore, mine: str
) -> None:
    words = wb.documents.create(text="one fish. two. one fish. red.", title="Fishes").document.id
    (question,) = store.load(mine).questions
    store.judge(mine, question.id, words, "relevant", start=15, end=23, quote="one fish")
    copy = store.create("Copy").id
    assert import_csv(wb, store, copy, to_csv(store.load(mine))).problems == ()
    assert store.load(copy).judgments == store.load(mine).judgments


def test_a_question_with_anothers_id_is_a_problem_and_gives_that_one_no_judgment(
    wb: Workbench, store: TestSetStore, mine: str
) -> None:
    text = "question,id,document\nWho purrs?,1,Cats\nWho barks?,1,Dogs\nWho  PURRS?,,Owls\n"
    report = import_csv(wb, store, mine, text)
    assert report.problems == ("Row 3: The id '1' belongs to another question; give this one a unique id.",)
    assert store.load(mine).qrels["1"].keys() == {document_id(wb, "Cats"), document_id(wb, "Owls")}


def test_metadata_of_questions_and_the_time_of_judgments_are_columns_of_a_csv(
    wb: Workbench, store: TestSetStore, mine: str
) -> None:
    text = "question,document,metadata.Kind,metadata.team\nWho guards?,Dogs,how-to,ops\nWho hunts?,Owls,,net\n"
    assert import_csv(wb, store, mine, text).problems == ()
    kinds = {one.text: dict(one.metadata) for one in store.load(mine).questions}
    assert (kinds["Who guards?"], kinds["Who hunts?"]) == ({"Kind": "how-to", "team": "ops"}, {"team": "net"})
    lists = {"tag": ["pets", "Käfer"], "Kind": "[sic] how-to", "asked": {"by": "Ada"}}  # as agents give them
    store.add_questions(mine, [{"text": "Who swims?", "metadata": lists}])
    kinds |= {"Who swims?": lists}
    copy = store.create("Copy").id
    written = to_csv(store.load(mine), store.ratings(mine))
    assert all(row["judged_at"].startswith("20") for row in csv.DictReader(io.StringIO(written)) if row["document"])
    assert import_csv(wb, store, copy, written).problems == ()
    assert {one.text: dict(one.metadata) for one in store.load(copy).questions} == kinds
    damaged = "question,document\nWer h\udcf6rt es?,Dogs\nWho barks?,Dogs\n"  # a byte that is not UTF-8
    assert import_csv(wb, store, copy, damaged).problems == ("Row 2: It is not UTF-8 text; convert the file.",)
    with_others = import_csv(wb, store, copy, "question,kind,,document\nWho barks at night?,how-to,,Dogs\n")
    assert (with_others.questions, with_others.judgments, len(with_others.problems)) == (1, 1, 1)
    assert with_others.problems[0].startswith("The column 'kind' is unknown and was ignored; optional are 'id'")


def test_a_row_that_is_too_long_or_nested_too_deeply_does_not_refuse_the_others(
    wb: Workbench, store: TestSetStore, mine: str
) -> None:
    deep = "[" * 50_000
    rows = f"Who swims?,{'r' * 100_000},\nWho barks?,,\nWho flies?,,{deep}\n"
    report = import_csv(wb, store, mine, f"question,reference_answer,metadata.tag\n{rows}")
    assert report.questions == 2 and [one.split(":")[0] for one in report.problems] == ["Row 2"]
    assert {one.text: dict(one.metadata) for one in store.load(mine).questions}["Who flies?"] == {"tag": deep}


def test_the_corpus_of_an_exported_folder_has_what_the_searches_can_find(
    wb: Workbench, store: TestSetStore, mine: str, tmp_path: Path
) -> None:
    store.judge(mine, store.load(mine).questions[0].id, document_id(wb, "Dogs"), "relevant")
    out = export_folder(wb, store.load(mine), tmp_path / "out")
    titles = [json.loads(line)["title"] for line in (out / "corpus.jsonl").read_text().splitlines()]
    assert sorted(titles) == sorted(one.title for one in wb.documents.list()) and len(titles) > 1
    assert load_test_set(out).qrels == store.load(mine).qrels


def test_an_exported_folder_is_read_back_with_its_spans(
    wb: Workbench, store: TestSetStore, beir: WriteTestSet, tmp_path: Path
) -> None:
    info = store.add(load_test_set(beir()))
    store.judge(info.id, "q1", "cats", 2, start=0, end=9)
    again = load_test_set(export_folder(wb, store.load(info.id), tmp_path / "out"))
    assert again.qrels == store.load(info.id).qrels
    assert [(span.start, span.end) for span in again.spans["q1"]] == [(0, 9)]
    assert [question.text for question in again.questions] == [
        question.text for question in store.load(info.id).questions
    ]
    with pytest.raises(InvalidInput, match="not empty"):
        export_folder(wb, again, tmp_path / "out")


def test_spans_that_were_exported_come_back_as_nothing_but_spans_with_the_best_grade_in_the_qrels(
    wb: Workbench, store: TestSetStore, beir: WriteTestSet, tmp_path: Path
) -> None:
    info = store.add(load_test_set(beir()))
    store.judge(info.id, "q1", "fish", 2, start=0, end=4)
    store.judge(info.id, "q1", "fish", 1, start=5, end=9)
    out = export_folder(wb, store.load(info.id), tmp_path / "out")
    assert "q1\tfish\t2\n" in (out / "qrels" / "test.tsv").read_text()
    assert load_test_set(out).questions_hash == store.load(info.id).questions_hash


def test_what_agents_asked_becomes_questions_once_each(wb: Workbench, store: TestSetStore, mine: str) -> None:
    queries = ("owls at  night", "owls at night", "bees", None)
    now = datetime.now(UTC)
    wb.tool_calls.add([ToolCall("search", now, 1.0, 10, query=query) for query in queries])
    assert add_agent_queries(wb, store, mine).questions == 2
    assert add_agent_queries(wb, store, mine).questions == 0
    from_agents = {question.text for question in store.load(mine).questions if question.origin == "agent"}
    assert from_agents == {"owls at night", "bees"}

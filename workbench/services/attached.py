"""Attached indexes: a table of someone else's that is checked, read into a keyword index, and kept up by id and hash.

A row becomes a passage of one of our documents if it names it (by id, URL or path) or contains a part of its text;
otherwise it is a document of its own, in a source that only this index has. So judgments of our documents count for the
table's rows, and a table without documents here can be searched too.
"""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import cast

import numpy as np

from workbench.errors import Cancelled, Conflict, InvalidInput
from workbench.formatting import count_text
from workbench.ingestion.embedding import split_windows
from workbench.ingestion.text import detect_document_language
from workbench.models.encoder import CompanionEncoder, Encoder
from workbench.retrieval.retrievers.foreign import MIN_OVERLAP_CHARS, is_same_file, list_url_forms
from workbench.services.corpus import Corpus
from workbench.storage.attached import (
    UNIT_TOLERANCE,
    AttachedStore,
    AttachedTable,
    TableCounts,
    TableRequest,
    TableRow,
    describe_table,
    hash_rows,
    make_embedded_text,
)
from workbench.storage.documents import NewDocument
from workbench.storage.passages import (
    Connection,
    RowPassage,
    fetch_internal_ids,
    fetch_token_bits,
    insert_passages,
    make_row_id,
    statement,
)
from workbench.types import DATASET, Index, JsonObject, JsonValue, OnProgress, Progress, ShouldStop, as_text

CHUNKER = "attached"  # instead of a chunker, because the rows are already split
# Minimum mean cosine of stored vectors with the model's own: if the model is the same, and if the text is, too.
MIN_SAME_MODEL, MIN_SAME_TEXT = 0.5, 0.95

# Checks


def normalise_address(url: str | None) -> str | None:
    """Return a libpq URL: LangChain's and SQLAlchemy's name a driver, as in ``postgresql+psycopg://``."""
    if url is None or not url.strip():
        return None
    return re.sub(r"^postgres(?:ql)?\+\w+://", "postgresql://", url.strip())


def check_counts(table: str, counts: TableCounts) -> list[str]:
    """Return notes on rows that are left out.

    Raises:
        InvalidInput: No row can be searched, or the vectors have several lengths.
    """
    if not counts.rows:
        raise InvalidInput(f"No row of {table} is selected; fill the table, or correct the filter.")
    if not counts.dimensions:
        raise InvalidInput(f"None of the {counts.rows:,} selected rows of {table} has a vector; check the filter.")
    if len(counts.dimensions) > 1:
        lengths = ", ".join(map(str, sorted(counts.dimensions)))
        raise InvalidInput(f"The vectors of {table} have several dimensions ({lengths}); select one with a filter.")
    notes = (
        (counts.without_vector, "without a vector"),
        (counts.without_text, "without text"),
        (counts.repeated, "with the id of another row"),
    )
    return [f"{count_text(number, 'row')} {what} left out" for number, what in notes if number]


def check_model(table: str, encoder: Encoder, dimensions: int, sample: Sequence[TableRow]) -> list[str]:
    """Compare a sample of stored vectors with the model's own, and return notes on differences.

    Raises:
        InvalidInput: The vectors come from another model.
    """
    if encoder.dimensions != dimensions:
        raise InvalidInput(
            f"The vectors of {table} have {dimensions:,} dimensions, and those of the model {encoder.name!r} have "
            f"{encoder.dimensions:,}; name the model that made them."
        )
    stored = np.stack([row.vector for row in sample if row.vector is not None]).astype(np.float64)
    lengths = np.linalg.norm(stored, axis=1)
    best = 0.0
    for texts in ([row.text for row in sample], [make_embedded_text(row) for row in sample]):
        if all(texts):
            own = encoder.encode(texts).vectors.astype(np.float64)
            best = max(best, float(np.mean((stored * own).sum(axis=1) / np.maximum(lengths, 1e-12))))
    if best < MIN_SAME_MODEL:
        raise InvalidInput(
            f"The vectors of {table} do not come from the model {encoder.name!r}: its own vectors of the same texts "
            f"have a mean cosine of {best:.2f} with them instead of about 1; name the model that made them."
        )
    notes: list[str] = []
    if best < MIN_SAME_TEXT:
        notes.append(
            f"The model's own vectors of {count_text(len(sample), 'text')} have a mean cosine of {best:.2f} with the "
            "stored ones instead of about 1: the stored ones are of another version of the model, or of other texts, "
            "such as with a title"
        )
    if np.any(np.abs(lengths - 1) > UNIT_TOLERANCE):
        notes.append("The vectors do not have length 1, so the nearest rows are ordered by their cosine")
    return notes


# Attaching


def attach_table(corpus: Corpus, name: str, url: str | None, request: TableRequest, model: str | None) -> Index:
    """Check a table and create its index, still without rows.

    Raises:
        InvalidInput: The table is not searchable; the message has the reason.
        NotFound: There is no such table.
        Conflict: There is an index with this name.
        TableUnavailable: Its server is unreachable.
    """
    address = normalise_address(url)
    database = corpus.open_elsewhere(address)
    mapped, notes = describe_table(database, request)
    table = AttachedTable(database, mapped)
    counts = table.count()
    left_out = check_counts(mapped.table, counts)
    encoder = corpus.encoder(model)
    notes += check_model(mapped.table, encoder, counts.dimensions[0], table.sample())
    known: JsonObject = mapped.to_dict() | {"is_ours": address is None, "place": database.place}
    known |= {"notes": cast("list[JsonValue]", notes), "left_out": cast("list[JsonValue]", left_out)}
    return _create(corpus, name, encoder.name, counts.dimensions[0], known, address)


def attach_for_corpus(corpus: Corpus, like: Index, dataset: str) -> Index:
    """Return the index of the same table whose rows are parts of the documents of an evaluation corpus."""
    digest = hashlib.sha256(f"{dataset} {like.name} {like.created_at}".encode()).hexdigest()[:8]
    name = f"ds_{digest}_{CHUNKER}"
    if any(index.name == name for index in corpus.indexes.list(dataset=dataset)):
        return corpus.indexes.get(name)
    assert like.attachment is not None
    address = corpus.indexes.attachment_url(like.name)
    try:
        return _create(
            corpus, name, like.embedding_model, like.dimensions, like.attachment, address, dataset, like.name
        )
    except Conflict:  # another process has just created it
        return corpus.indexes.get(name)


def _create(
    corpus: Corpus,
    name: str,
    model: str,
    dimensions: int,
    known: Mapping[str, JsonValue],
    address: str | None,
    dataset: str | None = None,
    like: str = "",
) -> Index:
    try:
        source = corpus.sources.create(f"Table {name}", source_type=DATASET)
    except Conflict as error:
        raise Conflict(str(error).replace("a source", "an index")) from error
    known = {**known, "of": like} if like else known
    empty: JsonObject = {"source": source.id, "state": "", "content": "", "rows": 0, "matched": 0, "synced_at": ""}
    try:
        return corpus.indexes.create(
            name,
            chunker=CHUNKER,
            chunker_options={"table": as_text(known["table"])},
            embedding_model=model,
            dimensions=dimensions,
            dataset=dataset,
            status="building",
            attachment={**known, **empty},
            attachment_url=address,
        )
    except Exception:
        corpus.sources.delete(source.id, [])
        raise


# Matching rows to documents

_WORD = re.compile(r"\S+")
ANCHOR_WORDS = 6  # consecutive words of a row, used to find it in a document
MAX_ROWS_PER_ANCHOR = 50  # an anchor in more rows is boilerplate
MIN_SHARED = 0.5  # share of a row's characters that must be in a document that the row does not name
_ID_FIELDS = ("document_id", "doc_id", "ref_doc_id", "id")
_URL_FIELDS = ("url", "source_url", "link", "source")
_PATH_FIELDS = ("file_path", "path", "source", "file_name", "filename")
_TITLE_FIELDS = ("title", "document_title", "file_name", "filename")


@dataclass(frozen=True, slots=True)
class Candidate:
    """A document that may contain rows."""

    id: str
    source_id: str
    key: str
    path: str | None
    url: str | None
    language: str


@dataclass(frozen=True, slots=True)
class Place:
    """The part of a document that matches a row; ``shared`` characters are equal."""

    document: Candidate
    start: int
    end: int
    shared: int


def _texts(metadata: Mapping[str, JsonValue], names: Sequence[str]) -> list[str]:
    """Return the text values of some fields, including those in a nested ``metadata``."""
    nested = metadata.get("metadata")
    places = [metadata, nested] if isinstance(nested, Mapping) else [metadata]
    values = [place.get(name) for name in names for place in places]
    return [value for value in values if isinstance(value, str) and value.strip()]


def _file_name(path: str) -> str:
    return path.replace("\\", "/").rpartition("/")[2]


@dataclass(frozen=True, slots=True)
class Names:
    """Documents by id, key, URL and file name."""

    documents: Sequence[Candidate]
    by_id: dict[str, Candidate] = field(default_factory=dict[str, Candidate])
    by_key: dict[str, list[Candidate]] = field(default_factory=lambda: defaultdict[str, list[Candidate]](list))
    by_url: dict[str, list[Candidate]] = field(default_factory=lambda: defaultdict[str, list[Candidate]](list))
    by_file: dict[str, list[Candidate]] = field(default_factory=lambda: defaultdict[str, list[Candidate]](list))

    def __post_init__(self) -> None:
        """Fill the dictionaries."""
        for one in self.documents:
            self.by_id[one.id] = one
            self.by_key[one.key].append(one)
            self.by_file[_file_name(one.path or one.key)].append(one)
            for form in list_url_forms(one.url or ""):
                self.by_url[form].append(one)


def find_named(metadata: Mapping[str, JsonValue], documents: Names) -> list[Candidate]:
    """Return the documents that a row's metadata name: by id or key, else by URL, else by path."""
    ids = _texts(metadata, _ID_FIELDS)
    urls = [form for url in _texts(metadata, _URL_FIELDS) for form in list_url_forms(url)]
    paths = [path for path in _texts(metadata, _PATH_FIELDS) if "://" not in path]
    rules = (
        [documents.by_id[key] for key in ids if key in documents.by_id],
        [one for key in ids for one in documents.by_key.get(key, ())],
        [one for url in urls for one in documents.by_url.get(url, ())],
        [
            one
            for path in paths
            for one in documents.by_file.get(_file_name(path), ())
            if is_same_file(one.path or one.key, path)
        ],
    )
    return next((list(dict.fromkeys(named)) for named in rules if named), [])


class Matching:
    """The places of some rows in documents, which are read one after the other with ``read``."""

    def __init__(self, rows: Sequence[TableRow], names: Names) -> None:
        self._rows, self._names = {row.key: row for row in rows}, names
        self._words = {row.key: _WORD.findall(row.text) for row in rows}
        self._named = {row.key: find_named(row.metadata, names) for row in rows}
        self.places: dict[str, Place] = {}
        anchors: dict[tuple[str, ...], list[tuple[str, int]]] = defaultdict(list)
        for key, words in self._words.items():
            last = len(words) - ANCHOR_WORDS
            for at in sorted({0, last // 3, last // 2, last}) if last >= 0 else ():
                anchors[tuple(words[at : at + ANCHOR_WORDS])].append((key, at))
        self._anchors = {anchor: rows for anchor, rows in anchors.items() if len(rows) <= MAX_ROWS_PER_ANCHOR}

    @property
    def document_ids(self) -> list[str]:
        """The ids of the documents to read: those that are named, or all if a row names none."""
        if all(self._named.values()):
            return list({one.id: None for named in self._named.values() for one in named})
        return [one.id for one in self._names.documents]

    def read(self, document_id: str, text: str) -> None:
        """Find the rows that a document contains."""
        document = self._names.by_id[document_id]
        spans = [match.span() for match in _WORD.finditer(text)]
        words = [text[start:end] for start, end in spans]
        for at in range(len(words) - ANCHOR_WORDS + 1):
            for key, offset in self._anchors.get(tuple(words[at : at + ANCHOR_WORDS]), ()):
                self._extend(key, document, words, spans, at, offset)
        for key, named in self._named.items():
            if document in named and key not in self.places:
                self._place_roughly(key, document, words, spans)

    def _extend(
        self,
        key: str,
        document: Candidate,
        words: Sequence[str],
        spans: Sequence[tuple[int, int]],
        at: int,
        offset: int,
    ) -> None:
        """Take the longest run of equal words around an anchor, if it is the best place so far."""
        own, before, after = self._words[key], 0, ANCHOR_WORDS
        while before < min(at, offset) and words[at - before - 1] == own[offset - before - 1]:
            before += 1
        most = min(len(words) - at, len(own) - offset)
        while after < most and words[at + after] == own[offset + after]:
            after += 1
        start, end = spans[at - before][0], spans[at + after - 1][1]
        named = self._named[key]
        whole = sum(map(len, own)) + len(own) - 1
        is_enough = document in named or (end - start >= MIN_OVERLAP_CHARS and end - start >= MIN_SHARED * whole)
        known = self.places.get(key)
        shared = end - start + (1 if document in named else 0)
        if is_enough and not (named and document not in named) and (known is None or shared > known.shared):
            self.places[key] = Place(document, start, end, shared)

    def _place_roughly(
        self, key: str, document: Candidate, words: Sequence[str], spans: Sequence[tuple[int, int]]
    ) -> None:
        """Place a row whose text a named document does not have at the part with most of its words."""
        own = {word.lower() for word in self._words[key]}
        size = max(1, len(self._words[key]))
        starts = range(0, max(1, len(words)), max(1, size // 2))
        overlaps = {at: len(own.intersection(map(str.lower, words[at : at + size]))) for at in starts}
        at = max(overlaps, key=lambda start: overlaps[start])
        last = min(len(words), at + size) - 1
        if last >= at:
            self.places[key] = Place(document, spans[at][0], spans[last][1], 0)


# Reading the rows

MATCHED_AT_ONCE = 5_000  # rows located in one pass over the documents
WRITTEN_AT_ONCE = 128  # rows embedded and written together
DOCUMENTS_AT_ONCE = 100  # documents whose texts are in memory


@dataclass(frozen=True, slots=True)
class _KnownRow:
    key: str
    hash: bytes
    source_id: str
    outdated: bool  # whether its document has changed since


class TableSync:
    """One synchronisation of an attached index with its table."""

    def __init__(
        self, corpus: Corpus, index: Index, on_progress: OnProgress | None = None, should_stop: ShouldStop | None = None
    ) -> None:
        """``on_progress`` counts the rows that are read; ``should_stop`` is polled between batches."""
        assert index.attachment is not None
        self._corpus, self._index = corpus, index
        self._source = as_text(index.attachment["source"])
        store = corpus.store(index)
        assert isinstance(store, AttachedStore)
        self._table = store.table
        self._on_progress, self._should_stop = on_progress, should_stop
        self._hashes: dict[str, bytes] = {}
        self._known: dict[str, _KnownRow] = {}

    def run(self) -> Index:
        """Add new rows, replace changed ones, remove those that are gone, and match rows to documents again.

        Raises:
            InvalidInput: Another model has embedded the rows again.
            TableUnavailable: The server of the table is unreachable.
            Cancelled: ``should_stop`` returned True; what was read is kept.
        """
        corpus, index = self._corpus, self._index
        model_notes = self._check_model()
        self._hashes, state = self._table.list_hashes()
        query = statement("attached_rows", index.name)
        rows = corpus.database.rows(query, {"index": index.name})
        known = [_KnownRow(row["key"], bytes(row["hash"]), row["source_id"], row["outdated"]) for row in rows]
        self._known = {row.key: row for row in known}
        self._remove([key for key in self._known if key not in self._hashes])
        names = self._list_documents()
        own = {row.key for row in known if row.source_id == self._source}  # may be parts of documents that are new
        todo = [key for key in self._hashes if key in own or not self._is_same(key)]
        done = 0
        for window in split_windows(todo, MATCHED_AT_ONCE):
            found = self._table.fetch(window)
            places = self._match(found, names)
            changed = [row for row in found if row.key in places or not self._is_same(row.key)]
            for batch in split_windows(changed, WRITTEN_AT_ONCE):
                self._look(done, len(todo))
                self._write(batch, places)
                done += len(batch)
            done += len(found) - len(changed)
        self._finish(state, model_notes)
        return corpus.indexes.with_counts(index.name)

    def _check_model(self) -> list[str]:
        """Return notes on the model of the present vectors. Raises InvalidInput if it is another one."""
        table, sample = self._table.map.table, self._table.sample()
        if not sample:  # the table has been emptied
            return []
        found = sorted({len(row.vector) for row in sample if row.vector is not None})
        if found != [self._index.dimensions]:
            raise InvalidInput(
                f"The vectors of {table} had {self._index.dimensions:,} dimensions and now have "
                f"{', '.join(map(str, found))}; attach it again under another name."
            )
        return check_model(table, self._corpus.index_encoder(self._index), self._index.dimensions, sample)

    def _is_same(self, key: str) -> bool:
        return self._has_same_text(key) and not self._known[key].outdated

    def _look(self, done: int, total: int) -> None:
        if self._should_stop is not None and self._should_stop():
            raise Cancelled("Stopped; the rows that were read are kept.")
        if self._on_progress is not None:
            self._on_progress(Progress(done, total, f"{done:,} of {total:,} rows read"))

    def _list_documents(self) -> Names:
        rows = self._corpus.database.rows(statement("attached_candidates"), {"dataset": self._index.dataset})
        return Names([Candidate(**row) for row in rows])

    def _match(self, rows: Sequence[TableRow], names: Names) -> dict[str, Place]:
        matching = Matching(rows, names)
        for ids in split_windows(matching.document_ids, DOCUMENTS_AT_ONCE):
            for row in self._corpus.database.rows(statement("attached_texts"), {"ids": list(ids)}):
                matching.read(row["id"], row["text"])
        return matching.places

    def _remove(self, keys: Sequence[str]) -> None:
        with self._corpus.database.transaction() as connection:
            self._delete(connection, keys)
            values = {"source_id": self._source, "keys": list(keys)}
            connection.execute(statement("attached_documents_delete"), values)

    def _delete(self, connection: Connection, keys: Sequence[str]) -> None:
        self._corpus.indexes.take_turn(connection, self._index.name)
        nodes = [make_row_id(self._index.name, key) for key in keys]
        connection.execute(statement("attached_delete", self._index.name), {"node_ids": nodes})

    def _write(self, rows: Sequence[TableRow], places: Mapping[str, Place]) -> None:
        bits = self._compute_bits(rows)
        with self._corpus.database.transaction() as connection:
            self._delete(connection, [row.key for row in rows])
            matched = {"source_id": self._source, "keys": [row.key for row in rows if row.key in places]}
            connection.execute(statement("attached_documents_delete"), matched)
            passages = [self._make_passage(connection, row, places.get(row.key)) for row in rows]
            insert_passages(connection, self._index.name, passages, [None] * len(rows), bits)

    def _compute_bits(self, rows: Sequence[TableRow]) -> list[bytes | None]:
        """Return the token bits for late interaction: those of unchanged rows, and the built-in model's of others."""
        name = self._index.name
        with self._corpus.database.reading() as connection:
            same = [make_row_id(name, row.key) for row in rows if self._has_same_text(row.key)]
            numbers = fetch_internal_ids(connection, name, same)
            stored = fetch_token_bits(connection, name, list(numbers.values()))
        bits = {node: stored[number] for node, number in numbers.items() if number in stored}
        encoder = self._corpus.index_encoder(self._index)
        tokens = encoder.tokens if isinstance(encoder, CompanionEncoder) else encoder
        missing = [row for row in rows if make_row_id(name, row.key) not in bits]
        if missing and tokens.has_token_vectors:
            computed = tokens.encode([row.text for row in missing]).token_bits or []
            bits |= {make_row_id(name, row.key): value for row, value in zip(missing, computed, strict=False)}
        return [bits.get(make_row_id(name, row.key)) for row in rows]

    def _has_same_text(self, key: str) -> bool:
        known = self._known.get(key)
        return known is not None and known.hash == self._hashes[key]

    def _make_passage(self, connection: Connection, row: TableRow, place: Place | None) -> RowPassage:
        """Return a row as a passage of the document it is a part of, or of a document of its own."""
        value = self._hashes[row.key]
        if place is None:
            language = detect_document_language(row.text, "text")
            urls = [url for url in _texts(row.metadata, _URL_FIELDS) if "://" in url]
            paths = [path for path in _texts(row.metadata, _PATH_FIELDS) if "://" not in path]
            document = NewDocument(
                source_id=self._source,
                key=row.key,
                title=make_title(row),
                text=row.text,
                content_hash=value.hex(),
                url=next(iter(urls), None),
                path=next(iter(paths), None),
                language=language,
                metadata={name: item for name, item in row.metadata.items() if not name.startswith("_")},
            )
            document_id, source_id = self._corpus.documents.write(connection, document)[0], self._source
            start, end = 0, len(row.text)
        else:
            document_id, source_id, language = place.document.id, place.document.source_id, place.document.language
            start, end = place.start, place.end
        return RowPassage(
            document_id=document_id,
            source_id=source_id,
            text=row.text,
            context="",
            start=start,
            end=end,
            ordinal=start,
            language=language,
            metadata={"row": row.key, "kind": "text"},
            key=row.key,
            row_hash=value,
        )

    def _finish(self, state: str, notes: Sequence[str]) -> None:
        """Record the state of the table, and the documents that the index has now."""
        corpus, index = self._corpus, self._index
        values = {"index": index.name}
        with corpus.database.transaction() as connection:
            connection.execute(statement("attached_documents_forget"), values)
            connection.execute(statement("attached_documents_count", index.name), values)
        rows = corpus.database.rows(statement("attached_rows", index.name), values)
        matched = sum(row["source_id"] != self._source for row in rows)
        known = dict(index.attachment or {})
        known |= {
            "notes": [*dict.fromkeys([*cast("list[str]", known.get("notes", [])), *notes])],
            "state": state,
            "content": hash_rows(self._hashes),
            "rows": len(rows),
            "matched": matched,
            "synced_at": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        corpus.indexes.set_attachment(index.name, known)
        corpus.indexes.set_status(index.name, "ready")


def make_title(row: TableRow) -> str:
    """Return the title of a row that is a document of its own: its metadata's, or the beginning of its text."""
    named = _texts(row.metadata, _TITLE_FIELDS) or _texts(row.metadata, ("source", "url", "file_path", "path"))
    title = PurePosixPath(named[0]).name if named and "://" not in named[0] else next(iter(named), "")
    return " ".join((title or row.text).split())[:80]

"""The benchmark's database: a synthetic corpus in its own index, with resumable loading."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np

from benchmarks.synthetic_corpus import PASSAGES_PER_DOCUMENT, SyntheticCorpus, SyntheticPassage, to_new_passage
from workbench.settings import Settings
from workbench.storage.documents import NewDocument
from workbench.storage.passages import insert_passages
from workbench.types import Index, Source
from workbench.workbench import Workbench

BATCH_PASSAGES = 10_000  # per transaction: about eight seconds
SOURCE_PARTS = ("large", "small", "leaving")
SMALL_SOURCE_INTERVAL = 100  # one passage in this many is in the small source, for the 1% scope
DELETED_SOURCE_INTERVAL = 4  # one in this many is in the source that is deleted at the end
PROGRESS_INTERVAL_S = 10.0  # between progress lines
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class BenchCorpus:
    """A filled index and its sources; this run loaded ``loaded`` passages in ``load_seconds``.

    One passage in a hundred is in ``small``, and a quarter in ``leaving``, which is deleted at the end.
    ``graph_seconds`` is 0 if nothing was loaded; it includes packing and measuring.
    """

    wb: Workbench
    index: Index
    large: Source
    small: Source
    leaving: Source
    loaded: int
    load_seconds: float
    graph_seconds: float


def open_bench(home: Path) -> Workbench:
    """Open a separate workbench in the data folder, so that the user's corpus is not touched."""
    return Workbench.open(settings=Settings(home=home / "bench", database_url=None, _env_file=None))  # pyright: ignore[reportCallIssue]


def count_loaded(wb: Workbench, passages: int) -> int:
    """Return the number of passages of this corpus that are already loaded."""
    return wb.corpus.indexes.with_counts(_index_name(passages)).passages_count if _find_sources(wb, passages) else 0


def fill_corpus(
    wb: Workbench,
    passages: int,
    synthetic: SyntheticCorpus,
    say: Say = lambda text: None,
    batch: int = BATCH_PASSAGES,
) -> BenchCorpus:
    """Fill an index with the first ``passages`` synthetic passages, resuming an earlier run."""
    sources = _find_sources(wb, passages) or _create_corpus(wb, passages)
    index = wb.corpus.indexes.get(_index_name(passages))
    store = wb.corpus.store(index)
    first = count_loaded(wb, passages)
    began = time.perf_counter()
    if first < passages:
        _load_passages(wb, index, sources, synthetic, range(first, passages), batch, say)
    loaded = time.perf_counter()
    graph_seconds = 0.0
    if first < passages:
        store.pack()
        store.maintain_graph(say)
        graph_seconds = time.perf_counter() - loaded
        index = wb.corpus.indexes.get(index.name)
    return BenchCorpus(wb, index, *sources, passages - first, loaded - began, graph_seconds)


def delete_corpus(wb: Workbench, passages: int) -> None:
    """Delete the corpus of this size; a partly deleted one is not reused."""
    titles = {f"{_index_name(passages)} {part}" for part in SOURCE_PARTS}
    mine = [source for source in wb.corpus.sources.list(source_type="dataset") if source.title in titles]
    for source in sorted(mine, key=lambda source: SOURCE_PARTS.index(source.title.split()[1]), reverse=True):
        wb.sources.delete(source.id)


def _index_name(passages: int) -> str:
    return f"bench_{passages}"


def _find_sources(wb: Workbench, passages: int) -> tuple[Source, Source, Source] | None:
    """Return the sources of a partly loaded corpus, if nothing has been deleted from it."""
    found = {source.title: source for source in wb.corpus.sources.list(source_type="dataset")}
    large, small, leaving = (found.get(f"{_index_name(passages)} {part}") for part in SOURCE_PARTS)
    if large is None or small is None or leaving is None:
        return None
    indexed = wb.corpus.indexes.of_dataset(large.id)
    return (large, small, leaving) if _index_name(passages) in indexed else None


def _create_corpus(wb: Workbench, passages: int) -> tuple[Source, Source, Source]:
    delete_corpus(wb, passages)
    corpus, name = wb.corpus, _index_name(passages)
    large, small, leaving = (corpus.sources.create(f"{name} {part}", source_type="dataset") for part in SOURCE_PARTS)
    encoder = corpus.encoder()
    corpus.indexes.create(
        name,
        chunker="structure",
        chunker_options={},
        embedding_model=encoder.name,
        dimensions=encoder.dimensions,
        dataset=large.id,
    )
    return large, small, leaving


def _load_passages(
    wb: Workbench,
    index: Index,
    sources: Sequence[Source],
    synthetic: SyntheticCorpus,
    numbers: range,
    batch: int,
    say: Say,
) -> None:
    """Write the passages with these numbers, one transaction per batch; the next batch is generated in parallel."""
    began = told = time.perf_counter()
    batches = _split_batches(synthetic.passages(numbers.stop, numbers.start), batch)
    with ThreadPoolExecutor(1) as maker:
        coming = maker.submit(next, batches, None)
        for first in range(numbers.start, numbers.stop, batch):
            pieces = coming.result() or []
            coming = maker.submit(next, batches, None)
            _write_batch(wb, index, sources, pieces, first)
            now, done = time.perf_counter(), first + len(pieces)
            if now - told > PROGRESS_INTERVAL_S:
                told = now
                left = (now - began) / (done - numbers.start) * (numbers.stop - done)
                say(f"{done:,} of {numbers.stop:,} passages loaded; about {left / 60:.0f} min left")


def _write_batch(
    wb: Workbench, index: Index, sources: Sequence[Source], batch: list[SyntheticPassage], first: int
) -> None:
    large, small, leaving = sources
    corpus = wb.corpus
    with corpus.database.transaction() as connection:
        passages = []
        for start in range(0, len(batch), PASSAGES_PER_DOCUMENT):
            number = first + start
            place = number // PASSAGES_PER_DOCUMENT
            source = (
                small
                if place % SMALL_SOURCE_INTERVAL == 0
                else leaving
                if place % DELETED_SOURCE_INTERVAL == 1
                else large
            )
            pieces = batch[start : start + PASSAGES_PER_DOCUMENT]
            text = "\n\n".join(piece.text for piece in pieces)
            document = NewDocument(
                source_id=source.id, key=f"d{number}", title=f"Document {number}", text=text, content_hash=str(number)
            )
            document_id, *_ = corpus.documents.write(connection, document)
            passages += [to_new_passage(piece, place, document_id, source.id) for place, piece in enumerate(pieces)]
            corpus.indexes.record_document(connection, index.name, document_id, str(number), len(pieces))
        vectors = np.stack([piece.vector for piece in batch])
        bits = [piece.token_bits for piece in batch]
        insert_passages(connection, index.name, passages, vectors, bits)


def _split_batches(pieces: Iterator[SyntheticPassage], size: int) -> Iterator[list[SyntheticPassage]]:
    while batch := list(islice(pieces, size)):
        yield batch

"""The bench's own database: a corpus of synthetic passages, in our index and in the framework's own table."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np

from evals.bench.synthetic_corpus import PASSAGES_A_DOCUMENT, SyntheticCorpus, SyntheticPassage, as_new_passage
from workbench.settings import Settings
from workbench.storage.documents import NewDocument
from workbench.storage.rows import insert_passages
from workbench.types import Index, Source
from workbench.workbench import Workbench

BATCH = 2_000  # passages a transaction
SMALL_SHARE = 100  # one passage in this many lies in the small source, for the 1 % scope
LEAVING_SHARE = 4  # and one in this many in the source that is deleted at the end


@dataclass(frozen=True, slots=True)
class BenchCorpus:
    """A filled index with its sources, and the seconds that filling it took.

    One passage in a hundred is in ``small``, a quarter is in ``leaving``, which is deleted at the end.
    """

    workbench: Workbench
    index: Index
    large: Source
    small: Source
    leaving: Source
    load_seconds: float
    graph_seconds: float


def open_bench(home: Path) -> Workbench:
    """Open a workbench of the bench's own below the data folder, so that nobody's corpus is touched."""
    return Workbench.open(settings=Settings(home=home / "bench", database_url=None, _env_file=None))  # pyright: ignore[reportCallIssue]


def fill(workbench: Workbench, passages: int, synthetic: SyntheticCorpus) -> BenchCorpus:
    """Fill an index of its own with the first ``passages`` synthetic passages (anew each time)."""
    corpus = workbench.corpus
    name = f"bench_{passages}"
    for source in corpus.sources.list(source_type="dataset"):
        if source.title.startswith(name + " "):
            workbench.sources.delete(source.id)
    large = corpus.sources.create(f"{name} large", source_type="dataset")
    small = corpus.sources.create(f"{name} small", source_type="dataset")
    leaving = corpus.sources.create(f"{name} leaving", source_type="dataset")
    encoder = corpus.encoder()
    index = corpus.indexes.create(
        name,
        chunker="structure",
        chunker_options={},
        embedding_model=encoder.name,
        dimensions=encoder.dimensions,
        dataset=large.id,
    )
    store = corpus.store(index)
    began = time.perf_counter()
    loaded = began
    with store.bulk_load():
        pieces = synthetic.passages(passages)
        for number, batch in enumerate(_batches(pieces, BATCH)):
            _write(workbench, index, (large, small, leaving), batch, number * BATCH)
        loaded = time.perf_counter()
    return BenchCorpus(workbench, index, large, small, leaving, loaded - began, time.perf_counter() - loaded)


def _write(
    workbench: Workbench, index: Index, sources: Sequence[Source], batch: list[SyntheticPassage], first: int
) -> None:
    large, small, leaving = sources
    corpus = workbench.corpus
    with corpus.database.transaction() as connection:
        passages = []
        for start in range(0, len(batch), PASSAGES_A_DOCUMENT):
            number = first + start
            place = number // PASSAGES_A_DOCUMENT
            source = small if place % SMALL_SHARE == 0 else leaving if place % LEAVING_SHARE == 1 else large
            pieces = batch[start : start + PASSAGES_A_DOCUMENT]
            text = "\n\n".join(piece.text for piece in pieces)
            document = NewDocument(
                source_id=source.id, key=f"d{number}", title=f"Document {number}", text=text, content_hash=str(number)
            )
            document_id, *_ = corpus.documents.write(connection, document)
            passages += [as_new_passage(piece, place, document_id, source.id) for place, piece in enumerate(pieces)]
            corpus.indexes.holding(connection, index.name, document_id, str(number), len(pieces))
        vectors = np.stack([piece.vector for piece in batch])
        bits, divided = [piece.token_bits for piece in batch], index.buckets > 0
        insert_passages(connection, index.name, passages, vectors, bits, divided=divided)


def _batches(pieces: Iterator[SyntheticPassage], size: int) -> Iterator[list[SyntheticPassage]]:
    while batch := list(islice(pieces, size)):
        yield batch

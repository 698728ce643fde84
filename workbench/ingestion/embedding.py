"""Vectors for new passages: those that the same text had before, else those that the model computes."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from workbench.ingestion.vector_file import VectorFile
from workbench.models.encoder import Encoder, OnBatch
from workbench.storage.passages import NewPassage
from workbench.storage.store import PassageStore

T = TypeVar("T")
WINDOW = 512  # passages whose texts and tokens are in memory at once, of a book of thousands


@dataclass(frozen=True, slots=True)
class EmbeddedPassages:
    """The vectors and token bits of passages, in order; ``computed`` went through the model."""

    rows: Sequence[int]  # of each passage in the file; passages of one text share a row
    file: VectorFile
    computed: int
    parts: Sequence[int] = ()  # that workers embedded together; they are dropped with the write

    def __iter__(self) -> Iterator[tuple[NDArray[np.float32], bytes | None]]:
        """Yield each passage's vector and its token bits, where the model has token vectors."""
        return (self.file.read(row) for row in self.rows)


def embed(
    passages: Iterable[NewPassage],
    encoder: Encoder,
    stores: Sequence[PassageStore],
    on_batch: OnBatch | None = None,
    on_known: Callable[[int], None] | None = None,
) -> EmbeddedPassages:
    """Embed passages, a window at a time; ``stores`` are the indexes of the same model whose vectors may be used again.

    ``on_known`` receives the number of passages that needed no embedding, ``on_batch`` of those just embedded.
    """
    file = VectorFile()
    row_of: dict[bytes, int] = {}
    rows = array("I")
    computed = 0
    for window in windows(passages, WINDOW):
        hashes = [passage.passage_hash for passage in window]
        for key, (vector, bits) in known_vectors(stores, {key for key in hashes if key not in row_of}).items():
            row_of[key] = file.append(vector, bits)
        texts = {key: passage.embedded_text for key, passage in zip(hashes, window, strict=True) if key not in row_of}
        if on_known is not None and len(texts) < len(window):
            on_known(len(window) - len(texts))
        encoded = encoder.encode(list(texts.values()), on_batch=on_batch)
        for place, key in enumerate(texts):
            bits = encoded.token_bits[place] if encoded.token_bits else None
            row_of[key] = file.append(encoded.vectors[place], bits)
        rows.extend(row_of[key] for key in hashes)
        computed += len(texts)
    return EmbeddedPassages(rows, file, computed)


def windows(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """Yield neighbouring items in lists of at most ``size``."""
    rest = iter(items)
    while window := list(islice(rest, size)):
        yield window


def known_vectors(
    stores: Sequence[PassageStore], hashes: set[bytes]
) -> dict[bytes, tuple[NDArray[np.float32], bytes | None]]:
    """Return the vectors and token bits that texts have in some index already, by the texts' hashes."""
    embeddings: dict[bytes, tuple[NDArray[np.float32], bytes | None]] = {}
    for store in stores:
        missing = [key for key in hashes if key not in embeddings]
        if missing:
            embeddings |= store.known_embeddings(missing)
    return embeddings

"""Vectors for new passages: those that the same text had before, else those that the model computes."""

from __future__ import annotations

import tempfile
import time
import weakref
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from workbench.errors import Cancelled, WorkbenchError
from workbench.formatting import MB
from workbench.models.encoder import Encoder, OnBatch
from workbench.storage.job_parts import MOST_TIMES, PAUSE, EmbeddingHands, EmbeddingPart, PartLost
from workbench.storage.passages import NewPassage
from workbench.storage.store import PassageStore
from workbench.types import ShouldStop
from workbench.types.progress import slow_step

# --- Vectors on their way from the model to the database: few stay in memory, those of a book in a file ---

IN_MEMORY = 2 * MB  # bytes of vectors and token bits; a batch of small documents takes a third of it
NO_BITS = -1  # in the place of their number of bytes


class VectorFile:
    """Vectors and token bits by their row, in a nameless temporary file that ends with its last user."""

    def __init__(self) -> None:
        file = tempfile.SpooledTemporaryFile(max_size=IN_MEMORY)  # noqa: SIM115 - closed when nothing refers to it
        self._file = file
        self._places = array("Q", (0,))
        self._bits = array("l")
        weakref.finalize(self, file.close)

    def __len__(self) -> int:
        return len(self._bits)

    def append(self, vector: NDArray[np.float32], token_bits: bytes | None) -> int:
        """Keep a vector and its tokens; returns its row."""
        data = vector.tobytes()
        self._file.seek(self._places[-1])
        self._file.write(data)
        self._file.write(token_bits or b"")
        self._places.append(self._places[-1] + len(data) + len(token_bits or b""))
        self._bits.append(NO_BITS if token_bits is None else len(token_bits))
        return len(self._bits) - 1

    def read(self, row: int) -> tuple[NDArray[np.float32], bytes | None]:
        """Return the vector and the token bits of a row."""
        first, after, bits = self._places[row], self._places[row + 1], self._bits[row]
        self._file.seek(first)
        data = self._file.read(after - first)
        if bits == NO_BITS:
            return np.frombuffer(data, dtype=np.float32), None
        return np.frombuffer(data, dtype=np.float32, count=(len(data) - bits) // 4), data[len(data) - bits :]


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


# --- The embedding of many passages by several workers: their texts are offered in parts, their vectors collected ---

PART = 128  # passages of a part
LEAST = 3 * PART  # passages from which on they are offered to others


class SharedEmbedding:
    """The passages of one write, embedded together with other workers; used once."""

    def __init__(
        self,
        encoder: Encoder,
        stores: Sequence[PassageStore],
        hands: EmbeddingHands,
        on_batch: OnBatch | None = None,
        on_known: Callable[[int], None] | None = None,
    ) -> None:
        """Take the arguments of ``embed``; ``on_batch`` counts what others embedded, too, and may raise to stop."""
        self._encoder, self._stores, self._hands = encoder, stores, hands
        self._on_batch, self._on_known = on_batch or _nobody, on_known or _nobody
        self._file = VectorFile()
        self._row_of: dict[bytes, int] = {}
        self._hashes: list[bytes] = []  # of every passage, in order
        self._offered: set[bytes] = set()  # texts that are in a part
        self._waiting: set[int] = set()  # parts that are not done
        self._parts: list[int] = []
        self._computed = 0

    def embed(self, passages: Iterable[NewPassage]) -> EmbeddedPassages:
        """Embed passages, in order.

        Raises:
            PartLost: the job was started anew, or deleted, meanwhile.
            WorkbenchError: a part was taken too often: it kills its workers.
        """
        for window in windows(passages, WINDOW):
            self._offer(window)
            self._on_batch(0)
        while self._waiting:
            part = self._hands.take(self._encoder.name)
            if part is not None:
                embed_part(self._hands, part, self._encoder, self._on_batch)
            before = self._computed
            self._look()
            self._on_batch(self._computed - before)
            if part is None and self._waiting:
                self._on_known(0)  # tells once more: the last word may have been left out
                time.sleep(PAUSE)
        for part_id in self._parts:
            for key, (vector, bits) in self._hands.parts.vectors(part_id):
                if key not in self._row_of:
                    self._row_of[key] = self._file.append(vector, bits)
            self._on_batch(0)
        try:
            rows = array("I", (self._row_of[key] for key in self._hashes))
        except KeyError as error:
            raise PartLost("its vectors are gone") from error
        return EmbeddedPassages(rows, self._file, self._computed, tuple(self._parts))

    def _offer(self, window: Sequence[NewPassage]) -> None:
        """Find the vectors that texts have already, and offer the others, in parts."""
        hashes = [passage.passage_hash for passage in window]
        self._hashes += hashes
        texts = {
            key: passage.embedded_text
            for key, passage in zip(hashes, window, strict=True)
            if key not in self._row_of and key not in self._offered
        }
        for key, (vector, bits) in known_vectors(self._stores, set(texts)).items():
            self._row_of[key] = self._file.append(vector, bits)
            del texts[key]
        missing = len(texts)
        for adopted in self._hands.adopt(self._encoder.name, list(texts)):
            self._await(adopted.id, adopted.hashes)
            before = len(texts)
            texts = {key: text for key, text in texts.items() if key not in self._offered}
            if adopted.done:
                self._waiting.discard(adopted.id)
                missing -= before - len(texts)
        if missing < len(window):
            self._on_known(len(window) - missing)
        for some in windows(texts.items(), PART):
            keys = [key for key, _ in some]
            part_id = self._hands.publish(self._encoder.name, keys, [text for _, text in some])
            if part_id is None:
                raise PartLost("its job is gone")
            self._await(part_id, keys)

    def _await(self, part_id: int, hashes: Iterable[bytes]) -> None:
        self._offered.update(hashes)
        self._parts.append(part_id)
        self._waiting.add(part_id)

    def _look(self) -> None:
        """See which parts were done meanwhile, by anybody."""
        standings = self._hands.parts.standing(list(self._waiting))
        if len(standings) < len(self._waiting):
            raise PartLost("its parts are gone")
        for standing in standings:
            if standing.given_up:
                raise WorkbenchError(
                    f"Workers left a part of it {MOST_TIMES} times; see the machine's memory, then resume it."
                )
            if standing.done:
                self._waiting.discard(standing.id)
                self._computed += standing.passages


def embed_part(hands: EmbeddingHands, part: EmbeddingPart, encoder: Encoder, ask: OnBatch) -> None:
    """Embed the texts of a part and keep their vectors; ``ask`` is called with 0 again and again, and may raise."""
    with slow_step():
        encoded = encoder.encode(part.texts, on_batch=lambda _: ask(0))
    hands.done(part, encoded.vectors, encoded.token_bits)


def help_to_embed(hands: EmbeddingHands, encoder: Encoder, ask: OnBatch) -> None:
    """Embed one part for others, where one waits; ``ask`` as for ``embed_part``."""
    part = hands.take(encoder.name)
    if part is not None:
        embed_part(hands, part, encoder, ask)


def embed_waiting(hands: EmbeddingHands, encoder_of: Callable[[str], Encoder], should_stop: ShouldStop) -> None:
    """Embed parts for others until none waits, or this worker is wanted elsewhere. Raises Cancelled."""

    def ask(_: int) -> None:
        if should_stop():
            raise Cancelled("Stopped; what was embedded before this moment stays.")

    while not should_stop() and (part := hands.take()) is not None:
        embed_part(hands, part, encoder_of(part.model), ask)


def _nobody(_: int) -> None:
    """Tell nobody."""

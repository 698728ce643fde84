"""Vectors for new passages, reused from stored passages with the same text or computed by the model."""

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
from workbench.storage.jobs import GIVEN_UP, POLL_INTERVAL_S, EmbeddingLease, EmbeddingPart, PartLost
from workbench.storage.passages import NewPassage
from workbench.storage.store import PassageStore
from workbench.types import ShouldStop, mark_slow_step

# --- Vectors between model and database ---

MAX_MEMORY_BYTES = 2 * MB  # bytes of vectors and token bits; a batch of small documents takes a third
NO_BITS_LENGTH = -1  # stored instead of a byte count


class VectorFile:
    """Vectors and token bits by row, in an unnamed temporary file that is deleted with its last reference."""

    def __init__(self) -> None:
        file = tempfile.SpooledTemporaryFile(max_size=MAX_MEMORY_BYTES)  # noqa: SIM115 - closed with its last reference
        self._file = file
        self._places = array("Q", (0,))
        self._bits = array("l")
        weakref.finalize(self, file.close)

    def __len__(self) -> int:
        return len(self._bits)

    def append(self, vector: NDArray[np.float32], token_bits: bytes | None) -> int:
        """Store a vector and its token bits; return its row."""
        data = vector.tobytes()
        self._file.seek(self._places[-1])
        self._file.write(data)
        self._file.write(token_bits or b"")
        self._places.append(self._places[-1] + len(data) + len(token_bits or b""))
        self._bits.append(NO_BITS_LENGTH if token_bits is None else len(token_bits))
        return len(self._bits) - 1

    def read(self, row: int) -> tuple[NDArray[np.float32], bytes | None]:
        """Return the vector and the token bits of a row."""
        first, after, bits = self._places[row], self._places[row + 1], self._bits[row]
        self._file.seek(first)
        data = self._file.read(after - first)
        if bits == NO_BITS_LENGTH:
            return np.frombuffer(data, dtype=np.float32), None
        return np.frombuffer(data, dtype=np.float32, count=(len(data) - bits) // 4), data[len(data) - bits :]


T = TypeVar("T")
WINDOW_PASSAGES = 512  # passages whose texts and tokens are in memory at once


@dataclass(frozen=True, slots=True)
class EmbeddedPassages:
    """The vectors and token bits of passages, in order."""

    rows: Sequence[int]  # row of each passage in the file; passages with the same text share one
    file: VectorFile  # the vectors and token bits
    computed: int  # number of texts that the model embedded
    parts: Sequence[int] = ()  # parts embedded by several workers, which are deleted when the vectors are written

    def __iter__(self) -> Iterator[tuple[NDArray[np.float32], bytes | None]]:
        """Yield each passage's vector and its token bits, or None if the model has no token vectors."""
        return (self.file.read(row) for row in self.rows)


def embed_passages(
    passages: Iterable[NewPassage],
    encoder: Encoder,
    stores: Sequence[PassageStore],
    on_batch: OnBatch | None = None,
    on_known: Callable[[int], None] | None = None,
) -> EmbeddedPassages:
    """Embed passages, one window at a time.

    Args:
        passages: The passages.
        encoder: The model.
        stores: Indexes of the same model whose vectors are reused.
        on_batch: Called with the number of passages just embedded; may raise to stop.
        on_known: Called with the number of passages that needed no embedding.
    """
    file = VectorFile()
    row_of: dict[bytes, int] = {}
    rows = array("I")
    computed = 0
    for window in split_windows(passages, WINDOW_PASSAGES):
        hashes = [passage.passage_hash for passage in window]
        for key, (vector, bits) in find_known_vectors(stores, {key for key in hashes if key not in row_of}).items():
            row_of[key] = file.append(vector, bits)
        texts = {key: passage.text_to_embed for key, passage in zip(hashes, window, strict=True) if key not in row_of}
        if on_known is not None and len(texts) < len(window):
            on_known(len(window) - len(texts))
        encoded = encoder.encode(list(texts.values()), on_batch=on_batch)
        for place, key in enumerate(texts):
            bits = encoded.token_bits[place] if encoded.token_bits else None
            row_of[key] = file.append(encoded.vectors[place], bits)
        rows.extend(row_of[key] for key in hashes)
        computed += len(texts)
    return EmbeddedPassages(rows, file, computed)


def split_windows(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """Yield consecutive items in lists of at most ``size``."""
    rest = iter(items)
    while window := list(islice(rest, size)):
        yield window


def find_known_vectors(
    stores: Sequence[PassageStore], hashes: set[bytes]
) -> dict[bytes, tuple[NDArray[np.float32], bytes | None]]:
    """Return stored vectors and token bits by text hash."""
    embeddings: dict[bytes, tuple[NDArray[np.float32], bytes | None]] = {}
    for store in stores:
        missing = [key for key in hashes if key not in embeddings]
        if missing:
            embeddings |= store.load_embeddings(missing)
    return embeddings


# --- Embedding by several workers ---

PART_PASSAGES = 128  # passages per part
MIN_SHARED_PASSAGES = 3 * PART_PASSAGES  # smallest number of passages that is offered to other workers


class SharedEmbedding:
    """The passages of one write, embedded together with other workers. An instance is used once."""

    def __init__(
        self,
        encoder: Encoder,
        stores: Sequence[PassageStore],
        hands: EmbeddingLease,
        on_batch: OnBatch | None = None,
        on_known: Callable[[int], None] | None = None,
    ) -> None:
        """Args:
        encoder: The model.
        stores: Indexes of the same model whose vectors are reused.
        hands: Table of the parts offered to workers.
        on_batch: Called with the number of passages that this or another worker embedded; may raise to stop.
        on_known: Called with the number of passages that needed no embedding.
        """
        self._encoder, self._stores, self._hands = encoder, stores, hands
        self._on_batch, self._on_known = on_batch or (lambda _: None), on_known or (lambda _: None)
        self._file = VectorFile()
        self._row_of: dict[bytes, int] = {}
        self._hashes: list[bytes] = []  # for every passage, in order
        self._offered: set[bytes] = set()  # texts that are already in a part
        self._waiting: set[int] = set()  # unfinished parts
        self._parts: list[int] = []
        self._computed = 0

    def embed(self, passages: Iterable[NewPassage]) -> EmbeddedPassages:
        """Embed passages, in order.

        Raises:
            PartLost: The job was restarted or deleted in the meantime.
            WorkbenchError: A part was taken too often, because it crashes its workers.
        """
        for window in split_windows(passages, WINDOW_PASSAGES):
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
                self._on_known(0)  # report again, as the last report may have been skipped
                time.sleep(POLL_INTERVAL_S)
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
        """Find stored vectors, and offer the other texts in parts."""
        hashes = [passage.passage_hash for passage in window]
        self._hashes += hashes
        texts = {
            key: passage.text_to_embed
            for key, passage in zip(hashes, window, strict=True)
            if key not in self._row_of and key not in self._offered
        }
        for key, (vector, bits) in find_known_vectors(self._stores, set(texts)).items():
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
        for some in split_windows(texts.items(), PART_PASSAGES):
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
        """Check which parts have been finished by any worker."""
        standings = self._hands.parts.fetch_states(list(self._waiting))
        if len(standings) < len(self._waiting):
            raise PartLost("its parts are gone")
        for standing in standings:
            if standing.given_up:
                raise WorkbenchError(GIVEN_UP)
            if standing.done:
                self._waiting.discard(standing.id)
                self._computed += standing.passages


def embed_part(hands: EmbeddingLease, part: EmbeddingPart, encoder: Encoder, ask: OnBatch) -> None:
    """Embed the texts of a part and store their vectors. ``ask`` is called repeatedly with 0 and may raise to stop."""
    with mark_slow_step():
        encoded = encoder.encode(part.texts, on_batch=lambda _: ask(0))
    hands.done(part, encoded.vectors, encoded.token_bits)


def help_to_embed(hands: EmbeddingLease, encoder: Encoder, ask: OnBatch) -> None:
    """Embed one waiting part for another worker; ``ask`` is as in ``embed_part``."""
    part = hands.take(encoder.name)
    if part is not None:
        embed_part(hands, part, encoder, ask)


def embed_waiting_parts(
    hands: EmbeddingLease, index_encoder: Callable[[str], Encoder], should_stop: ShouldStop
) -> None:
    """Embed parts for other workers until none is waiting.

    Raises:
        Cancelled: ``should_stop`` returned true.
    """

    def ask(_: int) -> None:
        if should_stop():
            raise Cancelled("Stopped. Passages embedded so far are kept.")

    while not should_stop() and (part := hands.take()) is not None:
        embed_part(hands, part, index_encoder(part.model), ask)

"""The embedding of many passages by several workers: their texts are offered in parts, their vectors collected.

The worker that brings the passages takes parts, too, and stays until all are done. Every part's vectors are kept beside
it until they are in an index, so that whoever goes on after a dead worker finds them.
"""

from __future__ import annotations

import time
from array import array
from collections.abc import Callable, Iterable, Sequence

from workbench.errors import Cancelled, WorkbenchError
from workbench.ingestion.embedding import WINDOW, EmbeddedPassages, known_vectors, windows
from workbench.ingestion.vector_file import VectorFile
from workbench.models.encoder import Encoder, OnBatch
from workbench.storage.job_parts import MOST_TIMES, PAUSE, EmbeddingHands, EmbeddingPart, PartLost
from workbench.storage.passages import NewPassage
from workbench.storage.store import PassageStore
from workbench.types import ShouldStop
from workbench.types.progress import slow_step

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

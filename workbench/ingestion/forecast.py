"""A forecast of the passages and seconds that an ingest still takes: guessed at first, then more and more measured."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from workbench.sizes import KB

if TYPE_CHECKING:  # it is told before anything heavy is imported
    from workbench.models.encoder import Encoder

PASSAGE_BYTES = 650  # of a file, to a passage of 200 tokens: half-filled ones and headings counted
TRUSTED_BYTES = 50 * KB  # cut, they weigh as much as that guess
FIRST_PACE = 0.033  # seconds for a passage before any was embedded here: MiniLM on two cores (docs/benchmarks.md)
STORING = 0.004  # seconds to store a passage, before any was stored
TRUSTED_EMBEDDED = 64  # passages that, once embedded, weigh as much as the pace of the time before
TRUSTED_STORED = 500  # passages that, once stored, weigh as much as that guess
CUTTING = 1.5e-6  # seconds to read and cut a byte
TRIAL, TRIAL_WORDS = 12, 160  # passages, and words of each, that are embedded to learn how long one takes


class Forecast:
    """The passages and seconds that are still to come, by those so far. Not for several threads at once."""

    def __init__(self, sizes: Sequence[int], pace: float | None = None) -> None:
        """Take ``sizes``, the bytes of the items; 0 is not known and taken for a short text.

        ``pace`` is what a passage took the time before, in seconds with its storing, where that is remembered.
        """
        self._pace = pace
        self._sizes = {place: size or PASSAGE_BYTES for place, size in enumerate(sizes)}
        self._waiting = set(self._sizes)
        self._waiting_bytes = sum(self._sizes.values())
        self._last = max(self._sizes, key=lambda place: self._sizes[place], default=0)
        self._cut_bytes = self._cut = self._embedded = self._stored = self._most = 0
        self._model_passages, self._model_seconds = 0, 0.0
        self._stored_passages, self._storing_seconds = 0, 0.0
        self._pages_read, self._read_seconds, self._reading_left = 0, 0.0, 0.0  # of pages that are read by OCR

    def settled(self, place: int) -> None:
        """Note that an item makes no passages: it is unchanged or cannot be read."""
        self._reading_left = 0.0
        if place in self._waiting:
            self._waiting.remove(place)
            self._waiting_bytes -= self._sizes[place]

    def cut(self, place: int, passages: int) -> None:
        """Note how many passages an item makes."""
        self.settled(place)
        self._cut_bytes += self._sizes[place]
        self._cut += passages
        self._most = max(self._most, passages)

    def embedded(self, passages: int) -> None:
        """Note that so many passages have their vectors, from the model or from before."""
        self._embedded += passages

    def stored(self, passages: int) -> None:
        """Note that so many passages are in the transaction that keeps them."""
        self._stored += passages

    def model_took(self, passages: int, seconds: float) -> None:
        """Note how long so many passages kept the model busy."""
        self._model_passages += passages
        self._model_seconds += seconds

    def storing_took(self, passages: int, seconds: float) -> None:
        """Note how long so many passages kept the database busy."""
        self._stored_passages += passages
        self._storing_seconds += seconds

    def read(self, page: int, pages: int, seconds: float) -> None:
        """Note that reading a document took so many seconds until it came to this page of its pages."""
        self._read_seconds += seconds
        self._pages_read += seconds > 0
        self._reading_left = (pages - page + 1) * self._read_seconds / max(1, self._pages_read)

    @property
    def has_rate(self) -> bool:
        """True once it is known how long the model takes."""
        return self._model_passages > 0

    @property
    def total(self) -> int:
        """All passages; an estimate while ``is_exact`` is false."""
        return self._cut + round(self._waiting_bytes * self._density)

    @property
    def is_exact(self) -> bool:
        """True once everything is cut."""
        return not self._waiting

    @property
    def seconds_left(self) -> float | None:
        """The seconds that it will still take; None before the model has embedded anything, now or the time before.

        Storing goes on at the same time as embedding, so that the slower of the two counts; the last item, which is the
        largest, is cut before and stored after. Pages that are read by OCR come on top.
        """
        to_embed = max(0, self.total - self._embedded)
        if not self._model_passages and to_embed:
            return None if self._pace is None else to_embed * self._pace
        waiting = self._sizes[self._last] if self._last in self._waiting else 0
        to_store = max(0, self.total - self._stored)
        last = min(max(self._most, round(waiting * self._density)), to_store)
        slowest = max(to_embed * self._embedding + last * self._storing, to_store * self._storing)
        return self._reading_left + waiting * CUTTING + slowest

    @property
    def share(self) -> float | None:
        """The share of the work that is done, 0..1, by the time that each stage takes; None if there is none to do."""
        embedding = self._embedding if self._model_passages or self._pace is not None else 4 * STORING
        whole = self.total * (embedding + self._storing) + self._read_seconds + self._reading_left
        done = self._embedded * embedding + self._stored * self._storing + self._read_seconds
        return min(1.0, done / whole) if whole else None

    @property
    def model_share(self) -> float:
        """The share of a passage's time that the model takes, 0..1; storing it takes the rest."""
        model = self._model_seconds / self._model_passages if self._model_passages else 4 * STORING
        return model / (model + self._storing)

    @property
    def _density(self) -> float:
        return (self._cut + TRUSTED_BYTES / PASSAGE_BYTES) / (self._cut_bytes + TRUSTED_BYTES)

    @property
    def _embedding(self) -> float:
        """The seconds a passage keeps the model busy; the first ones, alone and cold, weigh little against the pace."""
        if self._pace is None:
            return self._model_seconds / max(1, self._model_passages)
        known = max(0.0, self._pace - STORING)
        return (self._model_seconds + TRUSTED_EMBEDDED * known) / (self._model_passages + TRUSTED_EMBEDDED)

    @property
    def _storing(self) -> float:
        return (self._storing_seconds + TRUSTED_STORED * STORING) / (self._stored_passages + TRUSTED_STORED)


def try_model(encoder: Encoder) -> tuple[int, float]:
    """Embed a few passages only to see how long that takes; returns (passages, seconds)."""
    texts = [f"{number} " * TRIAL_WORDS for number in range(TRIAL)]
    encoder.encode(texts[:1])  # reads the model
    begun = time.perf_counter()
    encoder.encode(texts)
    return TRIAL, time.perf_counter() - begun

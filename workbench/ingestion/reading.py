"""One reading of a file: the options it is read with, and what its reader found there but did not take."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from workbench.ingestion.raw import Draft

LEFT_OUT_KEY = "left_out"  # metadata: {what: count}
HIDDEN_KEY = "hidden_parts"  # metadata: {what: count} that is hidden in the file and was read
ENCODING_KEY = "encoding"  # metadata: the encoding of a text that is not plain UTF-8


@dataclass(frozen=True, slots=True)
class ReadingOptions:
    """How the files of a source are read.

    Attributes:
        encoding: Encoding of its texts; "" to detect it for each file.
        skip_hidden: True to leave out hidden sheets, rows and columns instead of marking them as hidden.
    """

    encoding: str = ""
    skip_hidden: bool = False


DEFAULT_OPTIONS = ReadingOptions()


@dataclass(slots=True)
class Reading:
    """The options of one file, and the facts collected while it is read.

    Attributes:
        options: How to read it.
        left_out: Counts of what was not taken, or not taken as it is, by a plural noun: "comments".
        hidden: Counts of what is hidden in the file and was read.
        facts: Metadata found while decoding.
    """

    options: ReadingOptions = DEFAULT_OPTIONS
    left_out: Counter[str] = field(default_factory=Counter[str])
    hidden: Counter[str] = field(default_factory=Counter[str])
    facts: dict[str, object] = field(default_factory=dict[str, object])

    def completed(self, draft: Draft) -> Draft:
        """Return a draft whose metadata has the collected facts. What the reader itself wrote takes precedence."""
        facts = dict(self.facts)
        for key, counts in ((LEFT_OUT_KEY, self.left_out), (HIDDEN_KEY, self.hidden)):
            if counts:
                facts[key] = dict(counts)
        return replace(draft, metadata={**draft.metadata, **facts}) if facts else draft


_READING: ContextVar[Reading | None] = ContextVar("reading", default=None)


@contextmanager
def open_reading(options: ReadingOptions = DEFAULT_OPTIONS) -> Generator[Reading]:
    """Collect what ``leave_out`` and ``record_fact`` report inside the block."""
    reading = Reading(options)
    token = _READING.set(reading)
    try:
        yield reading
    finally:
        _READING.reset(token)


def reading_options() -> ReadingOptions:
    """Return the options of the file being read; the defaults outside of a reading."""
    reading = _READING.get()
    return DEFAULT_OPTIONS if reading is None else reading.options


def leave_out(what: str, count: int = 1) -> None:
    """Count something that is not taken, or not as it is, for the notes of the file being read.

    Args:
        what: A plural noun, such as "comments".
        count: How many.
    """
    reading = _READING.get()
    if reading is not None and count:
        reading.left_out[what] += count


def take_hidden(what: str, count: int = 1) -> bool:
    """Return whether to read parts that are hidden in the file, and count them as read or left out.

    Args:
        what: A plural noun, such as "rows".
        count: How many.
    """
    reading = _READING.get()
    if reading is None:
        return True
    if reading.options.skip_hidden:
        reading.left_out[f"hidden {what}"] += count
        return False
    reading.hidden[what] += count
    return True


def record_fact(key: str, value: object) -> None:
    """Add metadata to the file being read."""
    reading = _READING.get()
    if reading is not None:
        reading.facts[key] = value

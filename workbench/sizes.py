"""Sizes of files and texts, in bytes and their decimal multiples everywhere, and numbers of things."""

from __future__ import annotations

KB, MB, GB = 1_000, 1_000_000, 1_000_000_000  # bytes


def size_text(count: int) -> str:
    """Return a number of bytes for people: ``812 bytes``, ``12.3 MB``."""
    for unit, name in ((GB, "GB"), (MB, "MB"), (KB, "kB")):
        if count >= unit:
            return f"{count / unit:,.1f} {name}"
    return f"{count:,} bytes"


def counted(number: int, noun: str) -> str:
    """Return "1 source", "2 sources"."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")

"""Texts of any size in pieces: no search over a whole one may hold the interpreter, and with it everybody, for long."""

from __future__ import annotations

from collections.abc import Iterator

PIECE = 64_000  # characters of a text or bytes of a file; a search over so many takes some milliseconds


def pieces(text: str, size: int = PIECE) -> Iterator[str]:
    """Yield a text in pieces of about ``size`` characters, cut after a line's end where there is one."""
    start = 0
    while start < len(text):
        end = start + size
        if end < len(text):
            line = text.rfind("\n", start, end) + 1
            end = line if line > start else end
        yield text[start:end]
        start = end


def words_of(data: bytes, size: int = PIECE) -> Iterator[bytes]:
    """Yield what ``b" ".join(data.split())`` holds, in pieces of about ``size`` bytes whose words are whole."""
    start, is_first = 0, True
    while start < len(data):
        end = start + size
        while end < len(data) and not data[end : end + 1].isspace():
            end += 1
        words = data[start:end].split()
        if words:
            yield (b"" if is_first else b" ") + b" ".join(words)
            is_first = False
        start = end

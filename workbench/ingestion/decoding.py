"""The text in the bytes of a file, whatever encoding it was written in."""

from __future__ import annotations

import codecs

from workbench.errors import UnreadableDocument
from workbench.sizes import KB

BYTE_ORDER_MARKS = (  # UTF-32 first: its little-endian mark begins with UTF-16's
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
SAMPLE = 64 * KB  # bytes that are looked at
TEXT_CONTROLS = frozenset(b"\t\n\r\f\v\x1b")


def decode(data: bytes, name: str, declared: str | None = None) -> str:
    """Decode by byte order mark, declared charset, UTF-8, then by charset-normalizer's statistics.

    Raises:
        UnreadableDocument: the bytes are no text at all.
    """
    for mark, encoding in BYTE_ORDER_MARKS:
        if data.startswith(mark):
            return data.decode(encoding, errors="replace")
    if looks_binary(data):
        raise UnreadableDocument(f"'{name}' is a binary file, not text. Save it as text or in a supported format.")
    for encoding in (declared, "utf-8"):
        text = _try(data, encoding)
        if text is not None:
            return text
    return _by_statistics(data)


def looks_binary(data: bytes) -> bool:
    """Tell whether bytes without a byte order mark are no text: NUL bytes, or more than 5 % control characters."""
    sample = data[:SAMPLE] + data[-SAMPLE:]
    if not sample:
        return False
    if b"\0" in sample:
        return not _utf16_without_mark(data[:SAMPLE])
    controls = sum(sample.count(byte) for byte in range(32) if byte not in TEXT_CONTROLS)
    return controls > len(sample) * 0.05


def _utf16_without_mark(sample: bytes) -> bool:
    """Tell whether bytes are UTF-16 without a mark: those have their NULs at every second place only."""
    even, odd = sample[0::2].count(0), sample[1::2].count(0)
    return len(sample) >= 8 and max(even, odd) > len(sample) * 0.2 and min(even, odd) < len(sample) * 0.01


def _try(data: bytes, encoding: str | None) -> str | None:
    if encoding is None:
        return None
    try:
        return data.decode(encoding)
    except (UnicodeDecodeError, LookupError):
        return None


def _by_statistics(data: bytes) -> str:
    from charset_normalizer import from_bytes

    if b"\0" in data[:SAMPLE]:
        return data.decode("utf-16-be" if data[0] == 0 else "utf-16-le", errors="replace")
    best = from_bytes(data[:SAMPLE]).best()
    guessed = _try(data, best.encoding if best else None)
    return guessed if guessed is not None else data.decode("cp1252", errors="replace")

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
SAMPLE_BYTES = 64 * KB  # bytes that are looked at
MOST_BROKEN = 0.01  # share of characters that a text in its declared charset may lack
WIDER = {"gbk": "gb18030", "big5": "big5hkscs", "windows-874": "cp874"}  # Python's gbk and big5 lack characters
NO_TEXT = frozenset(("replacement", "x-user-defined"))
PYTHON_CODECS = frozenset((
    "cp437", "cp737", "cp775", "cp850", "cp852", "cp855", "cp857", "cp858", "cp860", "cp861", "cp863", "cp865", "cp869",
    "utf-32", "utf-32-le", "utf-32-be", "utf-8-sig", "utf-7", "johab", "hz", "iso2022_kr", "mac-latin2", "ptcp154",
))  # fmt: skip
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
    codec = codec_of(declared)
    if codec is not None and codec.startswith("utf-16") and not _utf16_without_mark(data[:SAMPLE_BYTES]):
        codec = "utf-8"  # it was read as ASCII up to the label, as browsers know
    for encoding in (codec, "utf-8"):
        text = _try(data, encoding)
        if text is not None:
            return text
    if codec is not None:
        text = data.decode(codec, errors="replace")
        if text.count("\ufffd") <= len(text) * MOST_BROKEN:
            return text
    return _by_statistics(data)


def codec_of(label: str | None) -> str | None:
    """Return Python's codec for a charset label, None if it is unknown.

    Labels mean what browsers take them for (https://encoding.spec.whatwg.org/#names-and-labels): ISO-8859-1 and
    ASCII are windows-1252, GB2312 is GB18030. Other names of text encodings, which files and mail use, are Python's.
    """
    import webencodings

    name = (label or "").strip().lower().strip("\"'")
    encoding = webencodings.lookup(name)
    if encoding is None:
        try:
            python_name = codecs.lookup(name).name if name.isascii() and "\0" not in name else ""
        except LookupError:
            return None
        encoding = webencodings.lookup(python_name.replace("iso8859", "iso-8859"))
        if encoding is None:
            return python_name if python_name in PYTHON_CODECS else None
    return None if encoding.name in NO_TEXT else WIDER.get(encoding.name, encoding.codec_info.name)


def looks_binary(data: bytes) -> bool:
    """Tell whether bytes without a byte order mark are no text: NUL bytes, or more than 5 % control characters."""
    sample = data[:SAMPLE_BYTES] + data[-SAMPLE_BYTES:]
    if not sample:
        return False
    if b"\0" in sample:
        return not _utf16_without_mark(data[:SAMPLE_BYTES])
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

    if b"\0" in data[:SAMPLE_BYTES]:
        return data.decode("utf-16-be" if data[0] == 0 else "utf-16-le", errors="replace")
    best = from_bytes(data[:SAMPLE_BYTES]).best()
    guessed = _try(data, best.encoding if best else None)
    return guessed if guessed is not None else data.decode("cp1252", errors="replace")

"""Text of a file: decoding, language detection and normalisation."""

from __future__ import annotations

import codecs
import re
import unicodedata
from collections.abc import Iterator

from workbench.errors import UnreadableDocument
from workbench.formatting import KB
from workbench.models.language_identifier import LETTERS, identifier, is_cjk
from workbench.text import CONFIGURATIONS

BYTE_ORDER_MARKS = (  # UTF-32 first, because its little-endian mark starts with UTF-16's
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
SAMPLE_BYTES = 64 * KB  # bytes examined
MOST_BROKEN = 0.01  # share of undecodable characters allowed with the declared charset
WIDER = {
    "gbk": "gb18030",
    "big5": "big5hkscs",
    "windows-874": "cp874",
}  # Python's gbk and big5 lack characters
NO_TEXT = frozenset(("replacement", "x-user-defined"))
PYTHON_CODECS = frozenset((
    "cp437", "cp737", "cp775", "cp850", "cp852", "cp855", "cp857", "cp858", "cp860", "cp861", "cp863", "cp865", "cp869",
    "utf-32", "utf-32-le", "utf-32-be", "utf-8-sig", "utf-7", "johab", "hz", "iso2022_kr", "mac-latin2", "ptcp154",
))  # fmt: skip
TEXT_CONTROLS = frozenset(b"\t\n\r\f\v\x1b")


def decode(data: bytes, name: str, declared: str | None = None) -> str:
    """Decode by byte order mark, declared charset, UTF-8, and finally charset-normalizer.

    Raises:
        UnreadableDocument: The bytes are not text.
    """
    for mark, encoding in BYTE_ORDER_MARKS:
        if data.startswith(mark):
            return data.decode(encoding, errors="replace")
    if looks_binary(data):
        raise UnreadableDocument(f"'{name}' is a binary file, not text. Save it as text or in a supported format.")
    codec = codec_of(declared)
    if codec is not None and codec.startswith("utf-16") and not _utf16_without_mark(data[:SAMPLE_BYTES]):
        codec = "utf-8"  # the label itself was read as ASCII; browsers do the same
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
    """Return Python's codec for a charset label, or None if unknown.

    Labels have the meaning that browsers give them (https://encoding.spec.whatwg.org/#names-and-labels): ISO-8859-1 and
    ASCII mean windows-1252, GB2312 means GB18030. Other names are Python's.
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
    """Return whether bytes without byte order mark have NUL bytes or more than 5% control characters."""
    sample = data[:SAMPLE_BYTES] + data[-SAMPLE_BYTES:]
    if not sample:
        return False
    if b"\0" in sample:
        return not _utf16_without_mark(data[:SAMPLE_BYTES])
    controls = sum(sample.count(byte) for byte in range(32) if byte not in TEXT_CONTROLS)
    return controls > len(sample) * 0.05


def _utf16_without_mark(sample: bytes) -> bool:
    """Return whether bytes are UTF-16 without a mark, which has NULs at every second byte only."""
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


# --- Language of a text, for keyword search ---

NOISE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`|https?://\S+|<[^>\n]*>|\]\([^)\n]*\)", re.DOTALL)
SAMPLE_CHARS = 4_000  # characters examined, out of the first ``BEGINNING``
BEGINNING = 2 * SAMPLE_CHARS
THIN = 60  # letters; detection is unreliable below
SURE = 0.9
PLAIN = 0.98  # share of letters without accents that English texts reach


def language_of_text(text: str, document_type: str) -> str:
    """Return the configuration for a document. Code counts as English; other texts are examined."""
    return "english" if document_type == "code" else detect_language(text)


def detect_language(text: str) -> str:
    """Return the configuration for a text, from its first 4,000 characters without code and addresses.

    "cjk" means Chinese, Japanese or Korean. Short or uncertain ASCII texts are "english", unknown languages "simple".
    """
    sample = NOISE.sub(" ", text[:BEGINNING])[:SAMPLE_CHARS]
    letters = len(LETTERS.findall(sample))
    if is_cjk(sample):
        return "cjk"
    doubtful = "english" if _latin_without_accents(sample) else "simple"
    if letters < THIN:
        return doubtful if letters else "simple"
    code, probability = identifier().classify(sample)
    if probability < SURE:
        return doubtful
    return CONFIGURATIONS.get(code, "simple")


def _latin_without_accents(sample: str) -> bool:
    """Return whether nearly all letters are a to z. Typographic quotes and dashes are ignored."""
    letters = LETTERS.findall(sample)
    return sum(letter.isascii() for letter in letters) >= PLAIN * len(letters)


# --- Normal form of stored text ---

NEWLINES = re.compile("\r\n|[\r\v\f\x1c-\x1e\x85\u2028\u2029]")
# Controls except tab and newline, soft hyphens, zero-width spaces, stray byte order marks, and the surrogates and
# non-characters that UTF-8 databases reject.
INVISIBLE = re.compile(
    "[\x00-\x08\x0e-\x1b\x1f\x7f-\x84\x86-\x9f\u00ad\u200b\u2060\ufeff\ufdd0-\ufdef\ufffe\uffff\ud800-\udfff]"
)
SPACES = re.compile("[\u00a0\u2000-\u200a\u202f\u205f]")
TRAILING = re.compile(r"[ \t]+(?=\n)")
GAPS = re.compile(r"\n{4,}")
PART = 200_000  # characters normalised at once, because each step makes a copy


def normalise(text: str) -> str:
    """Return text in NFC with ``\\n`` line ends, without control characters, trailing blanks and wide gaps.

    It is idempotent. Indentation is kept, because Markdown and code depend on it.
    """
    text = "".join(_formed(text[start:end]) for start, end in _parts(text))
    return text.strip("\n").rstrip() if text.strip() else ""


def _formed(text: str) -> str:
    text = NEWLINES.sub("\n", text)
    text = INVISIBLE.sub("", text)
    text = SPACES.sub(" ", text)
    text = unicodedata.normalize("NFC", text)
    text = TRAILING.sub("", text)
    return GAPS.sub("\n\n\n", text)


def _parts(text: str) -> Iterator[tuple[int, int]]:
    """Yield parts that start with a letter or digit at the start of a line, which no step crosses."""
    start = 0
    while len(text) - start > PART:
        end = text.find("\n", start + PART) + 1
        while 0 < end < len(text) and not text[end].isalnum():
            end = text.find("\n", end) + 1
        if not 0 < end < len(text):
            break
        yield start, end
        start = end
    yield start, len(text)

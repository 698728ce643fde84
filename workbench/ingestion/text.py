"""Text of a file: decoding, language detection and normalisation."""

from __future__ import annotations

import codecs
import re
import unicodedata
from collections.abc import Iterator
from functools import partial

from workbench.errors import UnreadableDocument
from workbench.formatting import KB
from workbench.models.language_identifier import LETTERS, is_cjk, load_identifier
from workbench.text import CONFIGURATIONS

BYTE_ORDER_MARKS = (  # UTF-32 first, because its little-endian mark starts with UTF-16's
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
SAMPLE_BYTES = 64 * KB  # bytes examined
MAX_BROKEN_SHARE = 0.01  # share of undecodable characters allowed with the declared charset
CODEC_SUPERSETS = {
    "gbk": "gb18030",
    "big5": "big5hkscs",
    "windows-874": "cp874",
    "iso-2022-jp": "iso2022_jp_ext",
}  # Python's gbk, big5 and iso2022_jp lack characters
# Characters that Python's codecs decode in another way than browsers and Windows.
_JAPANESE = dict(zip("〜‖−¢£¬", "～∥－￠￡￢", strict=True))
DEVIATIONS = {
    "euc_jp": str.maketrans(_JAPANESE), "iso2022_jp_ext": str.maketrans(_JAPANESE),
    "koi8-u": str.maketrans("╝╬", "ўЎ"),
}  # fmt: skip
UNSUPPORTED_LABELS = frozenset(("replacement", "x-user-defined"))
PYTHON_CODECS = frozenset((
    "cp437", "cp737", "cp775", "cp850", "cp852", "cp855", "cp857", "cp858", "cp860", "cp861", "cp863", "cp865", "cp869",
    "utf-32", "utf-32-le", "utf-32-be", "utf-8-sig", "utf-7", "johab", "hz", "iso2022_kr", "mac-latin2", "ptcp154",
))  # fmt: skip
TEXT_CONTROLS = frozenset(b"\t\n\r\f\v\x1b")


def decode_text(data: bytes, name: str, declared: str | None = None) -> str:
    """Decode by byte order mark, declared charset, UTF-8, and finally charset-normalizer.

    Raises:
        UnreadableDocument: The bytes are not text.
    """
    for mark, encoding in BYTE_ORDER_MARKS:
        if data.startswith(mark):
            return data.decode(encoding, errors="replace")
    if looks_binary(data):
        raise UnreadableDocument(f"'{name}' is a binary file, not text. Save it as text or in a supported format.")
    codec = find_codec(declared)
    if codec is not None and codec.startswith("utf-16") and not _is_unmarked_utf16(data[:SAMPLE_BYTES]):
        codec = "utf-8"  # the label itself was read as ASCII; browsers do the same
    for encoding in (codec, "utf-8"):
        text = _try_decode(data, encoding)
        if text is not None:
            return text
    if codec is not None:
        text = _decode(data, codec, "whatwg-replace")
        if text.count("\ufffd") <= len(text) * MAX_BROKEN_SHARE:
            return text
    return _decode_by_statistics(data)


def find_codec(label: str | None) -> str | None:
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
    return None if encoding.name in UNSUPPORTED_LABELS else CODEC_SUPERSETS.get(encoding.name, encoding.codec_info.name)


def looks_binary(data: bytes) -> bool:
    """Return whether bytes without byte order mark have NUL bytes or more than 5% control characters."""
    sample = data[:SAMPLE_BYTES] + data[-SAMPLE_BYTES:]
    if not sample:
        return False
    if b"\0" in sample:
        return not _is_unmarked_utf16(data[:SAMPLE_BYTES])
    controls = sum(sample.count(byte) for byte in range(32) if byte not in TEXT_CONTROLS)
    return controls > len(sample) * 0.05


def _is_unmarked_utf16(sample: bytes) -> bool:
    """Return whether bytes are UTF-16 without a mark, which has NULs at every second byte only."""
    even, odd = sample[0::2].count(0), sample[1::2].count(0)
    return len(sample) >= 8 and max(even, odd) > len(sample) * 0.2 and min(even, odd) < len(sample) * 0.01


def _try_decode(data: bytes, encoding: str | None) -> str | None:
    if encoding is None:
        return None
    try:
        return _decode(data, encoding, "whatwg")
    except (UnicodeDecodeError, LookupError):
        return None


def _decode(data: bytes, codec: str, errors: str) -> str:
    text = data.decode(codec, errors)
    return text.translate(DEVIATIONS[codec]) if codec in DEVIATIONS else text


def _decode_missing(error: UnicodeError, replacement: str = "") -> tuple[str, int]:
    """Decode what browsers know and Python's codec does not, as an error handler of codecs.

    These are controls in Windows' code pages, the euro sign of GBK, and rows of JIS that Windows added, such as ①,
    which cp932 has at the place that Shift JIS gives to the two bytes.
    """
    if not isinstance(error, UnicodeDecodeError):
        raise error
    start = error.start
    first, second = (*error.object[start : start + 2], 0)[:2]
    if error.encoding == "charmap" and 0x80 <= first < 0xA0:
        return chr(first), start + 1
    if error.encoding == "gb18030" and first == 0x80:
        return "€", start + 1
    if error.encoding in ("euc_jp", "iso2022_jp_ext"):
        high = 0x80 if error.encoding == "euc_jp" else 0
        row, cell = first - high - 0x21, second - high - 0x21
        if 0 <= row < 94 and 0 <= cell < 94:
            lead = row // 2 + (0x81 if row < 62 else 0xC1)
            trail = cell + (0x9F if row % 2 else 0x40 if cell < 63 else 0x41)
            character = bytes((lead, trail)).decode("cp932", "replace")
            if "\ufffd" not in character:
                return character, start + 2
    if not replacement:
        raise error
    return replacement, max(error.end, start + 1)


codecs.register_error("whatwg", _decode_missing)
codecs.register_error("whatwg-replace", partial(_decode_missing, replacement="\ufffd"))


def _decode_by_statistics(data: bytes) -> str:
    from charset_normalizer import from_bytes

    if b"\0" in data[:SAMPLE_BYTES]:
        return data.decode("utf-16-be" if data[0] == 0 else "utf-16-le", errors="replace")
    best = from_bytes(data[:SAMPLE_BYTES]).best()
    guessed = _try_decode(data, best.encoding if best else None)
    return guessed if guessed is not None else data.decode("cp1252", errors="replace")


# --- Language of a text, for keyword search ---

NOISE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`|https?://\S+|<[^>\n]*>|\]\([^)\n]*\)", re.DOTALL)
SAMPLE_CHARS = 4_000  # characters examined, out of the first ``BEGINNING_CHARS``
BEGINNING_CHARS = 2 * SAMPLE_CHARS
MIN_LETTERS = 60  # letters; detection is unreliable below
MIN_CONFIDENCE = 0.9
MIN_PLAIN_SHARE = 0.98  # share of letters without accents that English texts reach


def detect_document_language(text: str, document_type: str) -> str:
    """Return the configuration for a document. Code counts as English; other texts are examined."""
    return "english" if document_type == "code" else detect_language(text)


def detect_language(text: str) -> str:
    """Return the configuration for a text, from its first 4,000 characters without code and addresses.

    "cjk" means Chinese, Japanese or Korean. Short or uncertain ASCII texts are "english", unknown languages "simple".
    """
    sample = NOISE.sub(" ", text[:BEGINNING_CHARS])[:SAMPLE_CHARS]
    letters = len(LETTERS.findall(sample))
    if is_cjk(sample):
        return "cjk"
    doubtful = "english" if _is_unaccented_latin(sample) else "simple"
    if letters < MIN_LETTERS:
        return doubtful if letters else "simple"
    code, probability = load_identifier().classify(sample)
    if probability < MIN_CONFIDENCE:
        return doubtful
    return CONFIGURATIONS.get(code, "simple")


def _is_unaccented_latin(sample: str) -> bool:
    """Return whether nearly all letters are a to z. Typographic quotes and dashes are ignored."""
    letters = LETTERS.findall(sample)
    return sum(letter.isascii() for letter in letters) >= MIN_PLAIN_SHARE * len(letters)


# --- Normal form of stored text ---

NEWLINES = re.compile("\r\n|[\r\v\f\x1c-\x1e\x85\u2028\u2029]")
# Controls except tab and newline, soft hyphens, zero-width spaces, stray byte order marks, and the surrogates and
# non-characters that UTF-8 databases reject.
INVISIBLE_CHARACTERS = re.compile(
    "[\x00-\x08\x0e-\x1b\x1f\x7f-\x84\x86-\x9f\u00ad\u200b\u2060\ufeff\ufdd0-\ufdef\ufffe\uffff\ud800-\udfff]"
)
SPECIAL_SPACES = re.compile("[\u00a0\u2000-\u200a\u202f\u205f]")
TRAILING_BLANKS = re.compile(r"[ \t]+(?=\n)")
WIDE_GAPS = re.compile(r"\n{4,}")
PART_CHARS = 200_000  # characters normalised at once, because each step makes a copy


def normalise(text: str) -> str:
    """Return text in NFC with ``\\n`` line ends, without control characters, trailing blanks and wide gaps.

    It is idempotent. Indentation is kept, because Markdown and code depend on it.
    """
    text = "".join(_normalise_part(text[start:end]) for start, end in _split_parts(text))
    return text.strip("\n").rstrip() if text.strip() else ""


def _normalise_part(text: str) -> str:
    text = NEWLINES.sub("\n", text)
    text = INVISIBLE_CHARACTERS.sub("", text)
    text = SPECIAL_SPACES.sub(" ", text)
    text = unicodedata.normalize("NFC", text)
    text = TRAILING_BLANKS.sub("", text)
    return WIDE_GAPS.sub("\n\n\n", text)


def _split_parts(text: str) -> Iterator[tuple[int, int]]:
    """Yield parts that start with a letter or digit at the start of a line, which no step crosses."""
    start = 0
    while len(text) - start > PART_CHARS:
        end = text.find("\n", start + PART_CHARS) + 1
        while 0 < end < len(text) and not text[end].isalnum():
            end = text.find("\n", end) + 1
        if not 0 < end < len(text):
            break
        yield start, end
        start = end
    yield start, len(text)


# --- Superscripts of formatted texts ---

SUPERSCRIPTS = str.maketrans("0123456789+-−=()ni", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻⁼⁽⁾ⁿⁱ")
NOTE_MARK = re.compile(r"\d{1,3}(?:\s*[,;–-]\s*\d{1,3})*|[*†‡§¶]+")
BRACKETED_MARK = re.compile(r"[\[(].*[\])]")
VARIABLE_BEFORE = re.compile(
    r"(?:(?<![^\W\d_])[^\W\d_]{1,2}|[\d)\]])$"
)  # a number, or a unit or variable of one or two letters
ORDINALS = frozenset(
    ("st", "nd", "rd", "th", "er", "re", "e", "o", "a", "ème", "tm", "sm", "r", "™", "®", "©", "º", "ª")
)


def format_superscript(text: str, before: str) -> str:
    """Return a superscript as plain text that does not join the word before it.

    An exponent of a number, a variable or a unit stays a superscript ("10⁶", "m²", "10^(k-1)"), digits after another
    word are a note mark ("crowns[3]"), and ordinals and trademarks are letters of their word ("5th").

    Args:
        text: The superscript.
        before: The text before it.
    """
    mark = text.strip()
    if not mark or mark.casefold() in ORDINALS or BRACKETED_MARK.fullmatch(mark):
        return text
    if NOTE_MARK.fullmatch(mark) and not VARIABLE_BEFORE.search(before):
        return f"[{mark}]"
    if before[-1:].isspace() or not before:
        return text
    raised = mark.translate(SUPERSCRIPTS)
    if not any(character in raised for character in mark):
        return raised
    return f"^{mark}" if mark.isalnum() else f"^({mark})"

"""Text of a file: decoding, language detection and normalisation."""

from __future__ import annotations

import codecs
import re
from collections import Counter
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import Protocol

from workbench.errors import UnreadableDocument
from workbench.formatting import KB
from workbench.models.language_identifier import LETTERS, is_cjk, load_identifier
from workbench.text import CONFIGURATIONS
from workbench.text import NEWLINES as NEWLINES
from workbench.text import normalise as normalise

# --- One reading of a file: its options, and what its reader found there but did not take ---


@dataclass(slots=True)
class Reading:
    """The options of one file, and the facts collected while it is read."""

    encoding: str = ""  # encoding of its text; "" to detect it
    skip_hidden: bool = False  # True to leave out comments and what is hidden in a file instead of marking it
    # Counts of parts that were omitted or altered, by plural noun ("comments").
    left_out: Counter[str] = field(default_factory=Counter[str])
    # Counts of parts that are hidden in the file but were read, by plural noun.
    hidden: Counter[str] = field(default_factory=Counter[str])
    facts: dict[str, object] = field(default_factory=dict[str, object])  # metadata found while decoding

    @property
    def metadata(self) -> dict[str, object]:
        """The facts, and the counts under "left_out" and "hidden_parts"."""
        counts = {"left_out": dict(self.left_out), "hidden_parts": dict(self.hidden)}
        return self.facts | {key: value for key, value in counts.items() if value}


_READING: ContextVar[Reading | None] = ContextVar("reading", default=None)


@contextmanager
def open_reading(encoding: str = "", *, skip_hidden: bool = False) -> Generator[Reading]:
    """Collect what ``leave_out``, ``take_hidden`` and ``record_fact`` report inside the block."""
    reading = Reading(encoding, skip_hidden)
    token = _READING.set(reading)
    try:
        yield reading
    finally:
        _READING.reset(token)


def leave_out(what: str, count: int = 1) -> None:
    """Count parts that are omitted or altered, for the notes of the file being read.

    Args:
        what: A plural noun, such as "comments".
        count: How many.
    """
    reading = _READING.get()
    if reading is not None and count:
        reading.left_out[what] += count


class _ParserError(Protocol):
    """An entry of the error log of one of lxml's parsers."""

    type_name: str


def count_cut_parts(errors: Iterable[_ParserError]) -> None:
    """Count whether one of lxml's parsers ended early because a text is nested too deeply.

    Args:
        errors: The parser's error log.

    Raises:
        MemoryError: The parser ended early because it had too little memory.
    """
    kinds = {error.type_name for error in errors}
    if "ERR_NO_MEMORY" in kinds:
        raise MemoryError
    leave_out("parts that are nested too deeply", "ERR_RESOURCE_LIMIT" in kinds)


HIDDEN_MARK = " (hidden)"  # follows a text that is hidden in its file


def take_hidden(what: str, count: int = 1) -> bool:
    """Return whether to read comments or hidden parts of the file, and count them as read or left out.

    Args:
        what: A plural noun, such as "rows".
        count: How many.
    """
    reading = _READING.get()
    if reading is None:
        return True
    name = f"hidden {what}" if reading.skip_hidden and what != "comments" else what
    (reading.left_out if reading.skip_hidden else reading.hidden)[name] += count
    return not reading.skip_hidden


def record_fact(key: str, value: object) -> None:
    """Add metadata to the file being read."""
    reading = _READING.get()
    if reading is not None:
        reading.facts[key] = value


# --- Decoding ---

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
MIN_UTF8_SHARE = 0.95  # share of valid sequences among those outside ASCII that makes a text UTF-8 at once
MIN_MIXED_UTF8_SHARE = 0.5  # the same if no other encoding is declared; other encodings have next to none by chance
MIN_DECLARED_UTF8_SHARE = 0.2  # the same if UTF-8 is declared
ENCODING_LABELS = {
    "cp932": "shift_jis", "cp949": "euc-kr", "big5hkscs": "big5", "utf-8-sig": "utf-8", "iso2022_jp_ext": "iso-2022-jp",
}  # fmt: skip
UNSUPPORTED_LABELS = frozenset(("replacement", "x-user-defined"))
PYTHON_CODECS = frozenset((
    "cp437", "cp737", "cp775", "cp850", "cp852", "cp855", "cp857", "cp858", "cp860", "cp861", "cp863", "cp865", "cp869",
    "utf-32", "utf-32-le", "utf-32-be", "utf-8-sig", "utf-7", "johab", "hz", "iso2022_kr", "mac-latin2", "ptcp154",
))  # fmt: skip
ENCODED_PAIR = re.compile(rb"\xed[\xa0-\xaf][\x80-\xbf]\xed[\xb0-\xbf][\x80-\xbf]")  # of surrogates
MOJIBAKE = re.compile("Ã[\x80-\xa0¡-©¬-º¼-¿‚-„†-‰Šš›œžŸ]|â€[\x80-\x9d˜™œžš“”¦]")
SURROGATE = re.compile("[\ud800-\udfff]")  # of a pair whose other half is missing; \\ud83d in JSON, for example
CONTROLS = bytes(set(range(32)) - set(b"\b\t\n\r\f\v\x1b"))
NOT_ASCII = bytes([*range(32), *range(127, 256)])
MAX_CONTROL_SHARE = 0.05  # of the bytes of a text


def decode_text(data: bytes, name: str, declared: str | None = None) -> str:
    """Decode by the source's encoding, byte order mark, share of valid UTF-8, declared charset, and finally a guess.

    An encoding other than UTF-8 is recorded as metadata, and invalid bytes are counted in the file's notes.

    Raises:
        UnreadableDocument: The bytes are not text.
    """
    marked = next((encoding for mark, encoding in BYTE_ORDER_MARKS if data.startswith(mark)), None)
    chosen = find_codec(reading.encoding if (reading := _READING.get()) is not None else None)
    if chosen is None and marked is None and looks_binary(data):
        raise UnreadableDocument(f"'{name}' is a binary file, not text. Save it as text or in a supported format.")
    codec, text = (chosen or marked, None) if chosen or marked else _find_encoding(data, declared)
    if (codec or "").startswith("utf-16"):
        order = "utf-16-be" if codec == "utf-16-be" or data.startswith(codecs.BOM_UTF16_BE) else "utf-16-le"
        run = rb"(?<!\0)" + ASCII_RUN if order == "utf-16-be" else ASCII_RUN + rb"(?!\0)"
        leave_out("parts of a UTF-16 text that are ASCII, read as such", sum(map(_has_word, re.finditer(run, data))))
        data = re.sub(run, lambda match: match[0].decode().encode(order) if _has_word(match) else match[0], data)
    if text is None:
        text, broken = _decode_leniently(data, codec or "utf-8")
        if broken:
            label = _label_encoding(codec or "utf-8")
            leave_out(f"bytes that are not valid {label.upper() if label.startswith('utf') else label}", broken)
            record_fact("encoding", label)
    if chosen or (codec or "utf-8") not in ("utf-8", "utf-8-sig"):
        record_fact("encoding", _label_encoding(codec or "utf-8"))
    leave_out("NUL characters", text.count("\0"))
    leave_out("letters that an earlier program decoded wrongly (Ã¼ for ü), kept", len(MOJIBAKE.findall(text)))
    return text


ASCII_RUN = rb"[\t\n\r -~]{32,}"  # added by another program; as UTF-16 it would be signs of Chinese
ASCII_WORD = re.compile(rb"[ \"][A-Za-z]{3}")  # unlike the bytes of kana (S0S0), leaders (& & ) and lines (P%P%)
TWO_BYTE_CHARACTER = re.compile("[\x80-\u07ff]")  # in UTF-8


def _has_word(run: re.Match[bytes]) -> bool:
    return ASCII_WORD.search(run[0]) is not None


def _find_encoding(data: bytes, declared: str | None) -> tuple[str, str | None]:
    """Return the encoding of bytes without a byte order mark, and the text if all of them can be decoded."""
    if (unmarked := _find_unmarked_utf16(data[:SAMPLE_BYTES])) is not None:
        return unmarked, None
    codec = find_codec(declared)
    if codec is not None and codec.startswith("utf-16"):
        codec = "utf-8"  # the label itself was read as ASCII; browsers do the same
    if codec is None and ISO_2022_JP.search(data):
        codec = "iso2022_jp_ext"
    if data.isascii() or codec in MULTI_BYTE_CODECS:
        text = (None if data.isascii() else _try_decode(data, "utf-8")) or ""
        is_utf8 = len(data) > len(text) + 3 and text > "" and not TWO_BYTE_CHARACTER.search(text)  # not pairs by chance
        for encoding in filter(None, ("utf-8" if is_utf8 else codec, "utf-8")):
            if (text := _try_decode(data, encoding)) is not None:
                return (encoding if text != data.decode("utf-8", "replace") else "utf-8"), text
    share = _utf8_share(data)
    if share >= MIN_UTF8_SHARE:
        return "utf-8", _try_decode(data, "utf-8")
    if codec is not None and codec != "utf-8":
        text, broken = _decode_leniently(data, codec)
        if broken <= len(text) * MAX_BROKEN_SHARE and not _is_contradicted(data, codec):
            return codec, None if broken else text
    guess, score = guess_encoding(data)
    least = MIN_DECLARED_UTF8_SHARE if codec == "utf-8" else MIN_MIXED_UTF8_SHARE
    if share >= least and guess not in MULTI_BYTE_CODECS:
        text = data.decode("utf-8", errors="windows-1252")
        leave_out("bytes that are not valid UTF-8, read as windows-1252", _count_broken_utf8(data))
        record_fact("encoding", "utf-8")
        return "utf-8", text
    if score < MIN_SCORE or _is_scant(data, guess):
        leave_out("bytes whose encoding is uncertain", sum(map(len, NON_ASCII.findall(data))))
    return guess, _try_decode(data, guess)


def _is_scant(data: bytes, guess: str) -> bool:
    """Return whether so few letters are outside ASCII that encodings of other scripts explain them as well."""
    letters = "".join(char for char in data.decode(guess, "ignore") if char > "\x7f" and char not in TYPOGRAPHIC_CHARS)
    is_latin = guess == "cp1252" and MIXED_WORD.search(data) is not None
    return 0 < len(letters.encode(guess, "ignore")) <= MAX_SCANT_BYTES and not is_latin


def _is_contradicted(data: bytes, declared: str) -> bool:
    """Return whether an encoding of another script explains the bytes clearly better than the declared one."""
    name, windows = declared.replace("-", "_"), _sample_windows(data)
    scores = [_score_codec(windows, name, alphabets) for codecs_, alphabets in ALPHABETS if name in codecs_]
    if not scores or max(scores) >= 1:  # it explains all
        return False
    guess, score = guess_encoding(data)
    is_foreign = FOREIGN_LETTER.search(windows.decode(guess, "replace")) is not None
    return is_foreign and guess != name and score >= max(MIN_SCORE, max(scores) + CONTRADICTION_MARGIN)


def _utf8_share(data: bytes) -> float:
    """Return the share of valid UTF-8 among non-ASCII sequences; 1.0 if only the end is cut off."""
    try:
        _decode(data, "utf-8", "whatwg")
        return 1.0
    except UnicodeDecodeError as error:
        is_cut = error.reason == "unexpected end of data" and not data[: error.start].isascii()
    text = data.decode("utf-8", errors="replace")
    valid = len(text) - len(text.encode("ascii", "ignore")) - text.count("\ufffd")
    broken = text.count("\ufffd")
    return 1.0 if is_cut else valid / max(1, valid + broken)


def _count_broken_utf8(data: bytes) -> int:
    return len(data) - len(data.decode("utf-8", errors="ignore").encode())


def _decode_as_windows_1252(error: UnicodeError) -> tuple[str, int]:
    """Decode bytes that are invalid in UTF-8; called by ``codecs`` as an error handler."""
    assert isinstance(error, UnicodeDecodeError)
    return error.object[error.start : error.end].decode("cp1252", errors="replace"), error.end


codecs.register_error("windows-1252", _decode_as_windows_1252)


def _decode_leniently(data: bytes, codec: str) -> tuple[str, int]:
    """Return the text with U+FFFD for invalid bytes, and the number of replacements."""
    text = _decode(data, codec, "whatwg-replace")
    if "\ufffd" not in text:
        return text, 0
    if codec in ("utf-8", "utf-8-sig"):
        return text, _count_broken_utf8(data)
    literal = len(data.decode(codec, errors="ignore")) - len(data.decode(codec, errors="ignore").replace("\ufffd", ""))
    return text, text.count("\ufffd") - literal


def _label_encoding(codec: str) -> str:
    """Return the familiar name of a codec: "windows-1252", not "cp1252"."""
    import webencodings

    if codec in ENCODING_LABELS:
        return ENCODING_LABELS[codec]
    known = webencodings.lookup(codec)
    return codec if known is None else known.name


def find_codec(label: str | None) -> str | None:
    """Return Python's codec for a charset label, or None if unknown.

    Labels mean what they mean in browsers (https://encoding.spec.whatwg.org/#names-and-labels): ISO-8859-1 and
    ASCII mean windows-1252, GB2312 means GB18030. Other names are Python's.
    """
    import webencodings

    name = (label or "").strip().lower().strip("\"'")
    if not name.isascii() or "\0" in name:
        return None
    encoding = webencodings.lookup(name)
    if encoding is None:
        try:
            python_name = codecs.lookup(name).name
        except LookupError:
            return None
        encoding = webencodings.lookup(python_name.replace("iso8859", "iso-8859"))
        if encoding is None:
            return python_name if python_name in PYTHON_CODECS else None
    return None if encoding.name in UNSUPPORTED_LABELS else CODEC_SUPERSETS.get(encoding.name, encoding.codec_info.name)


def looks_binary(data: bytes) -> bool:
    """Return whether over 5% of the bytes are control characters, unless they are UTF-16 without a byte order mark."""
    sample = data[:SAMPLE_BYTES] + data[-SAMPLE_BYTES:]
    controls = len(sample) - len(sample.translate(None, CONTROLS))
    return controls > len(sample) * MAX_CONTROL_SHARE and _find_unmarked_utf16(data[:SAMPLE_BYTES]) is None


def _find_unmarked_utf16(sample: bytes) -> str | None:
    """Return the codec of UTF-16 without a byte order mark, or None; nearly all NULs are at every second byte."""
    even, odd = sample[0::2].count(0), sample[1::2].count(0)
    if len(sample) < 8 or min(even, odd) >= len(sample) * MAX_CONTROL_SHARE:
        return None
    if max(even, odd) > len(sample) * 0.2 and min(even, odd) < len(sample) * 0.01:
        return "utf-16-be" if even > odd else "utf-16-le"
    foreign, controls = (len(sample) - len(sample.translate(None, some)) for some in (NOT_ASCII, CONTROLS))
    if foreign < len(sample) * 0.2:
        return None
    texts = {  # in other letters than Latin ones
        codec: codecs.getincrementaldecoder(codec)("replace").decode(sample) for codec in ("utf-16-le", "utf-16-be")
    }
    codec = max(texts, key=lambda each: sum(map(texts[each].count, " \n、。，")) + len(KANA.findall(texts[each])))
    if controls <= len(sample) * MAX_CONTROL_SHARE and len(KANA.findall(texts[codec])) < MIN_KANA * len(texts[codec]):
        return None
    is_latin = sum("\u0100" <= char < "\u0370" for char in texts[codec]) > len(sample) * MAX_CONTROL_SHARE
    return codec if not is_latin and all(char.isprintable() or char.isspace() for char in texts[codec]) else None


def _try_decode(data: bytes, encoding: str) -> str | None:
    try:
        return _decode(data, encoding, "whatwg")
    except (UnicodeDecodeError, LookupError):
        return None


def _decode(data: bytes, codec: str, errors: str) -> str:
    text = data.decode(codec, errors)
    return text.translate(DEVIATIONS[codec]) if codec in DEVIATIONS else text


def _decode_missing(error: UnicodeError, replacement: str = "") -> tuple[str, int]:
    """Decode bytes that browsers accept and Python's codec does not; an error handler for ``codecs``.

    These are control characters in Windows code pages, the euro sign in GBK, and the JIS rows that Windows added, such
    as ①, which cp932 assigns to the same two bytes. CESU-8, which Java and Oracle write, is read as UTF-8.
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
    if error.encoding == "utf-8" and (pair := ENCODED_PAIR.match(error.object, start)):
        return pair[0].decode("utf-8", "surrogatepass").encode("utf-16", "surrogatepass").decode("utf-16"), pair.end()
    if not replacement:
        raise error
    return replacement, max(error.end, start + 1)


codecs.register_error("whatwg", _decode_missing)
codecs.register_error("whatwg-replace", partial(_decode_missing, replacement="\ufffd"))


# --- Guessing the encoding of bytes that are neither marked nor UTF-8 ---

WINDOW_BYTES = 100  # bytes on both sides of those outside ASCII that are examined
MAX_WINDOWS = 100
NON_ASCII = re.compile(rb"[\x80-\xff]+")
MIXED_WORD = re.compile(rb"[A-Za-z][\x80-\xff]|[\x80-\xff][A-Za-z]")
MAX_SCANT_BYTES = 6  # of letters outside ASCII: three characters of Japanese, which may be as many of Chinese
ISO_2022_JP = re.compile(rb"\x1b\$[@B]|\x1b\(J")
TYPOGRAPHIC_CHARS = "\u00a0‘’‚“”„–—…•€£§©®™°±«»·×½¼¾²³µ¶№─│┌┐└┘├┤┬┴┼═║╔╗╚╝╠╣"  # signs of texts in any language
MULTI_BYTE_CODECS = frozenset(
    ("gb18030", "big5hkscs", "cp932", "euc_jp", "cp949", "iso2022_jp_ext", "hz", "johab", "iso2022_kr")
)
CYRILLIC_LETTERS = "абвгдежзийклмнопрстуфхцчшщъыьэюяё"
# Letters outside ASCII of the languages that are written in a single-byte encoding, most usual encoding first.
ALPHABETS: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = (
    (
        ("cp1252", "mac_roman", "cp850", "cp437"),
        (
            "äöüß",
            "àâæçèéêëîïôœùûüÿ",
            "áéíñóúü¿¡ºª",
            "ãáàâçéêíóôõúüºª",
            "àèéìíîòóùú",
            "åäöéæøü",
            "æøåéèêóòâô",
            "áðéíóúýþæö",
            "éëïóöüáèêíú",
            "àçéèíïòóúü·",
        ),
    ),
    (
        ("cp1250", "iso8859_2", "cp852", "mac_latin2"),
        ("ąćęłńóśźż", "áčďéěíňóřšťúůýž", "áäčďéíĺľňóôŕšťúýž", "áéíóöőúüű", "čćđšž", "ăâîșțşţ"),
    ),
    (("cp1254", "iso8859_9", "cp857"), ("çğıöşüâîûİ",)),
    (("cp1257", "iso8859_13", "iso8859_4"), ("āčēģīķļņšūž", "ąčęėįšųūž", "äõöüšž")),
    (("cp1251", "koi8_r", "cp866", "iso8859_5", "mac_cyrillic"), (CYRILLIC_LETTERS,)),
    (("cp1251", "koi8_u", "cp866", "iso8859_5"), (CYRILLIC_LETTERS[:32] + "іїєґ",)),
    (("cp1251", "iso8859_5", "cp855"), (CYRILLIC_LETTERS[:32] + "ђјљњћџѓќѕ", CYRILLIC_LETTERS + "іў")),
    (("cp1253", "iso8859_7", "cp737"), ("αβγδεζηθικλμνξοπρσςτυφχψωάέήίόύώϊϋΐΰ",)),
    (("cp1255", "iso8859_8", "cp862"), ("אבגדהוזחטיךכלםמןנסעףפץצקרשת",)),
    (
        ("cp1256", "iso8859_6"),
        ("ءآأؤإئابةتثجحخدذرزسشصضطظعغفقكلمنهويىپچژگکی،؛؟ـ\u064b\u064c\u064d\u064e\u064f\u0650\u0651\u0652",),
    ),
    (("cp874",), ("".join(map(chr, range(0x0E01, 0x0E5C))),)),
    (("cp1258",), ("àâăèéêìíòóôơùúưýđ\u0300\u0301\u0303\u0309\u0323₫",)),
)
LATIN = (*ALPHABETS[0][1], "œ")
# What only a wrong encoding gives: signs inside a word, opening quotes after a letter, a final form of Hebrew inside a
# word, and in Thai a mark without its consonant, or a leading vowel without one after it.
ODD_SIGN = re.compile(
    "(?<=[^\\W\\d_])(?:[^\\w\\s\\x00-\\x7f\u2019\u2018\u00b7\u2013\u2014\u2026\u00ab\u00bb\u0640\u0300\u0301\u0303\u0309\u0323\u0e31-\u0e4e]"
    "|[\u00b9\u00b2\u00b3\u00aa\u00ba])(?=[^\\W\\d_])|(?<=[^\\W\\d_])[\u201a\u201e]"
    "|[ךםןףץ](?=[א-ת])"
    "|(?<![\u0e01-\u0e2e\u0e31\u0e34-\u0e3a\u0e47-\u0e4e])[\u0e31\u0e34-\u0e3a\u0e47-\u0e4e]|[\u0e40-\u0e44](?![\u0e01-\u0e2e])"
)
LATIN_NEXT_TO_OTHER = re.compile(
    "[A-Za-z](?=[^\\W\\d_\\x00-\u024f]|[\u0e31-\u0e4e])|[^\\W\\d_\\x00-\u024f](?=[A-Za-z])"
)
MIN_SCORE = 0.8  # of an encoding that is certain
CONTRADICTION_MARGIN = 0.15  # the same beyond the declared encoding
FOREIGN_LETTER = re.compile("[\u0370-\u1fff\u3040-\ud7a3]")  # of no Latin alphabet, whose encodings share most letters
WIN_MARGIN = 0.1  # share of characters that another encoding must explain beyond windows-1252
FREQUENT_LETTERS = "оеаинтсрвлαοιετσνηυρיוהלארתבמש"
# The most frequent Chinese characters, many of them Japanese too: in a short text, chance does not give them.
FREQUENT_CHINESE = frozenset(
    "的一是不了在人有我他这个们中来上大为和国地到以说时要就出会可也你对生能而子那得于着下自之年过发后作里用道行所然"
    "家种事成方多经么去法学如都同现当没动面起看定天分还进好小部其些主样理心本前开但因只从想实日者意无力它与长把机十民"
    "第公此已工使情明性知全三又关点正业外将两高间由问很最重并物手应向头文体政美相见被利什二等产或新己制身果加西月话合"
    "回特代内信表化老给世位次度门任常先海通教原东声提立及比员解水名真论处走义各入几口认条平系气题活更别打女变四神总何"
    "电数安少报才结反受目太量再感建务做接必场件计管期市直资命山金指许统区保至形社便空决治展科五基书非则听白却界达光放"
    "强即难且权思王完设式色路记南品住告类求据程北边张该交规万取格望领共确传师清今切院让识带导运请谢京店元价图馆温号姓址"
)
FREQUENT_CHINESE_BONUS, MIN_FREQUENT_CHINESE = 0.3, 0.4  # added to the score of a text with a larger share of them
KANA_BONUS, MIN_KANA = 0.1, 0.25  # added to the score of a text with a larger share of them
# What ISO 8859-15 has at the places of ¤, ½ and ¼, next to digits or within a French word.
LATIN_9 = re.compile(
    rb"(?<=[0-9])[ \xa0]?\xa4(?=[\s.,;:!?)\]/]|\Z)|\xa4[ \xa0]?(?=[0-9])"
    rb"|(?:(?<=[A-Za-z])|(?<![\w\x80-\xff]))[\xbc\xbd](?:[uU]|il)"
)
C1_BYTE = re.compile(rb"[\x80-\x9f]")
# ñ and ó of Mac Roman are dashes in windows-1252: between vowels, or before the end of "-ción".
O_TILDE = re.compile("õ(?!e)|Õ(?!E)")  # Hungarian's ő in windows-1252; in Portuguese an e follows
HUNGARIAN_VOWEL = re.compile("[áéíóú]")
DASH_IN_WORD = re.compile("(?<=[aeiou])\u2013(?=[aeiou])|(?<=[cs]i)\u2014(?=n\\b)|(?<=[a-z])\u2014(?= [a-z])")
CHARACTER_SETS = (  # encoding, character set that has its frequent characters first, their lead bytes
    ("cp949", "euc_kr", range(0xB0, 0xC9)),
    ("gb18030", "gb2312", range(0xB0, 0xD8)),
    ("big5hkscs", "big5", range(0xA4, 0xC7)),
    ("euc_jp", "euc_jp", range(0xB0, 0xD0)),
    ("cp932", "shift_jis", range(0x88, 0x98)),
)
CJK_PUNCTUATION = re.compile("[\u3000-\u303f\uff00-\uffef]")
KANA = re.compile("[\u3040-\u30ff]")
LETTER_NEXT_TO_CHARACTER = re.compile("[a-z](?=[\u3400-\u9fff\uac00-\ud7a3])|[\u3400-\u9fff\uac00-\ud7a3](?=[a-z])")
MIN_KANJI = 4  # of a Japanese text without kana, such as a title
NOT_KANJI = re.compile("[\uff61-\uff9f]|[A-Za-z](?=[\u3400-\u9fff])|[\u3400-\u9fff](?=[A-Za-z])")
HANGUL = re.compile("[\uac00-\ud7a3]")


def guess_encoding(data: bytes) -> tuple[str, float]:
    """Guess the encoding by the words around non-ASCII bytes: windows-1252, or a clearly better one, and its score.

    A single-byte encoding is judged by the share of characters that belong to the alphabet of one of its languages, in
    words with consistent capitalisation; a multi-byte encoding by the share of frequent characters. If both explain all
    (every byte of Japanese may be a letter of Thai), the multi-byte encoding is taken.
    """
    windows = _sample_windows(data)
    if LATIN_9.search(windows) and not C1_BYTE.search(data) and _score_codec(windows, "iso8859_15", LATIN) > 0.8:
        return "iso8859_15", 1.0
    best, best_score = "cp1252", _score_codec(windows, "cp1252", LATIN) + WIN_MARGIN
    for codec, charset, leads in CHARACTER_SETS:
        score = _score_multi_byte(data, codec, charset, leads)
        if score > best_score:
            best, best_score = codec, score
    for codecs_, alphabets in ALPHABETS:
        for codec in codecs_:
            if codec != "cp1252" and (score := _score_codec(windows, codec, alphabets)) > best_score:
                best, best_score = codec, score
    return best, best_score


def _sample_windows(data: bytes) -> bytes:
    """Return the words around non-ASCII bytes, up to a limit, sampled across the data."""
    places = [match.start() for match in NON_ASCII.finditer(data)]
    step = max(1, len(places) // MAX_WINDOWS)
    pieces: list[bytes] = []
    end = 0
    for place in places[::step]:
        start = max(end, place - WINDOW_BYTES)
        end = max(end, place + WINDOW_BYTES)
        pieces.append(data[start:end])
    return b" ".join(pieces)


def _score_codec(sample: bytes, codec: str, alphabets: tuple[str, ...]) -> float:
    """Return the share of non-ASCII characters that the best of these alphabets explains, -1 to about 1."""
    text = sample.decode(codec, errors="replace")
    outside = [char for char in text if char > "\x7f"]
    if not outside:
        return -1.0
    counts = Counter(outside)
    common = sum(count for char, count in counts.items() if char in TYPOGRAPHIC_CHARS)
    best = max(
        sum(
            count
            for char, count in counts.items()
            if (char.lower() in letters or char in letters) and char not in TYPOGRAPHIC_CHARS
        )
        for letters in alphabets
    )
    odd = len(ODD_SIGN.findall(text)) + len(LATIN_NEXT_TO_OTHER.findall(text)) + len(DASH_IN_WORD.findall(text))
    odd += text.count("\ufffd") + sum(
        after > "\x7f" and before.islower() and after.isupper() for before, after in pairwise(text)
    )
    odd += len(O_TILDE.findall(text)) if codec == "cp1252" and HUNGARIAN_VOWEL.search(text) else 0
    frequent = sum(count for char, count in counts.items() if char.lower() in FREQUENT_LETTERS)
    return (best + common - odd + 0.1 * frequent) / len(outside)


def _score_multi_byte(data: bytes, codec: str, charset: str, leads: range) -> float:
    """Return the share of non-ASCII characters that are frequent in a multi-byte encoding, -1 to 1."""
    text, broken = _decode_leniently(data[: 4 * SAMPLE_BYTES] if len(data) > 4 * SAMPLE_BYTES else data, codec)
    outside = [char for char in text if char > "\x7f"]
    if not outside or broken > len(outside) * MAX_BROKEN_SHARE + 1:
        return -1.0
    joined = "".join(outside)
    kana, hangul = len(KANA.findall(joined)), len(HANGUL.findall(joined))
    score = float(len(CJK_PUNCTUATION.findall(joined)) + (kana if codec in ("euc_jp", "cp932") else 0))
    for char in outside:
        encoded = char.encode(charset, errors="ignore")
        is_sign = codec == "gb18030" and encoded[:1] in (b"\xa1", b"\xa3") and not CJK_PUNCTUATION.match(char)
        score += len(encoded) == 2 and (encoded[0] in leads or is_sign) and not KANA.match(char)
    is_kanji = codec == "cp932" and score == len(outside) >= MIN_KANJI and not (broken or NOT_KANJI.search(text))
    frequent = sum(char in FREQUENT_CHINESE for char in outside)
    is_frequent = frequent >= MIN_FREQUENT_CHINESE * len(outside)
    if (codec in ("euc_jp", "cp932") and not (kana or is_kanji or is_frequent)) or (codec == "cp949" and not hangul):
        score /= 2
    score -= len(LETTER_NEXT_TO_CHARACTER.findall(text)) / 2
    if codec == "euc_jp" and kana > MIN_KANA * len(outside):
        score += KANA_BONUS * len(outside)  # as Big5 they would be frequent characters too
    if codec in ("gb18030", "euc_jp") and is_frequent:
        score += FREQUENT_CHINESE_BONUS * frequent
    return score / len(outside)


NAME_CODECS = ("cp866", "cp932", "cp949", "gb18030", "big5hkscs", "cp737", "cp862", "cp1251")  # the most usual first
LATIN_NAME_CODECS = ("cp437", "cp850", "cp1252", "cp852")
NOT_IN_NAMES = re.compile(r"[^\w\s\x00-\x7f«»–—№‘’“”\u0300-\u0323\u3000-\u303f\uff00-\uff60・]|[\uff61-\uff9f]")
KANJI_BONUS, MIN_KANJI_BYTES = 0.12, 4  # added to the score of Japanese names, whose bytes may be capitals of Cyrillic


def guess_name_encoding(names: bytes) -> str:
    """Guess the encoding of names in an archive, without suffixes: a code page of DOS, or CP1251.

    Latin names have fewer letters outside ASCII than inside. Of 831 short names, 764 are guessed right (615 as texts).
    """
    outside, inside = (re.findall(pattern, names) for pattern in (rb"[\x80-\xff]", rb"[A-Za-z]"))
    is_foreign = len(outside) > max(1, len(inside)) or re.search(rb"[\x80-\xff]{3}", names)
    scores = {codec: _score_names(names, codec) for codec in (NAME_CODECS if is_foreign else LATIN_NAME_CODECS)}
    best = max(scores, key=scores.__getitem__)
    return best if scores[best] >= MIN_SCORE or not is_foreign else "cp437"


def _score_names(names: bytes, codec: str) -> float:
    text = names.decode(codec, "replace")
    alphabets = next((alphabets for codecs_, alphabets in ALPHABETS if codec in codecs_), ())
    score = _score_codec(names, codec, alphabets) if alphabets else 0.0
    for _, charset, leads in (each for each in CHARACTER_SETS if each[0] == codec):
        score = _score_multi_byte(names, codec, charset, leads)
        if codec == "cp932":  # names, unlike texts, are often without kana
            score = score * (1 if KANA.search(text) else 2) + KANJI_BONUS * (len(names) >= MIN_KANJI_BYTES)
    return score - 2 * len(NOT_IN_NAMES.findall(text)) / max(1, len(text) - len(text.encode("ascii", "ignore")))


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


# --- Images and files encoded as text ---

DATA_IMAGE = re.compile(r"!\[([^\]]{0,500})\]\(\s*<?data:[^)]*+\)", re.IGNORECASE)  # in Markdown
DATA_REFERENCE = re.compile(r"^[ \t]*\[[^\]\n]{1,200}\]:[ \t]*<?data:\S*+[^\n]*\n?", re.IGNORECASE | re.MULTILINE)
DATA_ADDRESS = re.compile(
    r"data:[\w.+-]+/[\w.+-]+(?:;[\w.=+-]+)*,(?:[A-Za-z0-9+/=_%-]++|[^\s\"'()<>]{200,}+)", re.IGNORECASE
)
BASE64_BLOCK = re.compile(
    r"(?<![\w+/=-])(?:(?:[A-Za-z0-9+/_-]{60,}+[ \t]*\r?\n[ \t]*){5,}+[A-Za-z0-9+/_-]*+={0,2}"
    r"|[A-Za-z0-9+/_-]{400,}+={0,2})"
)
MIN_DATA_CHARS = 200  # of a data: address that is left out; a shorter one may be an example


def drop_encoded_data(text: str) -> str:
    """Return a text without embedded base64 images and files, and count their size in the file's notes."""
    if "data:" in text or "DATA:" in text:
        text = DATA_IMAGE.sub(lambda match: _count_data(match, match[1]), text)
        text = DATA_REFERENCE.sub(lambda match: _count_data(match, ""), text)
        text = DATA_ADDRESS.sub(lambda match: _count_data(match, ""), text)
    return BASE64_BLOCK.sub(_drop_base64, text)


def _count_data(match: re.Match[str], instead: str) -> str:
    size = len(match[0])
    if size < MIN_DATA_CHARS:
        return match[0]
    leave_out(f"bytes of embedded {'images' if 'data:image' in match[0].lower() else 'files'}", size - len(instead))
    return instead


def _drop_base64(match: re.Match[str]) -> str:
    block = match[0]
    capitals = sum(map(str.isupper, block)) / len(block)
    digits = sum(map(str.isdecimal, block)) / len(block)
    if not (0.2 < capitals < 0.7 and 0.03 < digits < 0.5 and any(map(str.islower, block))):
        return block  # a sequence of genes, a hash, a ruler
    leave_out("bytes of base64 data", len(block))
    return ""


# --- Struck text and superscripts of formatted texts ---

SUPERSCRIPTS = str.maketrans("0123456789+-−=()ni", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻⁼⁽⁾ⁿⁱ")
NOTE_MARK = re.compile(r"\d{1,3}(?:\s*[,;–-]\s*\d{1,3})*|[*†‡§¶]+")
BRACKETED_MARK = re.compile(r"[\[(].*[\])]")
VARIABLE_BEFORE = re.compile(
    r"(?:(?<![^\W\d_])[^\W\d_]{1,2}|[\d)\]])$"
)  # a number, or a unit or variable of one or two letters
ORDINALS = frozenset(
    ("st", "nd", "rd", "th", "er", "re", "e", "o", "a", "ème", "tm", "sm", "r", "™", "®", "©", "º", "ª")
)


def format_struck(text: str) -> str:
    """Return text that is struck through as in Markdown, with the blanks around it outside the marks."""
    words = text.strip()
    return text.replace(words, f"~~{words}~~") if words else text


def format_superscript(text: str, before: str) -> str:
    """Return a superscript as plain text that does not join the word before it.

    An exponent of a number, a variable or a unit stays a superscript ("10⁶", "m²", "10^(k-1)"), digits after any other
    word are a note mark ("crowns[3]"), and ordinals and trademarks join their word ("5th").

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


def format_subscript(text: str, before: str) -> str:
    """Return a subscript as plain text whose digits do not join the number before it: "1010_2", but "CO2"."""
    return f"_{text}" if before[-1:].isdigit() and text[:1].isdigit() else text

"""Words of texts in every script, and the languages that the keyword index stems.

The keyword index splits texts in the database (``workbench_terms`` in storage/schema.sql); highlighted words are found
here. Both follow these rules, and a test compares them:

- A word is a run of letters and digits with their combining marks (vowel signs, tone marks, points).
- Chinese, Japanese and Korean runs are split into pairs of neighbouring characters.
- Thai, Lao, Burmese and Khmer are also written without spaces, but with an alphabet: their runs are split into triples.
  With all spaces removed, triples found German as well as whole words did (XQuAD, nDCG@10 .931 and .915) and pairs did
  not (.801); for Chinese pairs are better (.966 and .896).
- Optional points of Arabic and Hebrew are removed, and the forms of alef, of ya and of kaf are unified.
- Ligatures, full-width and other compatibility forms are replaced with their usual letters (NFKC).
- Tokens with signs (1.3.2, C++, .NET, node.js, TCP/IP, a path, PPR-9087 and PPR9087, emoji) are separate terms, in
addition to the words in them.
- A question's words are also looked up in other spellings (``find_spellings``): 5 mm as 5mm, e-mail as email.
- A number with its digits in groups of three is one word, equal to the number without groups (1,204, 1.204, 1 204,
1'204 and 1204). A number that starts with 0, or has groups of another size (an address), is split.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from itertools import pairwise

CONFIGURATIONS = {
    "ar": "arabic", "ca": "catalan", "da": "danish", "de": "german", "el": "greek", "en": "english", "es": "spanish",
    "et": "estonian", "eu": "basque", "fi": "finnish", "fr": "french", "ga": "irish", "hi": "hindi", "hu": "hungarian",
    "hy": "armenian", "id": "indonesian", "it": "italian", "lt": "lithuanian", "nb": "norwegian", "ne": "nepali",
    "nl": "dutch", "nn": "norwegian", "no": "norwegian", "pt": "portuguese", "ro": "romanian", "ru": "russian",
    "sr": "serbian", "sv": "swedish", "ta": "tamil", "tr": "turkish",
}  # fmt: skip
LANGUAGES = tuple(sorted({*CONFIGURATIONS.values(), "cjk", "simple"}))  # "simple": no stemming
AUTO = "auto"  # language of a source whose texts are identified one by one
# passages of a source up to which a new language is applied at once and not by a job
MAX_PASSAGES_STEMMED_AT_ONCE = 500
_CJK_CODES = ("zh", "ja", "ko")

_POINTS = "\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670\u06d6-\u06dc"
_MARKS = (
    "\u0300-\u036f\u0900-\u0963\u0966-\u0dff\u0e31\u0e34-\u0e3a\u0e47-\u0e4e"
    "\u0eb1\u0eb4-\u0ebc\u0ec8-\u0ece\u102b-\u103e\u17b4-\u17d3"
)
_LETTER = "A-Za-z_\u00c0-\u0dff"  # makes digits part of a code ("v1.204"); unspaced scripts may touch a number
_GAP = " '\u00a0\u2009\u2019\u202f"  # between groups: spaces of any width, and the Swiss apostrophe
_HEAD = "[1-9][0-9]{0,2}"
_GROUPED_NUMBER = (
    rf"(?<![{_LETTER}0-9.,])(?:"
    rf"(?<![0-9][{_GAP}]){_HEAD}(?:[{_GAP}][0-9]{{3}}){{1,4}}(?![{_GAP}]?[0-9]|[.,][0-9]{{3}})"
    rf"|{_HEAD}(?:\.[0-9]{{3}}){{1,4}}(?!\.?[0-9])"
    rf"|{_HEAD}(?:,[0-9]{{3}}){{1,4}}(?!,?[0-9])"
    rf")(?![{_LETTER}])"
)
GROUPED_NUMBER = re.compile(_GROUPED_NUMBER)
WORD = re.compile(rf"{_GROUPED_NUMBER}|[^\W_](?:[^\W_]|[{_MARKS}{_POINTS}])*")
PAIRED_SCRIPT = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff]+")
UNSPACED_SCRIPT = re.compile("[\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0ece\u1000-\u103f\u1050-\u108f\u1780-\u17d3]+")
_GRAM_SIZES = ((PAIRED_SCRIPT, 2), (UNSPACED_SCRIPT, 3))
_POINT = re.compile(f"[{_POINTS}]")
_SPLIT_VOWELS = re.compile("[\u0e33\u0eb3]")  # of Thai and Lao, which NFKC would split
_UNIFIED_LETTERS = str.maketrans("أإآٱىیک", "ااااييك")


# Tokens with signs; ``workbench_names`` in storage/schema.sql has the same rules.
_SIGNED = re.compile(
    r"[.#]?[^\W_]+(?:[-_./\\:@&]{1,3}[^\W_]+)+(?:\+{1,2}|#)?"
    r"|[^\W\d_][^\W_]*(?:\+{1,2}|#)|\.[^\W\d_][^\W_]+|#[0-9]+"
    r"|[\U0001F1E6-\U0001F1FF]{2}|[\u231a-\u23ff\u25b6\u25c0\u2600-\u27bf\u2b1b-\u2b55\U0001F000-\U0001FAFF]"
    r"|[^\W_]++(?![+#])"  # a word without signs, or each of its letters would be tried
)
_PIECE = re.compile(r"[^/\\:@&]+")
_CODE = re.compile(  # versions, languages and codes
    r"(?<![0-9.])[0-9]+(?:\.[0-9]+){2,}(?![0-9])|(?<![^\W_])[^\W\d_](?:\+\+|#)(?![^\W_]|[+#])"
    r"|(?<![^\W_])(?<![./\\])\.[^\W\d_][^\W_]{1,15}(?![^\W_])"
    r"|(?<![^\W_])[^\W\d_]{1,8}(?:[-_][^\W_]{1,8}){0,2}[-_][0-9][^\W_]{0,11}(?![^\W_])"
)
_SIGN = re.compile(r"[\W_]")
_GROUPED = re.compile(r"[1-9][0-9]{0,2}(?:\.[0-9]{3})+")
_JOINT = re.compile(r"(?<=[^\W_])[-_]")
MAX_NAME_CHARS = 100
_PART = re.compile(r"[^\W_]+(?:(?<=[0-9])\.[0-9][^\W_]*)*")
_LETTERS_OR_DIGITS = re.compile(r"[^\W\d_]+|[0-9]+")
_JOINTS = frozenset("-/.&'\u2019")  # in words that are also written without them
MAX_JOINED_PARTS = 6  # an account number in groups of four has as many
MAX_SPELT_WORDS = 40  # words of a question whose spellings with a sign are looked up; each has 2 per letter


def find_names(text: str) -> Iterator[tuple[str, int, int]]:
    """Yield (name, start, end) of the tokens with signs in a text and of their pieces, as the index stores them.

    The name is in lower case, without joints if it has digits: ppr9087 for PPR-9087.
    """
    for token in _SIGNED.finditer(text):
        if not _SIGN.search(token[0]):
            continue
        start, end = token.span()
        spans = {(start, end)}
        for pattern in (_PIECE, _CODE):
            spans |= {(start + part.start(), start + part.end()) for part in pattern.finditer(token[0])}
        for first, last in sorted(spans):
            written = text[first:last]
            if _SIGN.search(written) and len(written) <= MAX_NAME_CHARS and not _GROUPED.fullmatch(written):
                folded = _JOINT.sub("", written) if re.search("[0-9]", written) else written.replace("_", "-")
                yield folded.lower().replace("\\", "/"), first, last


def find_joined(text: str) -> Iterator[tuple[str, int, int]]:
    """Yield (spelling, start, end) of neighbouring words that are also written as one, in lower case.

    These are words with a sign between them (email for e-mail), and letters next to a number (5mm for 5 mm, iso9001
    for ISO 9001, m8x40 for M8×40). Numbers are only joined to a word: de893704 for DE89 3704, but not 2030 for 20 30.
    """
    parts = list(_PART.finditer(text))
    for first, part in enumerate(parts):
        joined, signs = part[0], () if text[part.start() - 1 : part.start()] in _JOINTS else _JOINTS
        for before, after in pairwise(parts[first : first + MAX_JOINED_PARTS]):
            gap, digits = text[before.end() : after.start()], before[0][-1].isdigit() + after[0][0].isdigit()
            is_number = gap == " " and (digits == 1 or (digits == 2 and not joined[0].isdigit()))
            is_size = gap.strip() == "×" and digits == 2
            if not (is_number or is_size) and (gap not in signs or digits == 2):
                break
            joined += f"x{after[0]}" if is_size else after[0]
            yield joined.lower(), part.start(), after.end()


def find_spellings(question: str) -> dict[str, tuple[int, int]]:
    """Return other spellings of a question's words, with the first of the words (from 1) and how many they replace.

    These are joined words, words with a sign (e-mail and node.js for email and nodejs), and dotnet for .NET.
    """
    words = list(iter_spaced_words(question))  # whose places the keyword index counts
    places = {at: place for place, word in enumerate(words, start=1) for at in (word.start(), word.end())}
    spellings = {
        joined: (places[start], places[end] - places[start] + 1)
        for joined, start, end in find_joined(question)
        if start in places and end in places
    }
    for dotted in re.finditer(r"\B\.([^\W_]+)", question):
        if dotted.start(1) in places:
            spellings[f"dot{dotted[1].lower()}"] = places[dotted.start(1)], 1
    for place, folded in enumerate((word[0].lower() for word in words[:MAX_SPELT_WORDS]), start=1):
        if 2 < len(folded) < MAX_NAME_CHARS and folded.isalpha():
            signed = (f"{folded[:at]}{sign}{folded[at:]}" for at in range(1, len(folded)) for sign in "-.")
            spellings |= dict.fromkeys([*signed, *([f".{folded[3:]}"] if folded.startswith("dot") else [])], (place, 1))
    return spellings


def split_code(word: str) -> list[str]:
    """Return the letters and numbers of a word with both: ISO and 9001 for ISO9001, M8 and 40 for M8x40; else []."""
    sizes = re.split("(?<=[0-9])x(?=[0-9])", word)
    parts = sizes if len(sizes) > 1 else _LETTERS_OR_DIGITS.findall(word)
    return parts if len(parts) > 1 else []


def is_code(text: str) -> bool:
    """Return whether a text is nothing but tokens with signs, such as 1.3.2 or PPR-9087, and has a digit."""
    covered = {position for _, start, end in find_names(text) for position in range(start, end)}
    return any(map(str.isdigit, text)) and all(at in covered for at, sign in enumerate(text) if sign.isalnum())


def find_language(name: str) -> str | None:
    """Return the keyword index's name for a language name or an ISO 639-1 code; None if unknown."""
    key = name.strip().lower()
    if key in LANGUAGES:
        return key
    return "cjk" if key in _CJK_CODES else CONFIGURATIONS.get(key)


def language_title(name: str) -> str:
    """Return the display name of a language of the keyword index; "" if unknown."""
    return {"cjk": "Chinese, Japanese or Korean", "simple": ""}.get(name, name.capitalize())


def fold_word(word: str) -> str:
    """Return a word in NFKC without optional Arabic and Hebrew points, with unified letters and ungrouped digits."""
    if word[:1].isdigit() and not word.isdigit() and GROUPED_NUMBER.fullmatch(word):
        return ungroup_numbers(word)
    if not word.isascii() and not _SPLIT_VOWELS.search(word):
        word = unicodedata.normalize("NFKC", word)
    return _POINT.sub("", word).translate(_UNIFIED_LETTERS)


def ungroup_numbers(text: str) -> str:
    """Return a text with its numbers as the index stores them: 1204 for 1,204."""
    return GROUPED_NUMBER.sub(lambda number: re.sub(r"\D", "", number.group()), text)


def split_grams(text: str) -> set[str]:
    """Return the pairs and triples of characters in runs of unspaced scripts; a shorter run counts as a whole."""
    return {run[at : at + size] for run, size in _runs(text) for at in range(max(1, len(run) - size + 1))}


def gram_spans(text: str, wanted: Collection[str]) -> list[tuple[int, int]]:
    """Return (start, end) of the wanted grams in a text, in order, merged if they touch."""
    spans: list[tuple[int, int]] = []
    for pattern, size in _GRAM_SIZES:
        for match in pattern.finditer(text):
            for at in range(match.start(), match.end()):
                length = next((n for n in (size, *range(size - 1, 0, -1)) if text[at : at + n] in wanted), 0)
                if length and at + length <= match.end():
                    _join(spans, at, at + length)
    return sorted(spans)


def iter_spaced_words(text: str) -> Iterator[re.Match[str]]:
    """Return the words outside unspaced runs, in order; the keyword index counts the same ones from 1."""
    return WORD.finditer(_blank_unspaced(text))


def count_spaced_words(text: str) -> Counter[str]:
    """Return how often each word outside unspaced runs occurs."""
    return Counter(WORD.findall(_blank_unspaced(text)))


def _blank_unspaced(text: str) -> str:
    for pattern, _ in _GRAM_SIZES:
        text = pattern.sub(lambda run: "\n" * len(run.group()), text)  # not a space, which would join digit groups
    return text


def gram_weights(text: str, weights: Mapping[str, float]) -> dict[int, float]:
    """Return, for each character position in unspaced runs, the highest weight of a gram that covers it."""
    covered: dict[int, float] = {}
    for pattern, size in _GRAM_SIZES:
        for match in pattern.finditer(text):
            run = match.group()
            for at in range(max(1, len(run) - size + 1)):
                weight = weights.get(run[at : at + size], 0.0)
                for place in range(match.start() + at, min(match.end(), match.start() + at + size)):
                    covered[place] = max(covered.get(place, 0.0), weight)
    return covered


def is_unspaced(text: str) -> bool:
    """Return whether a text contains a script that is written without spaces."""
    return any(pattern.search(text) for pattern, _ in _GRAM_SIZES)


def _runs(text: str) -> Iterator[tuple[str, int]]:
    for pattern, size in _GRAM_SIZES:
        for match in pattern.finditer(text):
            yield match.group(), size


def _join(spans: list[tuple[int, int]], start: int, end: int) -> None:
    if spans and spans[-1][0] <= start <= spans[-1][1]:
        spans[-1] = (spans[-1][0], max(end, spans[-1][1]))
    else:
        spans.append((start, end))


# Sentence boundaries by regular expression

# Candidates for a sentence end: Latin marks before a space, CJK marks anywhere, blank lines, list items.
BOUNDARY = re.compile(
    r"""(?P<latin>[.!?…]+["'”’»)\]*_`]*)(?=\s)"""
    r"""|(?P<cjk>[。！？｡]+["'”’」』）》】]*)"""
    r"""|(?P<gap>\n[ \t]*\n)"""
    r"""|(?P<item>\n(?=[ \t]*(?:[-*+•]|\d{1,9}[.)])[ \t]))"""
)
WORD_BEFORE = re.compile(r"[\w.'’-]+$")
ABBREVIATIONS = frozenset(
    """
    mr mrs ms dr prof sr jr st rev hon gen col maj capt lt sgt gov sen rep pres
    inc ltd co corp llc plc dept univ assn bros no nos vol vols pp ed eds fig figs eq eqs sec ch chap ref refs tab
    e.g i.e cf viz vs etc al ca approx est resp incl excl min max avg
    jan feb mar apr jun jul aug sep sept oct nov dec mon tue tues wed thu thur thurs fri sat sun
    a.m p.m u.s u.k u.n d.c ph.d m.d b.a m.a b.sc m.sc
    z.b d.h u.a bzw usw ggf evtl vgl hr fr nr str abs art mio mrd tel
    mme mlle env ex p.ex m sra srta ud uds pág núm ej
    """.split()  # noqa: SIM905 - a table of words reads better than a list of quotes
)
RARELY_LAST = frozenset("e.g i.e cf viz vs mr mrs ms dr prof fig figs eq eqs nr z.b d.h vgl p.ex".split())  # noqa: SIM905
MAX_ABBREVIATION_CHARS = 24  # characters before a full stop that are examined for an abbreviation
MAX_RUN_IN_CHARS = 80  # maximum length of a bold heading at the start of its sentence
# "**Colour.** Warm greys" is one sentence
RUN_IN_HEADING = re.compile(r"(?:[-*+][ \t]+)?(\*\*|__)(?:(?!\1).)+\1", re.DOTALL)


def sentence_spans(text: str, start: int = 0, end: int | None = None) -> list[tuple[int, int]]:
    """Return (start, end) of the sentences of ``text[start:end]``, stripped, in order, covering all but whitespace."""
    end = len(text) if end is None else end
    spans: list[tuple[int, int]] = []
    begin = start
    for match in BOUNDARY.finditer(text, start, end):
        if match.lastgroup == "latin" and not _ends_sentence(text, match, begin, end):
            continue
        _add(spans, text, begin, match.end())
        begin = match.end()
    _add(spans, text, begin, end)
    return spans


def _ends_sentence(text: str, match: re.Match[str], begin: int, end: int) -> bool:
    following = text[match.end() : min(end, match.end() + 8)].lstrip()
    if not following:
        return True
    if match.end() - begin <= MAX_RUN_IN_CHARS and RUN_IN_HEADING.fullmatch(text[begin : match.end()].strip()):
        return False
    if match.group()[0] != ".":
        return not following[0].islower()
    if match.group().startswith(".."):
        return not following[0].islower()
    return _dot_ends_sentence(text[max(begin, match.start() - MAX_ABBREVIATION_CHARS) : match.start()], following[0])


def _dot_ends_sentence(before: str, following: str) -> bool:
    if following.islower():
        return False
    match = WORD_BEFORE.search(before)
    if match is None:
        return True
    word = match.group().casefold().strip("'’-")
    if word.isdigit() and not before[: match.start()].strip():  # "3. The third step": a list's number
        return False
    if len(word) == 1 and word.isalpha() and match.group().isupper():  # an initial: "J. Smith"
        return False
    if word in RARELY_LAST:
        return False
    return word not in ABBREVIATIONS or (following.isupper() and word in ("etc", "al", "inc", "ltd", "co", "corp"))


def _add(spans: list[tuple[int, int]], text: str, start: int, end: int) -> None:
    while start < end and text[end - 1].isspace():
        end -= 1
    while start < end and text[start].isspace():
        start += 1
    if start < end:
        spans.append((start, end))


# Normal form of stored texts and of questions

NEWLINES = re.compile("\r\n|[\r\v\f\x1c-\x1e\x85\u2028\u2029]")
# Controls except tab and newline, soft hyphens, zero-width spaces, marks of direction and other invisible signs, stray
# byte order marks, and the surrogates and non-characters that UTF-8 databases reject.
INVISIBLE_CHARACTERS = re.compile(
    "[\x00-\x08\x0e-\x1b\x1f\x7f-\x84\x86-\x9f\u00ad\u034f\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069"
    "\ufeff\ufdd0-\ufdef\ufffc\ufffe\uffff\ud800-\udfff]"
)
LATIN_JOINER = re.compile("[\u200c\u200d](?<=[A-Za-z\u00c0-\u024f].)(?=[A-Za-z\u00c0-\u024f])")  # means nothing there
# a soft hyphen at the end of a line
DIVIDED_WORD = re.compile("\u00ad[ \t]*(?:\r\n|[\n\r\u2028\x0b\x85])[ \t]*(?=\\w)")
# Colours, cursor movements and addresses of links in logs (ECMA-48), and letters that are written over
TERMINAL_SEQUENCE = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|[^\n\x08]\x08")
SPECIAL_SPACES = re.compile("[\u00a0\u2000-\u200a\u202f\u205f]")
HYPHEN = re.compile("[\u2010\u2011]|[\u2012\u2013\u2212](?<=[A-Z].)(?=[0-9])")  # also the dash of PPR–9087
TRAILING_BLANKS = re.compile(r"(?<![ \t])[ \t]++(?=\n)")  # reads a run once, even if it has a million blanks
MAX_GAP = "\n" * 20  # code may have several blank lines in a row; more would fill passages
WIDE_GAPS = re.compile(MAX_GAP + r"\n+")
# Ligatures of Latin letters, and full-width letters and digits, which no embedding model knows
JOINED_OR_WIDE = re.compile("[\ufb00-\ufb06\uff10-\uff19\uff21-\uff3a\uff41-\uff5a]+")
# Full-width signs inside a token, and ＋ and ＃ after it: １．３．２, ＰＰＲ－９０８７, Ｃ＋＋
WIDE_SIGN = re.compile("[＃＆＋－．／＿＠](?<=[0-9A-Za-z].)(?:(?=[0-9A-Za-z])|(?<=[＃＋])[＃＋]*)")
PART_CHARS = 200_000  # characters normalised at once, because each step makes a copy


def normalise(text: str) -> str:
    """Return text in NFC with ``\\n`` line ends, without ligatures, control characters, trailing blanks and huge gaps.

    It is idempotent. Indentation is kept, because Markdown and code depend on it.
    """
    if "\u00ad" in text:
        text = DIVIDED_WORD.sub("", text)
    if "\x1b" in text or "\b" in text:
        text = TERMINAL_SEQUENCE.sub("", text)
    text = "".join(_normalise_part(text[start:end]) for start, end in _split_parts(text))
    return text.strip("\n").rstrip() if text.strip() else ""


def _normalise_part(text: str) -> str:
    text = NEWLINES.sub("\n", text)
    text = INVISIBLE_CHARACTERS.sub("", text)
    if not text.isascii():
        text = unicodedata.normalize("NFC", LATIN_JOINER.sub("", SPECIAL_SPACES.sub(" ", text)))
        for pattern in (JOINED_OR_WIDE, WIDE_SIGN):
            text = pattern.sub(lambda run: unicodedata.normalize("NFKC", run[0]), text)
        text = HYPHEN.sub("-", text)
    text = TRAILING_BLANKS.sub("", text)
    return WIDE_GAPS.sub(MAX_GAP, text)


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

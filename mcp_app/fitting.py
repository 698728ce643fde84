"""The length of answers: texts cut at a length, and a count of tokens that is on the safe side."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable

LONGEST_TEXT = 1000  # characters of a text in a result
LONGEST_TITLE = 200  # characters of a title or a place
_END = 300  # characters of a sentence's end, where the valid choices stand
BUDGET = 7600  # tokens by our count, which is on the safe side; the promise is 8,000

# Measured with cl100k_base and o200k_base, the denser of the two for each kind of text.
_LETTERS_OF_ENGLISH, _LETTERS_OF_OTHERS = 3.7, 2.25  # letters to a token in prose; others: Finnish, Polish, Hungarian
_FUNCTION_WORDS_OF_ENGLISH = 0.08  # share of the words of English prose that are among those below
_DENSE = 1.26  # characters to a token in base64, hashes and keys
_CHANGES = 0.16  # changes between capitals, small letters and digits to a character from which a run is no word
_UNSPEAKABLE_LETTERS = 1.5  # letters to a token where no word has so many consonants or capitals in a row
_MARKS_TO_A_TOKEN = 1.15
_ISOLATED_ACCENT = 1.0  # tokens that an accented letter between plain ones adds less than one among accented ones

_ESCAPE = re.compile(r"\\(?:u[0-9a-f]{4}|.)")  # \u001b takes five tokens, the others one
_WORD = re.compile("[A-Z\u00c0-\u00de]?[a-z\u00df-\u024f]+|[A-Z]{1,3}")
_FUNCTION_WORD = re.compile(r"\b(?:the|of|and|for|that|with|are|this|from|you|not)\b")
_RUN = re.compile(r"[A-Za-z0-9+/]{7,}")  # without a blank
_CHANGE = re.compile(r"(?<=[0-9])[A-Za-z]|(?<=[A-Za-z])[0-9]|(?<=[a-z])[A-Z]|(?<=[A-Z]{2})[a-z]|[+/]")
_UNSPEAKABLE = re.compile(r"[bcdfghjklmnpqrstvwxz]{4,}|[BCDFGHJKLMNPQRSTVWXZ]{4,}|[A-Z]{9,}|[a-z]{24,}")
_NUMBER = re.compile(r"\s?[0-9]{1,2}")
_BLANKS = re.compile(r"[\n\t\r\x00-\x1f]|  +|\s(?=[0-9])")
_MARK_AND_DIGIT = re.compile(r"[!-/:-@\[-`{-~](?=[0-9])")
_MARKS = re.compile(r"[!-/:-@\[-`{-~\x7f]")
_BEYOND = re.compile(r"[^\x00-\x7f]+")
_ACCENT = re.compile("(?<![^\x00-\x7f])[\u00c0-\u024f](?![^\x00-\x7f])")

# (first code point, tokens to a character) of each range of scripts that tokenisers treat alike
_SCRIPTS = (
    *((0x80, 1.9), (0x250, 2.0), (0x370, 1.6), (0x400, 1.15), (0x460, 2.0), (0x590, 1.5), (0x600, 1.3), (0x680, 2.0)),
    *(
        (0x900, 2.05),
        (0xE00, 1.5),
        (0xE80, 2.05),
        (0x1000, 2.2),
        (0x10A0, 2.05),
        (0x1100, 3.0),
        (0x1780, 2.05),
        (0x1800, 3.0),
        (0x1E00, 2.0),
    ),
    *((0x2000, 2.0), (0x2010, 1.3), (0x2028, 2.0), (0x2070, 2.6), (0x2500, 2.05), (0x2580, 2.5), (0x2700, 3.0)),
    *((0x3000, 1.2), (0x3040, 1.6), (0x3100, 3.0), (0x4E00, 2.45), (0xA000, 3.0), (0xAC00, 2.7), (0xD7B0, 3.0)),
    *((0xFE00, 3.0), (0xFF00, 2.0), (0xFFF0, 3.0), (0x10000, 4.0), (0x1D400, 3.1), (0x1D800, 4.0), (0x1F000, 3.1)),
    (0x1FB00, 4.0),
)
_STARTS, _COSTS = [start for start, _ in _SCRIPTS], [cost for _, cost in _SCRIPTS]


def cut(text: str | None, longest: int = LONGEST_TEXT) -> str | None:
    """Return a text of at most ``longest`` characters, ending in ``...`` where something was left out."""
    return text[: longest - 3] + "..." if text and len(text) > longest else text


def one_line(text: str) -> str:
    """Return a sentence on one line; of a long one, such as one that repeats what it was given, the ends stay."""
    line = " ".join(text.splitlines())
    if len(line) <= LONGEST_TEXT:
        return line
    return f"{line[: LONGEST_TEXT - _END - 5]} ... {line[-_END:]}"


def tokens(text: str) -> int:
    """Estimate, rather too high than too low, how many tokens a model reads in a text.

    Prose is counted by its letters, English as such and other languages denser; keys, hashes and letters that make no
    words by what they take; other scripts by character.
    """
    escapes = _ESCAPE.findall(text)
    count: float = sum(5 if len(escape) > 2 else 1 for escape in escapes)
    text = _ESCAPE.sub(" ", text) if escapes else text
    beyond = "".join(_BEYOND.findall(text))
    if beyond:
        count += sum(_cost(char) * times for char, times in Counter(beyond).items())
        count -= _ISOLATED_ACCENT * len(_ACCENT.findall(text))
    dense = [run for run in _RUN.findall(text) if len(_CHANGE.findall(run)) > _CHANGES * len(run)]
    if dense:
        keys = set(dense)
        text = _RUN.sub(lambda run: " " if run.group() in keys else run.group(), text)
    odd = sum(map(len, _UNSPEAKABLE.findall(text)))
    words = _WORD.findall(text)
    letters = max(0, sum(map(len, words)) - odd)
    share = len(_FUNCTION_WORD.findall(text)) / (len(words) or 1)
    english = min(1.0, share / _FUNCTION_WORDS_OF_ENGLISH)
    each = _LETTERS_OF_OTHERS + english * (_LETTERS_OF_ENGLISH - _LETTERS_OF_OTHERS)
    count += sum(map(len, dense)) / _DENSE + odd / _UNSPEAKABLE_LETTERS + max(len(words), letters / each)
    count += len(_NUMBER.findall(text)) + len(_BLANKS.findall(text)) + len(_MARKS.findall(text)) / _MARKS_TO_A_TOKEN
    return int(count + len(_MARK_AND_DIGIT.findall(text)) * (1 - 1 / _MARKS_TO_A_TOKEN)) + 1


def _cost(char: str) -> float:
    return _COSTS[bisect_right(_STARTS, ord(char)) - 1]


def fits(text: str, budget: int = BUDGET) -> bool:
    """Tell whether a text stays within a number of tokens; no encoding needs more than 4 of them a character."""
    return len(text) * 4 <= budget or tokens(text) <= budget


def within(most: int, text: Callable[[int], str], budget: int = BUDGET) -> int:
    """Return the largest size up to ``most`` whose text stays within ``budget`` tokens, at least 1 where there is one.

    ``text(size)`` grows with size; the search is by bisection.
    """
    if fits(text(most), budget):
        return most
    low, high = min(1, most), most - 1
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(text(middle), budget) else (low, middle - 1)
    return low

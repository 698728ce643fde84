"""The length of answers: texts cut at a length, and a count of tokens that is on the safe side."""

from __future__ import annotations

import string
from collections.abc import Callable

LONGEST_TEXT = 1000  # characters of a text in a result
LONGEST_TITLE = 200  # characters of a title or a place
_END = 300  # characters of a sentence's end, where the valid choices stand
BUDGET = 7600  # tokens by our count, which is on the safe side; the promise is 8,000

_LETTERS = (string.ascii_letters + " ").encode()
_DIGITS = string.digits.encode()
_ASCII = bytes(range(128))


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

    English letters come about 4 to a token, digits 2 to 3, punctuation 1 to 2; other scripts about 2 bytes to one.
    """
    data = text.encode()
    rest = data.translate(None, _LETTERS)
    others = rest.translate(None, _DIGITS)
    beyond = data.translate(None, _ASCII)
    letters, digits = len(data) - len(rest), len(rest) - len(others)
    return int(letters / 3.7 + digits / 1.9 + (len(others) - len(beyond)) / 1.6 + len(beyond) / 2) + 1


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

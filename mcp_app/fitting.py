"""Keeping answers short: texts cut at a length, whole answers under a number of tokens, and told so."""

from __future__ import annotations

import string
from collections.abc import Callable, Mapping
from typing import Any

LONGEST_TEXT = 1000  # characters of a text in a result
LONGEST_TITLE = 200
_END = 300  # characters of a sentence's end, where the valid choices stand
ITEMS_A_PAGE = 20
BUDGET = 7600  # tokens by our count, which is on the safe side; the promise is 8,000
_CUTS = (700, 480, 320, 240)  # characters that texts are shortened to before whole items are left out
_LISTS = ("results", "documents", "sources", "folders", "articles", "crawl_jobs")
_TEXTS = ("text", "content", "preview", "snippet")

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


def fit(answer: Any, render: Callable[[Any], str], rest: str) -> str:
    """Return the answer's text within the budget: first shorter texts, then fewer items, and a sentence about it.

    ``rest`` says how to get what was left out.
    """
    text = render(answer)
    if len(text) * 4 <= BUDGET or tokens(text) <= BUDGET:  # no encoding needs more than 4 tokens a character
        return text
    name = _list_in(answer)
    if name is None:
        return text
    for longest in _CUTS:
        shorter = _with_items(answer, name, [_shortened(item, longest) for item in _items(answer, name)])
        note = f"Texts end after {longest} characters to keep the answer under 8,000 tokens. {rest}"
        text = render(_noted(shorter, note))
        if tokens(text) <= BUDGET:
            return text
    return _fewer(answer, name, render, rest)


def _fewer(answer: Any, name: str | int, render: Callable[[Any], str], rest: str) -> str:
    """Leave out items from the end, by bisection over how many stay."""
    items = [_shortened(item, _CUTS[-1]) for item in _items(answer, name)]

    def shown(count: int) -> str:
        left = len(items) - count
        note = f"{left} of {len(items)} were left out to keep the answer under 8,000 tokens. {rest}"
        return render(_noted(_with_items(answer, name, items[:count]), note))

    low, high = 0, len(items)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if tokens(shown(middle)) <= BUDGET else (low, middle - 1)
    return shown(low)


def _list_in(answer: Any) -> str | int | None:
    if isinstance(answer, list):
        return 0
    if isinstance(answer, Mapping):
        return next((name for name in _LISTS if isinstance(answer.get(name), list) and answer[name]), None)
    return None


def _items(answer: Any, name: str | int) -> list[Any]:
    return answer if isinstance(answer, list) else answer[name]


def _with_items(answer: Any, name: str | int, items: list[Any]) -> Any:
    if isinstance(answer, list):
        return items
    counted = {"count": len(items)} if answer.get("count") == len(answer[name]) else {}
    return {**answer, name: items, **counted}


def _noted(answer: Any, note: str) -> Any:
    return [*answer, {"truncated": note}] if isinstance(answer, list) else {**answer, "truncated": note}


def _shortened(item: Any, longest: int) -> Any:
    if not isinstance(item, Mapping):
        return item
    return {
        key: cut(value, longest) if key in _TEXTS and isinstance(value, str) else value for key, value in item.items()
    }

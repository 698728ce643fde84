"""Long answers in parts: fewer items or the first part of a text, with true totals and the exact next call.

One rule for all tools and routes. An answer under the budget is left as it is; of a longer one its declared list loses
items from the end, or its declared text characters from the end, and nothing else is touched.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar
from urllib.parse import urlencode

from workbench.retrieval.parameters import CUTOFF
from workbench.retrieval.strategies import STRATEGIES
from workbench.types.json import JsonObject, JsonValue

# --- The length of answers: texts cut at a length, and a count of tokens that is on the safe side ---

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


T = TypeVar("T")

LONGEST_REPEATED = 300  # characters of an argument that the next call repeats
PAGE_ARGUMENTS = ("page",)  # the next call says by offset where it goes on


@dataclass(frozen=True, slots=True)
class Items:
    """The list ``key`` of the answer; its items are reached by ``offset``.

    ``count`` names the field that counts the items shown. ``total`` names the field that counts all there are; a
    search does not know it and says by ``more`` that further items match. A ``bare`` answer goes out as the array of
    its items alone; there the note stands in the last one.
    """

    key: str = "results"
    count: str = "count"
    total: str = ""
    more: str = "more"
    bare: bool = False


@dataclass(frozen=True, slots=True)
class RankedPage:
    """A page of a ranking: ``count`` items after ``offset``, of the first ``most`` that a search ranks.

    A ranking does not depend on how many are asked for, so pages neither repeat nor miss anything.
    """

    offset: int
    count: int
    most: int

    @property
    def asked(self) -> int:
        """How many to rank: up to the page's end, and one more, which shows whether anything follows."""
        return min(self.most, self.offset + self.count + 1)

    def of(self, ranked: Sequence[T]) -> Sequence[T]:
        """Return the page's items."""
        return ranked[self.offset : self.offset + self.count]

    def has_more(self, ranked: Sequence[object]) -> bool:
        """Return whether items follow after the page."""
        return len(ranked) > self.offset + self.count

    def is_under_filled(self, ranked: Sequence[object]) -> bool:
        """Return whether the scope holds fewer items than were asked for."""
        return len(ranked) < min(self.most, self.offset + self.count)

    def end(self, ranked: Sequence[object], kind: str, narrow: str) -> JsonObject:
        """Return a note if the page ends where the ranking has to; ``narrow`` says how to reach what it leaves out."""
        if len(ranked) < self.most or self.has_more(ranked):
            return {}
        return {
            "note": f"These are the last of the {self.most} {kind} that a search ranks. To see others, {narrow}, "
            "or ask a more specific question."
        }


@dataclass(frozen=True, slots=True)
class TextPart:
    """The text ``key`` of the answer; ``offset``, ``length`` and ``total_chars`` beside it say which part it is."""

    key: str = "content"


def past_the_end(offset: int, ranked: Sequence[object]) -> str:
    """Return a sentence if a page begins after everything that was found; "" if nothing was found at all."""
    return f"Only {len(ranked)} were found; use an offset below {len(ranked)}" if offset and ranked else ""


def given_in_parts(
    answer: JsonValue,
    parts: Items | TextPart | None,
    render: Callable[[JsonValue], str],
    name: str,
    arguments: Mapping[str, JsonValue],
    given: Mapping[str, object],
) -> tuple[JsonValue, str]:
    """Return the answer as it is given, and its text; ``arguments`` are the read ones, ``given`` those that came."""
    if isinstance(parts, TextPart) and isinstance(answer, dict):
        return _text_part(answer, parts, render, name, given)
    if isinstance(parts, Items) and isinstance(answer, dict) and parts.key in answer:
        return _items_part(answer, parts, render, name, skipped(arguments), given)
    return answer, render(answer)


def skipped(arguments: Mapping[str, JsonValue]) -> int:
    """Return how many items come before an answer's first: ``offset``, or what the pages before hold."""
    offset = arguments.get("offset")
    if isinstance(offset, int):
        return offset
    page, size = arguments.get("page"), arguments.get("per_page")
    return (page - 1) * min(size, ITEMS_A_PAGE) if isinstance(page, int) and isinstance(size, int) else 0


ITEMS_A_PAGE = 20


def text_part(text: str, offset: int, length: int, key: str = "content") -> JsonObject:
    """Return a part of a text with where it stands in the whole; lengths in characters."""
    part = text[offset : offset + length]
    return {key: part, "offset": offset, "length": len(part), "total_chars": len(text)}


def next_call(name: str, given: Mapping[str, object], **changes: object) -> str:
    """Write the call that goes on: ``tool(query="x", offset=20)``, or the address and body of an HTTP route."""
    arguments = {key: value for key, value in given.items() if value is not None and key not in PAGE_ARGUMENTS}
    arguments |= changes
    method, blank, path = name.partition(" ")
    if not blank:
        return f"{name}({', '.join(f'{key}={_written(value)}' for key, value in arguments.items())})"
    if method == "POST":
        return f"{name} {json.dumps({key: _repeated(value) for key, value in arguments.items()}, ensure_ascii=False)}"
    for key in [key for key in arguments if f"{{{key}}}" in path]:
        path = path.replace(f"{{{key}}}", str(arguments.pop(key)))
    return f"{method} {path}?{urlencode({key: str(value) for key, value in arguments.items()})}"


def _items_part(
    answer: JsonObject,
    parts: Items,
    render: Callable[[JsonValue], str],
    name: str,
    offset: int,
    given: Mapping[str, object],
) -> tuple[JsonValue, str]:
    items = _listed(answer[parts.key], name, parts.key)
    total = answer.get(parts.total) if parts.total else None
    whole = total if isinstance(total, int) else offset + len(items) + bool(answer.get(parts.more))
    is_close = not _nothing_close(answer, items)

    def shown(count: int) -> JsonValue:
        rest = offset + count < whole
        going_on = f"{_span(offset, count)}{_of(total)}. Next: {next_call(name, given, offset=offset + count)}"
        note = going_on if rest and count and (is_close or count < len(items)) else ""
        if parts.bare:  # the array stays an array of what it is
            return [*items[: count - 1], _noted(items[count - 1], note)] if note else items[:count]
        counted: JsonObject = {parts.count: count} if parts.count in answer and parts.count != parts.total else {}
        flag: JsonObject = {parts.more: rest} if parts.more in answer else {}
        if rest and "under_filled" in answer:
            flag["under_filled"] = False
        return {**answer, parts.key: items[:count], **counted, **flag} | ({"note": note} if note else {})

    count = within(len(items), lambda size: render(shown(size)), BUDGET)
    return shown(count), render(shown(count))


def _nothing_close(answer: JsonObject, items: Sequence[JsonObject]) -> bool:
    """Return whether a search says that nothing close was found; then further results are no help."""
    metadata = answer.get("metadata")
    said = answer.get("nothing_close") or (isinstance(metadata, dict) and metadata.get("nothingClose"))
    return bool(said or (items and items[0].get("nothing_close")))


def _text_part(
    answer: JsonObject, parts: TextPart, render: Callable[[JsonValue], str], name: str, given: Mapping[str, object]
) -> tuple[JsonValue, str]:
    text, offset, total = str(answer[parts.key]), _number(answer, "offset"), _number(answer, "total_chars")

    def shown(length: int) -> JsonObject:
        end = offset + length
        note = f"Characters {offset} to {end} of {total}. Next: {next_call(name, given, offset=end)}"
        part: JsonObject = {parts.key: text[:length], "length": length}
        return {**answer, **part} | ({"note": note} if end < total and length else {})

    length = within(len(text), lambda size: render(shown(size)), BUDGET)
    return shown(length), render(shown(length))


def _listed(value: JsonValue, name: str, key: str) -> list[JsonObject]:
    assert isinstance(value, list), f"{name} declares {key!r} as a list in parts, and answers with something else"
    items = [dict(item) for item in value if isinstance(item, Mapping)]
    assert len(items) == len(value), f"{name} gives {key!r} in parts: its items have to be objects"
    return items


def _noted(item: JsonObject, note: str) -> JsonObject:
    """Return an item with a note beside its own, such as the one that tells where its text goes on."""
    own = item.get("note")
    return {**item, "note": f"{own}. {note}" if own else note}


def _number(answer: JsonObject, key: str) -> int:
    value = answer[key]
    assert isinstance(value, int), f"{key} beside a text in parts is a whole number"
    return value


def _span(offset: int, count: int) -> str:
    return f"Items {offset + 1} to {offset + count}" if count else "No items"


def _of(total: JsonValue) -> str:
    return f" of {total}" if isinstance(total, int) else ", and more match"


def _repeated(value: object) -> object:
    return f"{value[:LONGEST_REPEATED]}..." if isinstance(value, str) and len(value) > LONGEST_REPEATED else value


def _written(value: object) -> str:
    return json.dumps(_repeated(value), ensure_ascii=False, default=str)


# --- The results for a caller who named no number: what scores far below the best is marked ---

FEW = 3  # results where nothing close was found and the caller named no number
BELOW = "below_cutoff"  # marks a result that scores far below the best


def worth_reading(scores: Sequence[float], strategy: str, share: float) -> int:
    """Return how many results are worth an agent's tokens: those that reach ``share`` (0..1) of the best score.

    ``scores`` fall. A strategy without a cutoff gives scores that cannot be held against each other; there all count.
    """
    if not STRATEGIES[strategy].declares(CUTOFF):
        return len(scores)
    return sum(score >= share * scores[0] for score in scores)


def first_page(
    items: Sequence[JsonObject], scores: Sequence[float], strategy: str, share: float, *, close: bool
) -> tuple[list[JsonObject], JsonObject]:
    """Return the results for a caller who named no number, and what the answer says of them.

    Args:
        items: The default number of results, best first.
        scores: Their scores, falling.
        strategy: The strategy that found them.
        share: Share of the best score (0..1) below which results are marked.
        close: False if nothing close was found; then only a few results are given.
    """
    if not close:
        return list(items[:FEW]), {}
    worth = worth_reading(scores, strategy, share)
    if worth == len(items):
        return list(items), {}
    marked: list[JsonObject] = [*items[:worth], *({**item, BELOW: True} for item in items[worth:])]
    said = f"From result {worth + 1} on, scores are below {share:g} of the best ({BELOW}); these may not answer."
    return marked, {"cutoff": said}

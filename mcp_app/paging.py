"""Cuts long answers to a token budget, with totals and the exact next call.

An answer within the budget is unchanged. A longer one loses items from the end of its declared list, or characters
from the end of its declared text. Nothing else is shortened.
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

from mcp_app.arguments import Refused
from workbench.retrieval.parameters import CUTOFF
from workbench.retrieval.strategies import STRATEGIES
from workbench.types import JsonObject, JsonValue, as_integer, as_items, as_object

# Cut texts and estimate tokens

MAX_TEXT_CHARS = 1000  # characters of a text in a result
MAX_TITLE_CHARS = 200  # characters of a title or path
_TAIL_CHARS = 300  # characters kept from the end of a message, which lists the valid choices
TOKEN_BUDGET = 7600  # tokens by our estimate, which is high; the contract allows 8,000

# Measured with cl100k_base and o200k_base; for each kind of text, the one with more tokens.
_LETTERS_OF_ENGLISH, _LETTERS_OF_OTHERS = 3.7, 2.25  # letters per token in prose; others: Finnish, Polish, Hungarian
_FUNCTION_WORDS_OF_ENGLISH = 0.08  # share of words in English prose that match _FUNCTION_WORD
_DENSE_CHARS_PER_TOKEN = 1.26  # characters per token in base64, hashes and keys
_CHANGES_PER_CHAR = 0.16  # changes of character class per character; from here on a run is not a word
_UNPRONOUNCEABLE_LETTERS = 1.5  # letters per token in runs of consonants or capitals too long for a word
_MARKS_PER_TOKEN = 1.15
_ISOLATED_ACCENT = 1.0  # tokens saved by an accented letter between ASCII letters

_ESCAPE = re.compile(r"\\(?:u[0-9a-f]{4}|.)")  # \u001b takes five tokens, other escapes one
_WORD = re.compile("[A-Z\u00c0-\u00de]?[a-z\u00df-\u024f]+|[A-Z]{1,3}")
_FUNCTION_WORD = re.compile(r"\b(?:the|of|and|for|that|with|are|this|from|you|not)\b")
_RUN = re.compile(r"[A-Za-z0-9+/]{7,}")  # without whitespace
_CHANGE = re.compile(r"(?<=[0-9])[A-Za-z]|(?<=[A-Za-z])[0-9]|(?<=[a-z])[A-Z]|(?<=[A-Z]{2})[a-z]|[+/]")
_CONSONANT_RUN = re.compile(r"[bcdfghjklmnpqrstvwxz]{4,}|[BCDFGHJKLMNPQRSTVWXZ]{4,}|[A-Z]{9,}|[a-z]{24,}")
_NUMBER = re.compile(r"\s?[0-9]{1,2}")
_WHITESPACE = re.compile(r"[\n\t\r\x00-\x1f]|  +|\s(?=[0-9])")
_MARK_AND_DIGIT = re.compile(r"[!-/:-@\[-`{-~](?=[0-9])")
_MARKS = re.compile(r"[!-/:-@\[-`{-~\x7f]")
_NON_ASCII = re.compile(r"[^\x00-\x7f]+")
_ACCENT = re.compile("(?<![^\x00-\x7f])[\u00c0-\u024f](?![^\x00-\x7f])")

# (first code point, tokens per character) of ranges that tokenizers treat alike
_SCRIPTS = (
    *((0x80, 1.9), (0x250, 2.0), (0x370, 1.6), (0x400, 1.15), (0x460, 2.0), (0x590, 1.5), (0x600, 1.3), (0x680, 2.0)),
    *((0x900, 2.05), (0xE00, 1.5), (0xE80, 2.05), (0x1000, 2.2), (0x10A0, 2.05), (0x1100, 3.0), (0x1780, 2.05)),
    *((0x1800, 3.0), (0x1E00, 2.0)),
    *((0x2000, 2.0), (0x2010, 1.3), (0x2028, 2.0), (0x2070, 2.6), (0x2500, 2.05), (0x2580, 2.5), (0x2700, 3.0)),
    *((0x3000, 1.2), (0x3040, 1.6), (0x3100, 3.0), (0x4E00, 2.45), (0xA000, 3.0), (0xAC00, 2.7), (0xD7B0, 3.0)),
    *((0xFE00, 3.0), (0xFF00, 2.0), (0xFFF0, 3.0), (0x10000, 4.0), (0x1D400, 3.1), (0x1D800, 4.0), (0x1F000, 3.1)),
    (0x1FB00, 4.0),
)
_STARTS, _COSTS = [start for start, _ in _SCRIPTS], [cost for _, cost in _SCRIPTS]


def cut(text: str | None, longest: int = MAX_TEXT_CHARS) -> str | None:
    """Return a text of at most ``longest`` characters, ending in ``...`` if it was cut."""
    return text[: longest - 3] + "..." if text and len(text) > longest else text


def to_one_line(text: str) -> str:
    """Return a message on one line; the middle of a long one is cut."""
    line = " ".join(text.splitlines())
    if len(line) <= MAX_TEXT_CHARS:
        return line
    return f"{line[: MAX_TEXT_CHARS - _TAIL_CHARS - 5]} ... {line[-_TAIL_CHARS:]}"


def tokens(text: str) -> int:
    """Estimate the tokens of a text; errs on the high side.

    Prose is counted by letters, at a rate for English and one for other languages. Keys, hashes and runs that are not
    words have separate rates, and other scripts are counted by character.
    """
    escapes = _ESCAPE.findall(text)
    count: float = sum(5 if len(escape) > 2 else 1 for escape in escapes)
    text = _ESCAPE.sub(" ", text) if escapes else text
    beyond = "".join(_NON_ASCII.findall(text))
    if beyond:
        count += sum(_COSTS[bisect_right(_STARTS, ord(char)) - 1] * times for char, times in Counter(beyond).items())
        count -= _ISOLATED_ACCENT * len(_ACCENT.findall(text))
    dense = [run for run in _RUN.findall(text) if len(_CHANGE.findall(run)) > _CHANGES_PER_CHAR * len(run)]
    if dense:
        keys = set(dense)
        text = _RUN.sub(lambda run: " " if run.group() in keys else run.group(), text)
    odd = sum(map(len, _CONSONANT_RUN.findall(text)))
    words = _WORD.findall(text)
    letters = max(0, sum(map(len, words)) - odd)
    share = len(_FUNCTION_WORD.findall(text)) / (len(words) or 1)
    english = min(1.0, share / _FUNCTION_WORDS_OF_ENGLISH)
    each = _LETTERS_OF_OTHERS + english * (_LETTERS_OF_ENGLISH - _LETTERS_OF_OTHERS)
    count += (
        sum(map(len, dense)) / _DENSE_CHARS_PER_TOKEN + odd / _UNPRONOUNCEABLE_LETTERS + max(len(words), letters / each)
    )
    count += len(_NUMBER.findall(text)) + len(_WHITESPACE.findall(text)) + len(_MARKS.findall(text)) / _MARKS_PER_TOKEN
    return int(count + len(_MARK_AND_DIGIT.findall(text)) * (1 - 1 / _MARKS_PER_TOKEN)) + 1


def fits(text: str, budget: int = TOKEN_BUDGET) -> bool:
    """Return whether a text is within a number of tokens; no encoding needs more than 4 per character."""
    return len(text) * 4 <= budget or tokens(text) <= budget


def find_largest_fit(most: int, text: Callable[[int], str], budget: int = TOKEN_BUDGET) -> int:
    """Return the largest size whose text is within the budget, by bisection.

    Args:
        most: Maximum size; the result is at least 1 unless this is 0.
        text: Returns the text for a size; it grows with the size.
        budget: Maximum tokens.
    """
    if fits(text(most), budget):
        return most
    low, high = min(1, most), most - 1
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(text(middle), budget) else (low, middle - 1)
    return low


T = TypeVar("T")

# Parts of answers and the call for the next part

MAX_REPEATED_CHARS = 300  # characters of an argument in the next call
PAGE_ARGUMENTS = ("page",)  # left out of the next call, which has an offset
LIMIT_FIELD = "limit_reached"  # field with the number of items that a search ranks, on the page that ends with the last


@dataclass(frozen=True, slots=True)
class Items:
    """A list in an answer whose items are paged by ``offset``."""

    key: str = "results"  # field of the list
    count: str = "count"  # field with the number of items shown
    total: str = ""  # field with the number of all items; a search does not know it
    more: str = "more"  # field that is true if further items match
    bare: bool = False  # the answer is the array alone; the note goes into its last item


@dataclass(frozen=True, slots=True)
class RankedPage:
    """A page of a ranking.

    A ranking does not depend on its limit, so pages neither repeat nor miss an item.

    Raises:
        Refused: The offset is past the limit of the ranking.
    """

    offset: int
    count: int
    most: int  # items that a search ranks
    kind: str  # what is ranked, in the plural
    narrow: str  # how to reach other items, as an imperative clause

    def __post_init__(self) -> None:
        if self.offset >= self.most:
            reached = f"A search ranks at most {self.most} {self.kind}; use an offset from 0 to {self.most - 1}"
            raise Refused(reached, f"To see others, {self.narrow}, or use a more specific query")

    @property
    def limit(self) -> int:
        """Number of items to rank: up to the end of the page, plus one to detect whether others follow."""
        return min(self.most, self.offset + self.count + 1)

    def items(self, ranked: Sequence[T]) -> Sequence[T]:
        """Return the page's items."""
        return ranked[self.offset : self.offset + self.count]

    def has_more(self, ranked: Sequence[object]) -> bool:
        """Return whether items follow the page."""
        return len(ranked) > self.offset + self.count

    def is_under_filled(self, ranked: Sequence[object]) -> bool:
        """Return whether the scope holds fewer items than requested."""
        return len(ranked) < min(self.most, self.offset + self.count)

    def end(self, ranked: Sequence[object]) -> JsonObject:
        """Return the fields of a page that reaches the limit of the ranking: others may match, but without a next call.

        They replace the answer's own ``more``; other pages have none of them.
        """
        if len(ranked) < self.most or self.has_more(ranked):
            return {}
        note = (
            f"A search ranks at most {self.most} {self.kind}, and these are the last. To see others, {self.narrow}, "
            "or use a more specific query."
        )
        return {"more": True, LIMIT_FIELD: self.most, "note": note}


@dataclass(frozen=True, slots=True)
class TextPart:
    """A text in an answer, next to its ``offset``, ``length`` and ``total_chars``."""

    key: str = "content"  # field of the text


def explain_past_end(offset: int, ranked: Sequence[object]) -> str:
    """Return a suggestion if the offset is past the last item; "" if there are no items at all."""
    return f"Only {len(ranked)} found. Use an offset below {len(ranked)}" if offset and ranked else ""


def cut_to_budget(
    answer: JsonValue,
    parts: Items | TextPart | None,
    render: Callable[[JsonValue], str],
    name: str,
    arguments: Mapping[str, JsonValue],
    given: Mapping[str, object],
) -> tuple[JsonValue, str]:
    """Return the answer with the list or text in ``parts`` cut to the budget, and its text.

    The note has the next call, which repeats ``given``; ``arguments`` are those of this call, validated.
    """
    if isinstance(parts, TextPart) and isinstance(answer, dict):
        return _cut_text(answer, parts, render, name, given)
    if isinstance(parts, Items) and isinstance(answer, dict) and parts.key in answer:
        return _cut_items(answer, parts, render, name, count_skipped(arguments), given)
    return answer, render(answer)


def count_skipped(arguments: Mapping[str, JsonValue]) -> int:
    """Return how many items precede the answer's first one, given ``offset`` or ``page``."""
    offset = arguments.get("offset")
    if isinstance(offset, int):
        return offset
    page, size = arguments.get("page"), arguments.get("per_page")
    return (page - 1) * min(size, ITEMS_PER_PAGE) if isinstance(page, int) and isinstance(size, int) else 0


ITEMS_PER_PAGE = 20


def slice_text(text: str, offset: int, length: int, key: str = "content") -> JsonObject:
    """Return a part of a text with its position in the whole, in characters."""
    part = text[offset : offset + length]
    return {key: part, "offset": offset, "length": len(part), "total_chars": len(text)}


def format_next_call(name: str, given: Mapping[str, object], **changes: object) -> str:
    """Return the call for the next part: ``tool(query="x", offset=20)``, or the URL and body of an HTTP route."""
    arguments = {key: value for key, value in given.items() if value is not None and key not in PAGE_ARGUMENTS}
    arguments |= changes
    method, space, path = name.partition(" ")
    if not space:
        return f"{name}({', '.join(f'{key}={_to_json(value)}' for key, value in arguments.items())})"
    if method == "POST":
        return f"{name} {json.dumps({key: _shorten(value) for key, value in arguments.items()}, ensure_ascii=False)}"
    for key in [key for key in arguments if f"{{{key}}}" in path]:
        path = path.replace(f"{{{key}}}", str(arguments.pop(key)))
    return f"{method} {path}?{urlencode({key: str(value) for key, value in arguments.items()})}"


def _cut_items(
    answer: JsonObject,
    parts: Items,
    render: Callable[[JsonValue], str],
    name: str,
    offset: int,
    given: Mapping[str, object],
) -> tuple[JsonValue, str]:
    items = [dict(as_object(item)) for item in as_items(answer[parts.key])]
    total = answer.get(parts.total) if parts.total else None
    whole = total if isinstance(total, int) else offset + len(items) + bool(answer.get(parts.more))
    is_close = not _is_nothing_close(answer, items)

    def render_part(count: int) -> JsonValue:
        if LIMIT_FIELD in answer and count == len(items):
            return _render_last_page(answer, parts, items)
        rest = offset + count < whole
        following = format_next_call(name, given, offset=offset + count)
        items_shown = f"Items {offset + 1} to {offset + count}" if count else "No items"
        of_all = f" of {total}" if isinstance(total, int) else ", and more match"
        next_part = f"{items_shown}{of_all}. Next: {following}"
        note = next_part if rest and count and is_close else ""
        if parts.bare:  # keep the answer an array of items
            return [*items[: count - 1], _append_note(items[count - 1], note)] if note else items[:count]
        counted: JsonObject = {parts.count: count} if parts.count in answer and parts.count != parts.total else {}
        flag: JsonObject = {parts.more: rest} if parts.more in answer else {}
        if rest and "under_filled" in answer:
            flag["under_filled"] = False
        uncut = {key: value for key, value in answer.items() if key != LIMIT_FIELD}
        shown: JsonObject = {**uncut, parts.key: items[:count], **counted, **flag}
        return _append_note(shown, note) if note else shown

    count = find_largest_fit(len(items), lambda size: render(render_part(size)), TOKEN_BUDGET)
    return render_part(count), render(render_part(count))


def _render_last_page(answer: JsonObject, parts: Items, items: list[JsonObject]) -> JsonValue:
    """Return the page that ends with the last item of a ranking; an array has the note in its last item."""
    if not parts.bare:
        return {**answer, parts.key: items}
    return [*items[:-1], _append_note(items[-1], str(answer["note"])) | {LIMIT_FIELD: answer[LIMIT_FIELD]}]


def _is_nothing_close(answer: JsonObject, items: Sequence[JsonObject]) -> bool:
    """Return whether a search reported that nothing is close; in which case further results do not help."""
    metadata = answer.get("metadata")
    reported = answer.get("nothing_close") or (isinstance(metadata, dict) and metadata.get("nothingClose"))
    return bool(reported or (items and items[0].get("nothing_close")))


def _cut_text(
    answer: JsonObject, parts: TextPart, render: Callable[[JsonValue], str], name: str, given: Mapping[str, object]
) -> tuple[JsonValue, str]:
    text, offset, total = str(answer[parts.key]), as_integer(answer["offset"]), as_integer(answer["total_chars"])

    def render_part(length: int) -> JsonObject:
        end = offset + length
        note = f"Characters {offset} to {end} of {total}. Next: {format_next_call(name, given, offset=end)}"
        part: JsonObject = {parts.key: text[:length], "length": length}
        return {**answer, **part} | ({"note": note} if end < total and length else {})

    length = find_largest_fit(len(text), lambda size: render(render_part(size)), TOKEN_BUDGET)
    return render_part(length), render(render_part(length))


def _append_note(item: JsonObject, note: str) -> JsonObject:
    """Append a note to an answer or an item, which may already have one."""
    own = str(item.get("note") or "").removesuffix(".")
    return {**item, "note": f"{own}. {note}" if own else note}


def _shorten(value: object) -> object:
    return f"{value[:MAX_REPEATED_CHARS]}..." if isinstance(value, str) and len(value) > MAX_REPEATED_CHARS else value


def _to_json(value: object) -> str:
    return json.dumps(_shorten(value), ensure_ascii=False, default=str)


# Cutoff if the caller gave no count

FEW_RESULTS = 3  # results if nothing is close and the caller gave no count
BELOW_CUTOFF_FIELD = "below_cutoff"  # field of results that score far below the best


def count_above_cutoff(scores: Sequence[float], strategy: str, share: float) -> int:
    """Return how many results reach a share (0..1) of the best score, which is the first one.

    Scores of a strategy without a cutoff parameter are not comparable, so all results count.
    """
    if not STRATEGIES[strategy].declares(CUTOFF):
        return len(scores)
    return sum(score >= share * scores[0] for score in scores)


def apply_cutoff(
    items: Sequence[JsonObject], scores: Sequence[float], strategy: str, share: float, *, close: bool
) -> tuple[list[JsonObject], JsonObject]:
    """Return the results for a caller that gave no count, and a note on the cutoff.

    Results below a share (0..1) of the best score, which is the first one, are marked. If nothing is close, only
    ``FEW_RESULTS`` are returned.
    """
    if not close:
        return list(items[:FEW_RESULTS]), {}
    worth = count_above_cutoff(scores, strategy, share)
    if worth == len(items):
        return list(items), {}
    marked: list[JsonObject] = [*items[:worth], *({**item, BELOW_CUTOFF_FIELD: True} for item in items[worth:])]
    note = (
        f"From result {worth + 1} on, scores are below {share:g} of the best ({BELOW_CUTOFF_FIELD}); these may "
        f"not answer."
    )
    return marked, {"cutoff": note}

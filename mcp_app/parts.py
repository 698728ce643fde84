"""Long answers in parts: fewer items or the first part of a text, with true totals and the exact next call.

One rule for all tools and routes. An answer under the budget is left as it is; of a longer one its declared list loses
items from the end, or its declared text characters from the end, and nothing else is touched.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar
from urllib.parse import urlencode

from mcp_app.fitting import BUDGET, within
from workbench.types.json import JsonObject, JsonValue

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

"""One member of a JSON file set or taken out, every other letter kept: clients' files have comments and an order."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field

from workbench.errors import InvalidInput
from workbench.types import JsonValue

BLANK = " \t\r\n\ufeff"  # what a file without a value may hold; Windows' editors begin files with the last one
UNIT = "  "  # the indent of a file that shows none

_SPACE = re.compile(r"(?:[\s\ufeff]+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_SCALAR = re.compile(r"[^\s,\]}/]+")


@dataclass(slots=True)
class JsonPlace:
    """A value of a text, from ``start`` to ``end``; each member of an object with the place where its name begins."""

    start: int
    end: int
    members: dict[str, tuple[int, JsonPlace]] = field(default_factory=dict)
    is_object: bool = False


@dataclass(frozen=True, slots=True)
class Splice:
    """One piece of a text in place of another: at character ``at`` stood ``removed``, and ``written`` comes there."""

    at: int
    removed: str
    written: str

    def applied(self, text: str) -> str:
        """Return the text with the new piece."""
        return text[: self.at] + self.written + text[self.at + len(self.removed) :]


@dataclass(frozen=True, slots=True)
class _Style:
    """How a text is written: what each level is indented by, and what ends a line."""

    unit: str
    ending: str

    def value(self, value: JsonValue, indent: str) -> str:
        """Return a value as JSON whose further lines begin with ``indent``."""
        return json.dumps(value, indent=self.unit, ensure_ascii=False).replace("\n", self.ending + indent)


def setting(text: str, path: tuple[str, str], value: JsonValue) -> Splice:
    """Return what sets ``value`` at ``path``, a name in the object of a name, in the text's own indents and line ends.

    Objects that lack are made; a value that stands there is the piece that is removed, and nothing else is.

    Raises:
        InvalidInput: the text is no JSON object, or the first name is none. Comments and trailing commas are allowed.
    """
    ending = "\r\n" if "\r\n" in text else "\n"
    if not text.strip(BLANK):
        empty = "{}" + ending
        return Splice(0, text, setting(empty, path, value).applied(empty))
    root = _object(text)
    style = _Style(_indent(text, root) or UNIT, ending)
    if path[0] not in root.members:
        made = style.value({path[1]: value}, style.unit)
        return _inserted(text, root, style, f"{json.dumps(path[0])}: {made}", (style.unit, ""))
    begun, section = root.members[path[0]]
    if not section.is_object:
        raise InvalidInput(f"'{path[0]}' is no object there.")
    outer = _own_indent(text, begun) or style.unit
    inner = _indent(text, section) or outer + style.unit
    made = style.value(value, inner)
    if path[1] in section.members:
        entry = section.members[path[1]][1]
        return Splice(entry.start, text[entry.start : entry.end], made)
    return _inserted(text, section, style, f"{json.dumps(path[1])}: {made}", (inner, outer))


def with_member(text: str, path: tuple[str, str], value: JsonValue) -> str:
    """Return the text with ``value`` at ``path``, as ``setting`` says. Raises InvalidInput."""
    return setting(text, path, value).applied(text)


def with_raw(text: str, path: tuple[str, str], raw: str) -> str:
    """Return the text with the value at ``path`` written as ``raw`` has it, letter by letter. Raises InvalidInput."""
    placed = with_member(text, path, None)
    place = _object(placed).members[path[0]][1].members[path[1]][1]
    return placed[: place.start] + raw + placed[place.end :]


def without_member(text: str, path: tuple[str, str]) -> str:
    """Return the text without the member at ``path``, and without an object that is empty then. Raises InvalidInput."""
    root = _object(text)
    section = root.members.get(path[0])
    if section is None or path[1] not in section[1].members:
        return text
    if len(section[1].members) == 1:
        return _cut(text, root, path[0])
    return _cut(text, section[1], path[1])


def raw_member(text: str, path: tuple[str, str]) -> str | None:
    """Return the letters of the value at ``path``; None where there is none. Raises InvalidInput."""
    section = _object(text).members.get(path[0]) if text.strip(BLANK) else None
    entry = section[1].members.get(path[1]) if section else None
    return text[entry[1].start : entry[1].end] if entry else None


def member(text: str, path: tuple[str, str]) -> JsonValue:
    """Return the value at ``path``; None where there is none. Raises InvalidInput."""
    raw = raw_member(text, path)
    return None if raw is None else json.loads(_bare(raw))


def _inserted(text: str, parent: JsonPlace, style: _Style, made: str, indents: tuple[str, str]) -> Splice:
    """Return what puts a member behind the last one; comments stay with what they stand beside."""
    inner, outer = indents
    line = style.ending + inner + made
    if not parent.members:
        inside = text[parent.start + 1 : parent.end - 1]
        return Splice(parent.start + 1, inside, inside.rstrip() + line + style.ending + outer)
    last = max(node.end for _, node in parent.members.values())
    kept = text[last : parent.end - 1].rstrip()
    if text[_skipped(text, last)] == ",":
        return Splice(last, kept, f"{kept}{line},")
    return Splice(last, kept, f",{kept}{line}")


def _indent(text: str, parent: JsonPlace) -> str:
    """Return the indent of an object's first member; "" where it stands behind something else, or there is none."""
    return _own_indent(text, next(iter(parent.members.values()))[0]) if parent.members else ""


def _own_indent(text: str, start: int) -> str:
    before = text[text.rfind("\n", 0, start) + 1 : start]
    return before if not before.strip(" \t") else ""


def _cut(text: str, parent: JsonPlace, name: str) -> str:
    """Take a member out with one comma, and with the line it stood on."""
    start, node = parent.members[name]
    end = _skipped(text, node.end)
    if text[end] == ",":
        return text[:start].rstrip() + text[end + 1 :]
    former = [other.end for begun, other in parent.members.values() if begun < start]
    if not former:
        return text[:start].rstrip() + text[node.end :]
    comma = _skipped(text, max(former))
    return text[:comma] + text[comma + 1 : start].rstrip() + text[node.end :]


def _object(text: str) -> JsonPlace:
    try:
        node, end = _value(text, _skipped(text, 0))
    except (IndexError, ValueError) as error:
        raise InvalidInput("It is no JSON.") from error
    if not node.is_object or _skipped(text, end) != len(text):
        raise InvalidInput("It is no JSON object.")
    return node


def _value(text: str, at: int) -> tuple[JsonPlace, int]:
    if text[at] in "{[":
        return _container(text, at)
    match = _STRING.match(text, at) if text[at] == '"' else _SCALAR.match(text, at)
    if match is None:
        raise ValueError(at)
    json.loads(match.group())
    return JsonPlace(at, match.end()), match.end()


def _container(text: str, start: int) -> tuple[JsonPlace, int]:
    is_object = text[start] == "{"
    node, at = JsonPlace(start, start, is_object=is_object), _skipped(text, start + 1)
    while text[at] not in "}]":
        begun, name = at, ""
        if is_object:
            match = _STRING.match(text, at)
            if match is None:
                raise ValueError(at)
            name, at = json.loads(match.group()), _skipped(text, match.end())
            if text[at] != ":":
                raise ValueError(at)
            at = _skipped(text, at + 1)
        inner, at = _value(text, at)
        if is_object:
            node.members[name] = (begun, inner)
        at = _skipped(text, at)
        if text[at] == ",":
            at = _skipped(text, at + 1)
        elif text[at] not in "}]":
            raise ValueError(at)
    if text[at] != ("}" if is_object else "]"):
        raise ValueError(at)
    node.end = at + 1
    return node, at + 1


def _skipped(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match is not None else at


def _bare(text: str) -> str:
    """Return JSON without comments and trailing commas."""
    kept = re.sub(r'("(?:[^"\\]|\\.)*")|//[^\n]*|/\*.*?\*/', lambda found: found.group(1) or "", text, flags=re.DOTALL)
    return re.sub(r'("(?:[^"\\]|\\.)*")|,(?=\s*[}\]])', lambda found: found.group(1) or "", kept)

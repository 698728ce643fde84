"""One member of a JSON file set or taken out, every other letter kept: clients' files have comments and an order."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field

from workbench.errors import InvalidInput
from workbench.types import JsonValue

_SPACE = re.compile(r"(?:\s+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_SCALAR = re.compile(r"[^\s,\]}/]+")


@dataclass(slots=True)
class JsonPlace:
    """A value of a text, from ``start`` to ``end``; each member of an object with the place where its name begins."""

    start: int
    end: int
    members: dict[str, tuple[int, JsonPlace]] = field(default_factory=dict)
    is_object: bool = False


def with_member(text: str, path: tuple[str, str], value: JsonValue) -> str:
    """Return the text with ``value`` at ``path``, a name in the object of a name; what lacks is made.

    Raises:
        InvalidInput: the text is no JSON object, or the first name is none. Comments and trailing commas are allowed.
    """
    text = text if text.strip() else "{}\n"
    root = _object(text)
    section = root.members.get(path[0])
    if section is None:
        return _inserted(text, root, path[0], {path[1]: value}, "  ")
    if not section[1].is_object:
        raise InvalidInput(f"'{path[0]}' is no object there.")
    entry = section[1].members.get(path[1])
    if entry is None:
        return _inserted(text, section[1], path[1], value, "    ")
    return text[: entry[1].start] + _written(value, "    ") + text[entry[1].end :]


def without_member(text: str, path: tuple[str, str]) -> str:
    """Return the text without the member at ``path``, and without an object that is empty then. Raises InvalidInput."""
    section = _object(text).members.get(path[0])
    if section is None or path[1] not in section[1].members:
        return text
    if len(section[1].members) == 1:
        return _cut(text, *section)
    return _cut(text, *section[1].members[path[1]])


def member(text: str, path: tuple[str, str]) -> JsonValue:
    """Return the value at ``path``; None where there is none. Raises InvalidInput."""
    section = _object(text).members.get(path[0]) if text.strip() else None
    entry = section[1].members.get(path[1]) if section else None
    return json.loads(_bare(text[entry[1].start : entry[1].end])) if entry else None


def _inserted(text: str, parent: JsonPlace, name: str, value: JsonValue, indent: str) -> str:
    written = f"\n{indent}{json.dumps(name)}: {_written(value, indent)}"
    if not parent.members:
        return text[: parent.start + 1] + written + "\n" + indent[2:] + text[parent.start + 1 :].lstrip()
    last = max(node.end for _, node in parent.members.values())
    comma = _SPACE.match(text, last)
    has_comma = comma is not None and text[comma.end() : comma.end() + 1] == ","
    after = comma.end() + 1 if comma is not None and has_comma else last
    return text[:after] + ("" if has_comma else ",") + written + text[after:]


def _written(value: JsonValue, indent: str) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False).replace("\n", f"\n{indent}")


def _cut(text: str, start: int, node: JsonPlace) -> str:
    """Take a member out with one comma, and with the line it stood on."""
    space = _SPACE.match(text, node.end)
    end = space.end() if space is not None else node.end
    before = text[:start].rstrip()
    if text[end : end + 1] == ",":
        return before + text[end + 1 :]
    return before.removesuffix(",") + text[node.end :]


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

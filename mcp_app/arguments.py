"""The arguments of a tool as a table: the JSON schema that clients see and the reading of what they send.

Strict where a guess could hide a mistake (unknown names, wrong types, numbers out of range), lenient where clients are
known to differ: null means absent, and lists and objects also come as JSON strings.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

Kind = Literal["string", "integer", "number", "boolean", "array", "object"]

LARGEST = 4 * 2**20  # bytes of all arguments together; longer texts come as files
DEEPEST = 100  # levels of lists and objects in each other; what reads JSON gives up at some hundreds
_NOUNS = {
    "string": "a text",
    "boolean": "true or false",
    "array": "a list of texts",
    "object": "an object",
}


class Refused(Exception):
    """A call that cannot be served as it was made; ``suggestion`` says what to do instead."""

    def __init__(self, error: str, suggestion: str = "") -> None:
        self.error, self.suggestion = error, suggestion
        super().__init__(error)


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument; ``low`` and ``high`` bound numbers inclusively, lists hold texts.

    ``unset`` is what the tool gets where the caller gave nothing, when that is not the ``default`` that clients see.
    """

    name: str
    kind: Kind
    why: str
    default: Any = None
    required: bool = False
    low: float | None = None
    high: float | None = None
    choices: tuple[str, ...] = ()
    unset: Any = None

    def schema(self) -> dict[str, Any]:
        """Return the JSON schema of the argument."""
        parts: dict[str, Any] = {"type": self.kind, "description": self.why}
        if self.choices:
            parts["enum"] = list(self.choices)
        if self.kind == "array":
            parts["items"] = {"type": "string"}
        if self.low is not None:
            parts["minimum"] = self.low
        if self.high is not None:
            parts["maximum"] = self.high
        if self.default is not None:
            parts["default"] = self.default
        return parts

    def valid(self) -> str:
        """Say which values are valid."""
        if self.choices:
            return spoken_choices(self.choices)
        if self.kind not in ("integer", "number"):
            return _NOUNS[self.kind]
        noun = "a whole number" if self.kind == "integer" else "a number"
        if self.low is not None and self.high is not None:
            return f"{noun} from {self.low} to {self.high}"
        return f"{noun} from {self.low} up" if self.low is not None else noun

    def absent(self) -> Any:
        """Return the value of an argument that was not given."""
        return self.default if self.unset is None else self.unset

    def read(self, value: Any) -> Any:
        """Return the value in its type. Raises Refused naming the argument and the valid values."""
        value = self._unwrapped(value)
        if value == "" and not self.required and (self.kind != "string" or self.choices):
            return self.absent()
        if not _shallow(value):
            raise Refused(f"Invalid {self.name}: it is nested more than {DEEPEST} levels deep", "Make it flatter")
        if not self._fits(value):
            raise self.refusal(value)
        return value

    def refusal(self, value: Any) -> Refused:
        """Return the error for a value; a wrong action reads as the specification writes it."""
        shown = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
        shown = shown if len(shown) <= 100 else shown[:97] + "..."
        if self.choices and isinstance(value, str):
            what = "Unknown action" if self.name == "action" else f"Invalid {self.name}"
            return Refused(f"{what}: {shown}", f"Use {self.valid()}")
        return Refused(f"Invalid {self.name}: {shown} is not {self.valid()}", f"Give {self.valid()} as {self.name}")

    def _unwrapped(self, value: Any) -> Any:
        """Take a list or object out of its JSON string, and a whole number out of a float such as 5.0."""
        if self.kind in ("array", "object") and isinstance(value, str):
            try:
                return json.loads(value)
            except (ValueError, RecursionError):
                return value
        if self.kind == "integer" and isinstance(value, float) and value.is_integer():
            return int(value)
        return value

    def _fits(self, value: Any) -> bool:
        match self.kind:
            case "string":
                return isinstance(value, str) and (not self.choices or value in self.choices)
            case "boolean":
                return isinstance(value, bool)
            case "array":
                return isinstance(value, list) and all(isinstance(item, str) for item in value)
            case "object":
                return isinstance(value, dict)
        kinds = int if self.kind == "integer" else int | float
        if isinstance(value, bool) or not isinstance(value, kinds):
            return False
        return (self.low is None or self.low <= value) and (self.high is None or value <= self.high)


def input_schema(arguments: Sequence[Argument]) -> dict[str, Any]:
    """Return the JSON schema of a tool's arguments; unknown ones are refused."""
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {argument.name: argument.schema() for argument in arguments},
        "additionalProperties": False,
    }
    required = [argument.name for argument in arguments if argument.required]
    return schema | ({"required": required} if required else {})


def read_arguments(tool: str, declared: Sequence[Argument], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return every declared argument's value: the given one, checked, or the default.

    Raises:
        Refused: an unknown, missing, wrongly typed or oversized argument.
    """
    _check_text(given)
    known = {argument.name: argument for argument in declared}
    for name in given:
        if name not in known:
            raise Refused(f"Unknown argument: {name}", f"The arguments of {tool} are {', '.join(known)}")
    values: dict[str, Any] = {}
    for argument in declared:
        value = given.get(argument.name)
        if value is None and argument.required:
            raise missing(argument.name, argument.why)
        values[argument.name] = argument.absent() if value is None else argument.read(value)
    return values


def missing(name: str, why: str) -> Refused:
    """Return the error for an argument that a call cannot do without."""
    return Refused(f"Missing required parameter: {name}", f"Provide {name}: {why}")


def spoken_choices(values: Sequence[str]) -> str:
    """Join choices as one says them: 'a', 'b', or 'c'."""
    quoted = [f"'{value}'" for value in values]
    if len(quoted) <= 2:
        return " or ".join(quoted)
    return f"{', '.join(quoted[:-1])}, or {quoted[-1]}"


def _shallow(value: Any, left: int = DEEPEST) -> bool:
    """Tell whether a value is nested at most ``left`` levels deep."""
    if not isinstance(value, dict | list):
        return True
    inner = value.values() if isinstance(value, dict) else value
    return left > 0 and all(_shallow(item, left - 1) for item in inner)


def _check_text(given: Mapping[str, Any]) -> None:
    """Refuse what is too large to be an argument, and text that no encoding can hold."""
    try:
        size = len(json.dumps(given, ensure_ascii=False, default=str).encode())
    except UnicodeEncodeError:
        raise Refused("An argument holds half a character (a lone surrogate)", "Send the text as valid UTF-8") from None
    if size > LARGEST:
        raise Refused(
            f"The arguments have {size:,} bytes; at most {LARGEST:,} are taken",
            "Save a long text as a file and give its file_path, or send it in parts",
        )

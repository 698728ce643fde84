"""The arguments of a tool as a table: the JSON schema that clients see and the reading of what they send.

Strict where a guess could hide a mistake (unknown names, wrong types, numbers out of range), lenient where clients are
known to differ: null means absent, lists and objects also come as JSON strings, numbers as texts and texts as numbers,
and what clients add for themselves is ignored with a note. Pydantic decides whether a value fits; the sentences are the
contract's.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, Strict, TypeAdapter, ValidationError

from workbench.formatting import MB
from workbench.types.json import JsonObject, JsonValue

ArgumentKind = Literal["string", "integer", "number", "boolean", "array", "object"]

LARGEST = 4 * MB  # bytes of all arguments together; longer texts come as files
BOUNDLESS = 1_000_000  # a bound from here on keeps numbers within the database's, and says nothing to clients
LONGEST_NUMBER = 1e15  # from here on a number no longer has one way to be written
DEEPEST = 100  # levels of lists and objects in each other; JSON's readers give up at some hundreds
CLIENTS_OWN = frozenset(  # arguments that clients add to every call for themselves
    (
        *("task_progress", "explanation", "waitForPreviousTools", "toolSummary", "toolAction", "progressToken"),
        *("toolCallId", "tool_call_id", "toolUseId", "tool_use_id", "callId", "call_id", "requestId", "request_id"),
        *("sessionId", "session_id", "conversationId", "conversation_id", "threadId", "thread_id"),
        *("chatId", "chat_id", "chatInput", "traceId", "trace_id", "traceparent", "tracestate"),
    )
)
_NOUNS = {
    "string": "a text",
    "boolean": "true or false",
    "array": "a list of texts",
    "object": "an object",
}


class Refused(Exception):
    """A call that cannot be served as it was made; ``suggestion`` says what to do instead.

    ``fields`` are further fields of the answer, for families whose errors are JSON.
    """

    def __init__(self, error: str, suggestion: str = "", fields: JsonObject | None = None) -> None:
        self.error, self.suggestion, self.fields = error, suggestion, fields or {}
        super().__init__(error)


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument; ``low`` and ``high`` bound numbers inclusively, lists hold texts.

    ``unset`` is what the tool gets where the caller gave nothing, when that is not the ``default`` that clients see.
    ``reading`` False marks an argument that only changes something: a read-only server leaves it out.
    """

    name: str
    kind: ArgumentKind
    why: str
    default: JsonValue = None
    required: bool = False
    low: float | None = None
    high: float | None = None
    choices: tuple[str, ...] = ()
    unset: JsonValue = None
    reading: bool = True

    def schema(self) -> JsonObject:
        """Return the JSON schema of the argument."""
        parts: JsonObject = {"type": self.kind, "description": self.why}
        if self.choices:
            parts["enum"] = list(self.choices)
        if self.kind == "array":
            parts["items"] = {"type": "string"}
        if self.low is not None:
            parts["minimum"] = self.low
        if self.high is not None and self.high < BOUNDLESS:
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

    def absent(self) -> JsonValue:
        """Return the value of an argument that was not given."""
        return self.default if self.unset is None else self.unset

    def read(self, value: object) -> JsonValue:
        """Return the value in its type. Raises Refused naming the argument and the valid values."""
        if value == "" and not self.required and (self.kind != "string" or self.choices):
            return self.absent()
        try:
            read = _adapter(self.kind, self.choices, self.low, self.high).validate_python(value)
        except (ValidationError, RecursionError):
            raise self.refusal(value) from None
        if not _shallow(read):
            raise Refused(f"Invalid {self.name}: it is nested more than {DEEPEST} levels deep", "Make it flatter")
        return read

    def refusal(self, value: object) -> Refused:
        """Return the error for a value; a wrong action reads as the specification writes it."""
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
        text = text if len(text) <= 100 else text[:97] + "..."
        if self.choices and isinstance(value, str):
            what = "Unknown action" if self.name == "action" else f"Invalid {self.name}"
            return Refused(f"{what}: {text}", f"Use {self.valid()}")
        return Refused(f"Invalid {self.name}: {text} is not {self.valid()}", f"Give {self.valid()} as {self.name}")


@functools.cache
def _adapter(
    kind: ArgumentKind, choices: tuple[str, ...], low: float | None, high: float | None
) -> TypeAdapter[JsonValue]:
    """Return the reader of values of a kind within bounds."""
    text = Annotated[str, Strict()]
    bounds = Field(ge=low, le=high, allow_inf_nan=False if kind == "number" else None)
    kinds: dict[ArgumentKind, Any] = {  # types as values, which have no type of their own yet
        "string": Literal[choices] if choices else Annotated[text, BeforeValidator(_number_as_text)],
        "boolean": Annotated[bool, Strict(), BeforeValidator(_truth)],
        "integer": Annotated[int, BeforeValidator(_no_truth), bounds],
        "number": Annotated[float, BeforeValidator(_no_truth), bounds],
        "array": Annotated[list[text], BeforeValidator(_from_json)],
        "object": Annotated[dict[str, object], BeforeValidator(_from_json)],
    }
    return TypeAdapter(kinds[kind])


def _number_as_text(value: object) -> object:
    """Take a number as the text it is written as; other values stay as they are."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    return json.dumps(value) if abs(value) < LONGEST_NUMBER else value


def _truth(value: object) -> object:
    """Take true and false also as the words; other values stay as they are."""
    words = {"true": True, "false": False}
    return words.get(value.strip().lower(), value) if isinstance(value, str) else value


def _no_truth(value: object) -> object:
    """Refuse true and false, which Python counts among the whole numbers."""
    if isinstance(value, bool):
        raise ValueError("true and false are no numbers")
    return value


def _from_json(value: object) -> object:
    """Take a list or an object out of its JSON string."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


def input_schema(arguments: Sequence[Argument]) -> JsonObject:
    """Return the JSON schema of a tool's arguments; unknown ones are refused."""
    schema: JsonObject = {
        "type": "object",
        "properties": {argument.name: argument.schema() for argument in arguments},
        "additionalProperties": False,
    }
    required = [argument.name for argument in arguments if argument.required]
    return schema | ({"required": required} if required else {})


def read_arguments(tool: str, declared: Sequence[Argument], given: Mapping[str, object]) -> JsonObject:
    """Return every declared argument's value: the given one, checked, or the default.

    Raises:
        Refused: an unknown, missing, wrongly typed or oversized argument.
    """
    _check_text(given)
    by_name = {argument.name: argument for argument in declared}
    ignored = ignored_arguments(declared, given)
    for name in given:
        if name not in by_name and name not in ignored:
            raise Refused(f"Unknown argument: {name}", f"The arguments of {tool} are {', '.join(by_name)}")
    values: JsonObject = {}
    for argument in declared:
        value = given.get(argument.name)
        if value is None and argument.required:
            raise missing(argument.name, argument.why)
        values[argument.name] = argument.absent() if value is None else argument.read(value)
    return values


def ignored_arguments(declared: Sequence[Argument], given: Mapping[str, object]) -> tuple[str, ...]:
    """Return the names of arguments that a client added for itself: they are no mistake, and mean nothing here."""
    names = {argument.name for argument in declared}
    return tuple(name for name in given if name not in names and (name in CLIENTS_OWN or name.startswith("_")))


def telling(declared: Sequence[Argument], given: Mapping[str, object]) -> dict[str, object]:
    """Return the arguments that a further call has to repeat: empty optional and ignored ones say nothing."""
    required = {argument.name: argument.required for argument in declared}
    told = {name: value for name, value in given.items() if name in required}
    return {name: value for name, value in told.items() if required[name] or value not in (None, "")}


def missing(name: str, why: str) -> Refused:
    """Return the error for an argument that a call cannot do without."""
    return Refused(f"Missing required parameter: {name}", f"Provide {name}: {why}")


def spoken_choices(values: Sequence[str]) -> str:
    """Join choices as one says them: 'a', 'b', or 'c'."""
    quoted = [f"'{value}'" for value in values]
    if len(quoted) <= 2:
        return " or ".join(quoted)
    return f"{', '.join(quoted[:-1])}, or {quoted[-1]}"


def _shallow(value: object, depth: int = DEEPEST) -> bool:
    """Tell whether a value is nested at most ``depth`` levels deep."""
    if not isinstance(value, dict | list):
        return True
    inner = value.values() if isinstance(value, dict) else value
    return depth > 0 and all(_shallow(item, depth - 1) for item in inner)


def _check_text(given: Mapping[str, object]) -> None:
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


NAMES = Argument("names", "string", "Documents that the query names.", "prefer", choices=("prefer", "only", "ignore"))

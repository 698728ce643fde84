"""Arguments of tools: their JSON schema, and the validation of what clients send.

Unknown names, wrong types and numbers out of range are errors. Known differences between clients are accepted: null
means absent, lists and objects may be JSON strings, numbers may be strings and strings numbers. Arguments that clients
add for their own use are ignored with a note. Pydantic validates values; the messages follow the contract.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, Strict, TypeAdapter, ValidationError

from workbench.formatting import MB
from workbench.types import JsonObject, JsonValue, as_object

ArgumentKind = Literal["string", "integer", "number", "boolean", "array", "object"]

MAX_ARGUMENT_BYTES = 4 * MB  # bytes of all arguments; longer texts must be files
UNDOCUMENTED_LIMIT = 1_000_000  # limits from here on protect the database and are left out of schemas
MAX_EXACT_NUMBER = 1e15  # larger numbers have no unique decimal notation
MAX_NESTING = 100  # levels of nested lists and objects; JSON parsers fail at some hundreds
CLIENT_ARGUMENTS = frozenset(  # what clients add to every call for their own use, in lower case without "_" and "-"
    (
        *("taskprogress", "thought", "explanation", "waitforprevioustools", "waitforprevious", "toolsummary"),
        *("toolaction", "toolcallid", "tooluseid", "callid", "requestid", "sessionid", "conversationid", "threadid"),
        *("progresstoken", "chatid", "chatinput", "traceid", "traceparent", "tracestate", "meta", "randomstring"),
        *("securityrisk", "reasoning", "rationale", "messageid", "runid", "userid", "agentid", "dummy"),
    )
)
_KIND_NOUNS = {"string": "a text", "boolean": "true or false", "array": "a list of texts", "object": "an object"}


class Refused(Exception):
    """An invalid call.

    Args:
        error: What is wrong.
        suggestion: What to do instead.
        fields: Additional fields of the answer, for families whose errors are JSON.
        status: HTTP status.
    """

    def __init__(
        self, error: str, suggestion: str = "", fields: JsonObject | None = None, *, status: int = 400
    ) -> None:
        self.error, self.suggestion, self.fields, self.status = error, suggestion, fields or {}, status
        super().__init__(error)


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of a tool."""

    name: str
    kind: ArgumentKind  # an array holds strings, or objects if it has ``items``
    why: str  # description in the schema
    default: JsonValue = None  # default in the schema
    required: bool = False
    low: float | None = None  # minimum, inclusive
    high: float | None = None  # maximum, inclusive
    choices: tuple[str, ...] = ()
    unset: JsonValue = None  # value if the caller gave none; None means ``default``
    reading: bool = True  # False: a read-only server leaves it out
    items: tuple[Argument, ...] = ()  # fields of each object of an array

    def schema(self) -> JsonObject:
        """Return the JSON schema of the argument."""
        parts: JsonObject = {"type": self.kind, "description": self.why}
        if self.choices:
            parts["enum"] = list(self.choices)
        if self.kind == "array":
            parts["items"] = make_input_schema(self.items) if self.items else {"type": "string"}
        if self.low is not None:
            parts["minimum"] = self.low
        if self.high is not None and self.high < UNDOCUMENTED_LIMIT:
            parts["maximum"] = self.high
        if self.default is not None:
            parts["default"] = self.default
        return parts

    def valid(self) -> str:
        """Describe the valid values."""
        if self.choices:
            return join_choices(self.choices)
        if self.items:
            return f"a list of objects with {', '.join(item.name for item in self.items)}"
        if self.kind not in ("integer", "number"):
            return _KIND_NOUNS[self.kind]
        noun = "a whole number" if self.kind == "integer" else "a number"
        if self.low is not None and self.high is not None:
            return f"{noun} from {self.low} to {self.high}"
        return f"{noun} from {self.low} up" if self.low is not None else noun

    def absent(self) -> JsonValue:
        """Return the value of an argument that was not given."""
        return self.default if self.unset is None else self.unset

    def read(self, value: object) -> JsonValue:
        """Return the value converted to its type.

        Raises:
            Refused: The value is invalid; the message names the valid ones.
        """
        if value == "" and not self.required and (self.kind != "string" or self.choices):
            return self.absent()
        try:
            kind = "objects" if self.items else self.kind
            read = _make_adapter(kind, self.choices, self.low, self.high).validate_python(value)
        except (ValidationError, RecursionError):
            raise self.refusal(value) from None
        if not _is_shallow(read):
            raise Refused(f"Invalid {self.name}: nested more than {MAX_NESTING} levels deep", "Reduce the nesting")
        if self.items and isinstance(read, list):
            return [read_arguments(f"each of {self.name}", self.items, as_object(item)) for item in read]
        return read

    def refusal(self, value: object) -> Refused:
        """Return the error for a value, as worded in the specification."""
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
        text = text if len(text) <= 100 else text[:97] + "..."
        if self.choices and isinstance(value, str):
            what = "Unknown action" if self.name == "action" else f"Invalid {self.name}"
            return Refused(f"{what}: {text}", f"Use {self.valid()}")
        return Refused(f"Invalid {self.name}: {text} is not {self.valid()}", f"Give {self.valid()} as {self.name}")


@functools.cache
def _make_adapter(
    kind: ArgumentKind | Literal["objects"], choices: tuple[str, ...], low: float | None, high: float | None
) -> TypeAdapter[JsonValue]:
    """Return the validator of a kind within bounds."""
    text = Annotated[str, Strict()]
    bounds = Field(ge=low, le=high, allow_inf_nan=False if kind == "number" else None)
    kinds: dict[str, Any] = {  # type expressions have no static type yet
        "string": Literal[choices] if choices else Annotated[text, BeforeValidator(_stringify_number)],
        "boolean": Annotated[bool, Strict(), BeforeValidator(_parse_boolean)],
        "integer": Annotated[int, BeforeValidator(_reject_boolean), bounds],
        "number": Annotated[float, BeforeValidator(_reject_boolean), bounds],
        "array": Annotated[list[text], BeforeValidator(_parse_json)],
        "objects": Annotated[list[dict[str, object]], BeforeValidator(_parse_json)],
        "object": Annotated[dict[str, object], BeforeValidator(_parse_json)],
    }
    return TypeAdapter(kinds[kind])


def _stringify_number(value: object) -> object:
    """Convert a number to a string; return other values unchanged."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    return json.dumps(value) if abs(value) < MAX_EXACT_NUMBER else value


def _parse_boolean(value: object) -> object:
    """Convert the strings "true" and "false"; return other values unchanged."""
    words = {"true": True, "false": False}
    return words.get(value.strip().lower(), value) if isinstance(value, str) else value


def _reject_boolean(value: object) -> object:
    """Reject booleans, which are integers in Python."""
    if isinstance(value, bool):
        raise ValueError("a boolean is not a number")
    return value


def _parse_json(value: object) -> object:
    """Parse a list or an object from a JSON string; return other values unchanged."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


def make_input_schema(arguments: Sequence[Argument]) -> JsonObject:
    """Return the JSON schema of a tool's arguments; it allows no others."""
    schema: JsonObject = {
        "type": "object",
        "properties": {argument.name: argument.schema() for argument in arguments},
        "additionalProperties": False,
    }
    required = [argument.name for argument in arguments if argument.required]
    return schema | ({"required": required} if required else {})


def read_arguments(tool: str, declared: Sequence[Argument], given: Mapping[str, object]) -> JsonObject:
    """Return the value of every declared argument: the given one, validated, or the default.

    Raises:
        Refused: An argument is unknown, missing, of the wrong type or too large.
    """
    _check_text(given)
    by_name = {argument.name: argument for argument in declared}
    ignored = find_ignored_arguments(declared, given)
    for name in given:
        if name not in by_name and name not in ignored:
            raise Refused(f"Unknown argument: {name}", f"The arguments of {tool} are {', '.join(by_name)}")
    values: JsonObject = {}
    for argument in declared:
        value = given.get(argument.name)
        if value is None and argument.required:
            raise make_missing_error(argument.name, argument.why)
        values[argument.name] = argument.absent() if value is None else argument.read(value)
    return values


def find_ignored_arguments(declared: Sequence[Argument], given: Mapping[str, object]) -> tuple[str, ...]:
    """Return the names of arguments that the client added for its own use."""
    names = {argument.name for argument in declared}
    return tuple(name for name in given if name not in names and _is_of_client(name))


def _is_of_client(name: str) -> bool:
    return name.startswith("_") or name.lower().replace("_", "").replace("-", "") in CLIENT_ARGUMENTS


def select_repeated(declared: Sequence[Argument], given: Mapping[str, object]) -> dict[str, object]:
    """Return the arguments that the next call must repeat, without empty optional ones and ignored ones."""
    required = {argument.name: argument.required for argument in declared}
    known = {name: value for name, value in given.items() if name in required}
    return {name: value for name, value in known.items() if required[name] or value not in (None, "")}


def make_missing_error(name: str, why: str) -> Refused:
    """Return the error for a missing required argument."""
    return Refused(f"Missing required parameter: {name}", f"Provide {name}: {why}")


def join_choices(values: Sequence[str]) -> str:
    """Join choices as in "'a', 'b', or 'c'"."""
    quoted = [f"'{value}'" for value in values]
    if len(quoted) <= 2:
        return " or ".join(quoted)
    return f"{', '.join(quoted[:-1])}, or {quoted[-1]}"


def _is_shallow(value: object, depth: int = MAX_NESTING) -> bool:
    """Return whether a value is nested at most ``depth`` levels deep."""
    if not isinstance(value, dict | list):
        return True
    inner = value.values() if isinstance(value, dict) else value
    return depth > 0 and all(_is_shallow(item, depth - 1) for item in inner)


def _check_text(given: Mapping[str, object]) -> None:
    """Reject arguments that are too large or contain unpaired surrogates."""
    try:
        size = len(json.dumps(given, ensure_ascii=False, default=str).encode())
    except UnicodeEncodeError:
        raise Refused("An argument contains an unpaired surrogate", "Send the text as valid UTF-8") from None
    if size > MAX_ARGUMENT_BYTES:
        raise Refused(
            f"The arguments have {size:,} bytes; the limit is {MAX_ARGUMENT_BYTES:,}",
            "Save a long text as a file and give its file_path, or send it in parts",
        )


METADATA_ARGUMENT = Argument("metadata", "array", "Only documents with these, e.g. status=final.", [])
NAMES_ARGUMENT = Argument(
    "names", "string", "Documents that the query names.", "prefer", choices=("prefer", "only", "ignore")
)

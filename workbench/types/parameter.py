"""Parameters of strategies and chunkers, and validation of their values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from workbench.errors import InvalidInput, list_choices
from workbench.types.json import Value

# Names of the legs, the keys of an attribution (``workbench.retrieval.legs`` describes them)

VECTOR = "vector"
KEYWORD = "keyword"
DOCUMENT = "document"
FEEDBACK = "feedback"
HYDE = "hyde"
QUERY = "query"
LATE = "late"
CLUSTER = "cluster"
CROSS_ENCODER = "cross-encoder"
LLM = "llm"
LEARNED = "learned"
NOVELTY = "novelty"
OWN = "own"


ParameterValue: TypeAlias = bool | int | float | str
MAX_NAME_CHARS = 60  # characters of a name that is a parameter's value
MAX_TEXT_CHARS = 500  # characters of a text that is a parameter's value


@dataclass(frozen=True, slots=True)
class Parameter(Value):
    """A parameter of a strategy or a chunker, shown by the app and the command line."""

    name: str
    kind: Literal["float", "int", "bool", "choice", "name", "text"]  # "name": of a stored object, such as a ranker
    default: ParameterValue
    why: str  # one line on its purpose
    low: float | None = None  # inclusive
    high: float | None = None  # inclusive
    choices: tuple[str, ...] = ()

    def read(self, value: object) -> ParameterValue:
        """Return the value with its type, converted from text if necessary.

        Raises:
            InvalidInput: The value is invalid; the message names the valid ones.
        """
        try:
            return self._read(value)
        except (ValueError, TypeError, KeyError, OverflowError):
            raise InvalidInput(f"Invalid {self.name} {value!r}; {self.valid()}.") from None

    def valid(self) -> str:
        """Return a clause that names the valid values."""
        if self.kind == "choice":
            return f"use one of {list_choices(self.choices, 20)}"
        if self.kind == "bool":
            return "use true or false"
        if self.kind == "name":
            return f"use a name of 1 to {MAX_NAME_CHARS} characters"
        if self.kind == "text":
            return f"use at most {MAX_TEXT_CHARS} printable characters"
        noun = "a whole number" if self.kind == "int" else "a number"
        return f"use {noun} from {self.low or 0:g} to {self.high or 0:g}"

    def _read(self, value: object) -> ParameterValue:
        if self.kind == "choice":
            return {choice: choice for choice in self.choices}[str(value)]
        if self.kind == "bool":
            return value if isinstance(value, bool) else {"true": True, "false": False}[str(value).lower()]
        if self.kind == "name":
            return read_name(value)
        if self.kind == "text":
            return _read_text(value)
        if isinstance(value, bool):
            raise ValueError(value)
        number = float(value)  # pyright: ignore[reportArgumentType] - read catches what this raises
        if self.kind == "int" and number != int(number):
            raise ValueError(value)
        if not (self.low is None or self.low <= number) or not (self.high is None or number <= self.high):
            raise ValueError(value)
        return int(number) if self.kind == "int" else number


def read_name(value: object) -> str:
    """Return a name with normalised spaces.

    Raises:
        ValueError: It is not a string, is empty or too long, or contains unprintable characters.
    """
    name = " ".join(value.split()) if isinstance(value, str) else ""
    if not 0 < len(name) <= MAX_NAME_CHARS or not name.isprintable():
        raise ValueError(value)
    return name


def _read_text(value: object) -> str:
    if not isinstance(value, str) or len(value) > MAX_TEXT_CHARS or not value.replace("\n", " ").isprintable():
        raise ValueError(value)
    return value


def read_parameters(
    owner: str, declared: Sequence[Parameter], given: Mapping[str, object]
) -> dict[str, ParameterValue]:
    """Return the value of every declared parameter: the given one, validated, or the default.

    Raises:
        InvalidInput: ``owner`` has no parameter of a given name, or a value is out of range.
    """
    by_name = {parameter.name: parameter for parameter in declared}
    for name in given:
        if name not in by_name:
            raise InvalidInput(f"{owner} has no parameter {name!r}; its parameters are {list_choices(by_name)}.")
    return {name: by_name[name].read(given.get(name, by_name[name].default)) for name in by_name}

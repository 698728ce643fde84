"""Parameters of strategies and chunkers, and how a given value is checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from workbench.errors import InvalidInput, choices
from workbench.types.json import Value

# --- The names of the legs, which are the keys of an attribution; ``workbench.retrieval.legs`` has a row for each ---

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


ParameterValue: TypeAlias = bool | int | float | str
LONGEST_NAME = 60  # characters of something that is named by a parameter


@dataclass(frozen=True, slots=True)
class Parameter(Value):
    """One thing that can be set about a strategy or a chunker: drawn by the app, offered by the command line.

    ``kind`` is "float", "int", "bool", "choice" or "name" (a text by which something that was made is called);
    ``low`` and ``high`` bound numbers inclusively; ``why`` is one line on what it is good for.
    """

    name: str
    kind: Literal["float", "int", "bool", "choice", "name"]
    default: ParameterValue
    why: str
    low: float | None = None
    high: float | None = None
    choices: tuple[str, ...] = ()

    def read(self, value: object) -> ParameterValue:
        """Return the value in its type, also from text. Raises InvalidInput naming the valid values."""
        try:
            return self._read(value)
        except (ValueError, TypeError, KeyError, OverflowError):
            raise InvalidInput(f"{self.name} cannot be {value!r}; {self.valid()}.") from None

    def valid(self) -> str:
        """Say which values are valid."""
        if self.kind == "choice":
            return f"use one of {choices(self.choices, 20)}"
        if self.kind == "bool":
            return "use true or false"
        if self.kind == "name":
            return f"use a name of 1 to {LONGEST_NAME} characters"
        noun = "a whole number" if self.kind == "int" else "a number"
        return f"use {noun} from {self.low or 0:g} to {self.high or 0:g}"

    def _read(self, value: object) -> ParameterValue:
        if self.kind == "choice":
            return {choice: choice for choice in self.choices}[str(value)]
        if self.kind == "bool":
            return value if isinstance(value, bool) else {"true": True, "false": False}[str(value).lower()]
        if self.kind == "name":
            return read_name(value)
        if isinstance(value, bool):
            raise ValueError(value)
        number = float(value)  # pyright: ignore[reportArgumentType] - what is no number raises, which read tells
        if self.kind == "int" and number != int(number):
            raise ValueError(value)
        if not (self.low is None or self.low <= number) or not (self.high is None or number <= self.high):
            raise ValueError(value)
        return int(number) if self.kind == "int" else number


def read_name(value: object) -> str:
    """Return a name without surplus blanks. Raises ValueError where it is no text, empty, overlong or not printable."""
    name = " ".join(value.split()) if isinstance(value, str) else ""
    if not 0 < len(name) <= LONGEST_NAME or not name.isprintable():
        raise ValueError(value)
    return name


def read_parameters(
    owner: str, declared: Sequence[Parameter], given: Mapping[str, object]
) -> dict[str, ParameterValue]:
    """Return every declared parameter's value: the given one, checked, or the default.

    Raises:
        InvalidInput: a name ``owner`` does not have, or a value out of its range.
    """
    by_name = {parameter.name: parameter for parameter in declared}
    for name in given:
        if name not in by_name:
            raise InvalidInput(f"{owner} has no parameter {name!r}; its parameters are {choices(by_name)}.")
    return {name: by_name[name].read(given.get(name, by_name[name].default)) for name in by_name}

"""JSON as Python holds it: for values that are written as JSON, or read from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from datetime import date, datetime
from typing import TypeAlias, cast

JsonValue: TypeAlias = "str | int | float | bool | Sequence[JsonValue] | Mapping[str, JsonValue] | None"
JsonObject: TypeAlias = dict[str, JsonValue]


def as_text(value: JsonValue) -> str:
    """Return a value that is a text. Raises TypeError."""
    if isinstance(value, str):
        return value
    raise TypeError(f"A text was expected, not {value!r}.")


def as_text_or_none(value: JsonValue) -> str | None:
    """Return a value that is a text or null. Raises TypeError."""
    return None if value is None else as_text(value)


def as_number(value: JsonValue) -> float:
    """Return a value that is a number. Raises TypeError."""
    if isinstance(value, int | float):
        return value
    raise TypeError(f"A number was expected, not {value!r}.")


def as_whole(value: JsonValue) -> int:
    """Return a value that is a number as a whole one. Raises TypeError."""
    return int(as_number(value))


def as_items(value: JsonValue) -> Sequence[JsonValue]:
    """Return a value that is an array; null has no items. Raises TypeError."""
    if value is None:
        return ()
    if isinstance(value, Sequence) and not isinstance(value, str):
        return value
    raise TypeError(f"An array was expected, not {value!r}.")


def as_texts(value: JsonValue) -> list[str]:
    """Return a value that is an array of texts. Raises TypeError."""
    return [as_text(item) for item in as_items(value)]


def as_object(value: JsonValue) -> Mapping[str, JsonValue]:
    """Return a value that is an object; null has no entries. Raises TypeError."""
    if value is None:
        return {}
    if isinstance(value, Mapping):
        return value
    raise TypeError(f"An object was expected, not {value!r}.")


# --- The JSON form that every value has ---


def plain(value: object) -> JsonValue:
    """Turn a value into what JSON can hold: dataclasses to dicts, dates to ISO strings, tuples to lists."""
    if hasattr(value, "to_dict"):
        return cast("Value", value).to_dict()
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in cast("Mapping[object, object]", value).items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in cast("list[object]", value)]
    return cast("JsonValue", value)


class Value:
    """Mixin of the frozen values: ``to_dict`` gives the JSON form that interfaces promise."""

    def to_dict(self) -> JsonObject:
        """Return the value as plain JSON types, in field order; fields that are not shown are left out."""
        told = (item.name for item in fields(self) if item.repr)  # pyright: ignore[reportArgumentType]
        return {name: plain(getattr(self, name)) for name in told}

"""JSON types, and checked conversion of JSON values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from datetime import date, datetime
from typing import TypeAlias, cast

JsonValue: TypeAlias = "str | int | float | bool | Sequence[JsonValue] | Mapping[str, JsonValue] | None"
JsonObject: TypeAlias = dict[str, JsonValue]


def as_text(value: JsonValue) -> str:
    """Return a JSON value as a string.

    Raises:
        TypeError: It is not a string.
    """
    if isinstance(value, str):
        return value
    raise TypeError(f"Expected a string, got {value!r}.")


def as_text_or_none(value: JsonValue) -> str | None:
    """Return a JSON value as a string or None.

    Raises:
        TypeError: It is neither a string nor null.
    """
    return None if value is None else as_text(value)


def as_number(value: JsonValue) -> float:
    """Return a JSON value as a float.

    Raises:
        TypeError: It is not a number.
    """
    if isinstance(value, int | float):
        return value
    raise TypeError(f"Expected a number, got {value!r}.")


def as_integer(value: JsonValue) -> int:
    """Return a JSON number as an int.

    Raises:
        TypeError: It is not a number.
    """
    return int(as_number(value))


def as_items(value: JsonValue) -> Sequence[JsonValue]:
    """Return a JSON array; empty for null.

    Raises:
        TypeError: It is neither an array nor null.
    """
    if value is None:
        return ()
    if isinstance(value, Sequence) and not isinstance(value, str):
        return value
    raise TypeError(f"Expected an array, got {value!r}.")


def as_texts(value: JsonValue) -> list[str]:
    """Return a JSON array of strings as a list.

    Raises:
        TypeError: It is not an array of strings.
    """
    return [as_text(item) for item in as_items(value)]


def as_object(value: JsonValue) -> Mapping[str, JsonValue]:
    """Return a JSON object; empty for null.

    Raises:
        TypeError: It is neither an object nor null.
    """
    if value is None:
        return {}
    if isinstance(value, Mapping):
        return value
    raise TypeError(f"Expected an object, got {value!r}.")


# Conversion of values to JSON


def to_plain(value: object) -> JsonValue:
    """Convert a value to JSON types: dataclasses to dicts, dates to ISO strings, tuples to lists."""
    if hasattr(value, "to_dict"):
        return cast("Value", value).to_dict()
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, Mapping):
        return {str(key): to_plain(item) for key, item in cast("Mapping[object, object]", value).items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [to_plain(item) for item in cast("list[object]", value)]
    return cast("JsonValue", value)


class Value:
    """Mixin for frozen values; ``to_dict`` returns the JSON form that the interfaces specify."""

    def to_dict(self) -> JsonObject:
        """Return the value as JSON types, in field order; fields that are hidden in ``repr`` are omitted."""
        shown = (item.name for item in fields(self) if item.repr)  # pyright: ignore[reportArgumentType]
        return {name: to_plain(getattr(self, name)) for name in shown}

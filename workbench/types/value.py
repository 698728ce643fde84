"""The JSON form that every value has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from datetime import date, datetime
from typing import cast

from workbench.types.json import JsonObject, JsonValue


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

"""What every value has in common: its JSON form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from datetime import date, datetime
from typing import Any


def plain(value: Any) -> Any:
    """Turn a value into what JSON can hold: dataclasses to dicts, dates to ISO strings, tuples to lists."""
    if hasattr(value, "to_dict"):
        return value.to_dict()
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in value]
    return value


class Value:
    """Mixin of the frozen values: ``to_dict`` gives the JSON form that interfaces promise."""

    def to_dict(self) -> dict[str, Any]:
        """Return the value as plain JSON types, in field order."""
        return {item.name: plain(getattr(self, item.name)) for item in fields(self)}  # pyright: ignore[reportArgumentType]

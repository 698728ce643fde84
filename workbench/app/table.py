"""A table one can sort, filter, select in and open rows of; drawn in the browser, keyboard and all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from workbench.app.assets import component


@dataclass(frozen=True, slots=True)
class Column:
    """A column; a cell of kind "shown" is {"text", "order"}, "state" is {"state", "text"}, "tags" a list.

    The filter finds parts of words; in a column of ``whole`` words, whose few values most rows share, and in numbers
    and dates only whole ones.
    """

    name: str
    label: str
    kind: Literal["text", "number", "shown", "tags", "state"] = "text"
    align: Literal["left", "right"] = "left"
    whole: bool = False


@dataclass(frozen=True, slots=True)
class Chosen:
    """What a person did: the ids of the selected rows, and the row just opened."""

    selected: tuple[str, ...]
    opened: str | None


def table(
    key: str,
    columns: Sequence[Column],
    rows: Sequence[Mapping[str, Any]],
    *,
    label: str,
    noun: str,
    empty: str = "Nothing here yet.",
    selectable: bool = False,
    opens: bool = False,
    filters: bool = True,
) -> Chosen:
    """Show rows of {"id", "name", "cells": {column: value}, "notes": {column: smaller second line}}.

    ``opens`` makes the first column's cells buttons; ``noun`` is what the rows are, in the plural.
    """
    data = {
        "columns": [
            {"name": column.name, "label": column.label, "kind": column.kind, "align": column.align}
            | {"whole": column.whole or column.kind in ("number", "shown")}
            for column in columns
        ],
        "rows": [dict(row) for row in rows],
        "label": label,
        "noun": noun,
        "empty": empty,
        "selectable": selectable,
        "opens": opens,
        "filters": filters,
    }
    result = component("table")(
        key=key, data=data, default={"selected": []}, on_selected_change=_nothing, on_open_change=_nothing
    )
    there = {row["id"] for row in rows}
    selected = tuple(item for item in (result.selected or ()) if item in there)
    return Chosen(selected, result.open if result.open in there else None)


def moment(at: datetime | None, *, seconds: bool = False) -> dict[str, str]:
    """Return the cell, of kind "shown", of a point in time: told by this machine's clock, sorted as time."""
    if at is None:
        return {"text": "–", "order": ""}
    form = "%-d %b, %H:%M:%S" if seconds else "%-d %b %Y, %H:%M"
    return {"text": at.astimezone().strftime(form), "order": at.isoformat()}


def _nothing() -> None:
    """State and triggers are read from the result; Streamlit wants a callback for each."""

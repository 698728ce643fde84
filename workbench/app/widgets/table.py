"""A table one can sort, filter, select in and open rows of; drawn in the browser, keyboard and all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from workbench.app.widgets.notices import component


@dataclass(frozen=True, slots=True)
class Column:
    """A column; a cell of kind "shown" is {"text", "order"}, "state" is {"state", "text"}, "tags" a list.

    "strategy" is {"text", "hue", "shape"}; "score" is {"value", "low", "high", "ends"}, a mean with its interval on a
    scale from ends[0] to ends[1]; "trend" is {"values", "at", "text"}, values over time with the one at place ``at``
    marked, told by ``text``. Each of these three may be None.

    The filter finds parts of words; in a column of ``whole`` words, whose few values most rows share, and in numbers
    and dates only whole ones. A ``narrow`` column takes the width of its words.
    """

    name: str
    label: str
    kind: Literal["text", "number", "shown", "tags", "state", "strategy", "score", "trend"] = "text"
    align: Literal["left", "right"] = "left"
    whole: bool = False
    narrow: bool = False


@dataclass(frozen=True, slots=True)
class TableChoice:
    """A person's choice: the ids of the selected rows, and the row just opened."""

    selected: tuple[str, ...]
    opened: str | None


def table(
    key: str,
    columns: Sequence[Column],
    rows: Sequence[Mapping[str, object]],
    *,
    label: str,
    noun: str,
    empty: str = "Nothing here yet.",
    selectable: bool = False,
    opens: bool = False,
    filters: bool = True,
    stacks: bool = False,
) -> TableChoice:
    """Show rows of {"id", "name", "cells": {column: value}, "notes": {column: smaller second line}}.

    ``opens`` makes the first column's cells buttons; ``noun`` is what the rows are, in the plural. With ``stacks`` a
    narrow table has each row on several lines, its figures with their columns' names, instead of scrolling sideways.
    """
    data = {
        "columns": [
            {"name": column.name, "label": column.label, "kind": column.kind, "align": column.align}
            | {"whole": column.whole or column.kind in ("number", "shown"), "narrow": column.narrow}
            for column in columns
        ],
        "rows": [dict(row) for row in rows],
        "label": label,
        "noun": noun,
        "empty": empty,
        "selectable": selectable,
        "opens": opens,
        "filters": filters,
        "stacks": stacks,
    }
    result = component("widgets/table")(
        key=key, data=data, default={"selected": []}, on_selected_change=_nothing, on_open_change=_nothing
    )
    ids = {row["id"] for row in rows}
    selected = tuple(item for item in (result.selected or ()) if item in ids)
    return TableChoice(selected, result.open if result.open in ids else None)


def moment(at: datetime | None, *, seconds: bool = False) -> dict[str, str]:
    """Return the cell, of kind "shown", of a point in time: told by this machine's clock, sorted as time."""
    if at is None:
        return {"text": "–", "order": ""}
    form = "%-d %b, %H:%M:%S" if seconds else "%-d %b %Y, %H:%M"
    return {"text": at.astimezone().strftime(form), "order": at.isoformat()}


def _nothing() -> None:
    """Do nothing: Streamlit wants a callback for every state and trigger, which are read from the result."""

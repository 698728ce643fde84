"""A table with sorting, filtering, selection and keyboard navigation in the browser."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from workbench.app.widgets.notices import mount


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table.

    Attributes:
        name: Key of its cells.
        label: Heading.
        kind: Format of its cells: "shown" {"text", "order"}; "state" {"state", "text"}; "tags" a list; "strategy"
            {"text", "hue", "shape"}; "score" {"value", "low", "high", "ends"}, a mean with its interval on the scale
            ``ends``; "action" the label of a button. The last three may be None.
        align: Alignment of its cells.
        whole: True if the filter matches only whole words, as it does in numbers and dates.
        narrow: True if it is only as wide as its text.
    """

    name: str
    label: str
    kind: Literal["text", "number", "shown", "tags", "state", "strategy", "score", "action"] = "text"
    align: Literal["left", "right"] = "left"
    whole: bool = False
    narrow: bool = False


@dataclass(frozen=True, slots=True)
class TableChoice:
    """The ids of the selected rows, of the row just opened, and of the row whose button was just pressed."""

    selected: tuple[str, ...]
    opened: str | None
    acted: str | None = None


def show_table(
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
) -> TableChoice:
    """Show a table. If there is little room, each row is on several lines, unless the columns are narrow.

    Args:
        key: Key of the widget.
        columns: The columns.
        rows: {"id", "name", "cells": {column: value}, "notes": {column: smaller second line}, "current": bool}.
        label: Accessible name.
        noun: Plural noun for the rows.
        empty: Text shown if there are no rows.
        selectable: True for a checkbox in each row.
        opens: True if cells of the first column are buttons.
        filters: True for a filter box.
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
        "stacks": not all(column.narrow for column in columns[1:]),
    }
    result = mount("widgets/table", key, data, "selected", "open", default={"selected": []})
    ids = {str(row["id"]) for row in rows}
    selected = tuple(item for item in (result.selected or ()) if item in ids)
    pressed: dict[str, str] = {
        f"{column.name}: {key}": key for column in columns if column.kind == "action" for key in ids
    }
    return TableChoice(selected, result.open if result.open in ids else None, pressed.get(str(result.open)))


def make_time_cell(at: datetime | None) -> dict[str, str]:
    """Return a time as a cell of kind "shown", in the local time zone."""
    if at is None:
        return {"text": "–", "order": ""}
    return {"text": at.astimezone().strftime("%-d %b %Y, %H:%M"), "order": at.isoformat()}

"""Tables from plain values: how a column is shown follows from its cells."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Literal, NamedTuple, TypeAlias

from workbench.app.widgets.table import Column, TableChoice, make_time_cell, show_table


class Figure(NamedTuple):
    """A number as text, aligned right; ``order`` sorts it."""

    text: str
    order: float | None


class Press(str):
    """The label of a button."""


class Noted(NamedTuple):
    """A cell with a smaller second line."""

    cell: RowCell
    note: str


# A mapping is a cell of kind "state", "score" or "strategy", as described at ``Column``.
RowCell: TypeAlias = str | int | datetime | Figure | Mapping[str, object] | Noted | None


def make_figure(value: float | None, form: str = ".3f", suffix: str = "") -> Figure:
    """Return a number as a cell, "–" if there is none."""
    return Figure(("–" if value is None else format(value, form)) + suffix, value)


def show_rows(
    key: str,
    columns: Sequence[str],
    rows: Mapping[str, Sequence[RowCell]],
    *,
    label: str,
    noun: str,
    empty: str = "Nothing here yet.",
    opens: bool = False,
    filters: bool = False,
    selectable: bool = False,
    current: str = "",
) -> TableChoice:
    """Show a table, as ``show_table`` does.

    Args:
        columns: Headings of the columns.
        rows: The cells of each row by its id.
        current: Id of the row that is marked.
    """
    cells = {row: [cell if isinstance(cell, Noted) else Noted(cell, "") for cell in rows[row]] for row in rows}
    heads = [_make_column(place, title, cells.values()) for place, title in enumerate(columns)]
    shown: list[dict[str, object]] = []
    for row, noted in cells.items():
        values = {head.name: _convert(head.kind, one.cell) for head, one in zip(heads, noted, strict=True)}
        notes = {head.name: one.note for head, one in zip(heads, noted, strict=True) if one.note}
        first = values[heads[0].name]
        name = first["text"] if isinstance(first, Mapping) else first
        shown.append({"id": row, "name": str(name), "cells": values, "notes": notes, "current": row == current})
    return show_table(
        key, heads, shown, label=label, noun=noun, empty=empty, opens=opens, filters=filters, selectable=selectable
    )


def _make_column(place: int, title: str, rows: Iterable[Sequence[Noted]]) -> Column:
    """Return a column of the kind of its first cell that is not None; two columns may have the same title."""
    kind: Literal["text", "number", "shown", "state", "score", "strategy", "action"] = "text"
    align: Literal["left", "right"] = "left"
    match next((row[place].cell for row in rows if row[place].cell is not None), ""):
        case Figure():
            kind, align = "shown", "right"
        case Press():
            kind = "action"
        case datetime():
            kind = "shown"
        case int():
            kind = "number"
        case Mapping() as cell:
            kind = "state" if "state" in cell else "score" if "ends" in cell else "strategy"
        case _:
            pass
    return Column(f"{title} {place}", title, kind, align)


def _convert(kind: str, cell: RowCell) -> object:
    """Return a cell as the component expects it."""
    if isinstance(cell, datetime) or (cell is None and kind == "shown"):
        return make_time_cell(cell)
    if cell is None and kind == "text":
        return "–"
    return cell._asdict() if isinstance(cell, Figure) else cell

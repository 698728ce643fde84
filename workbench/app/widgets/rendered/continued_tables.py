"""A table that begins before a passage: its rows are a table again below the header that stands elsewhere."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from workbench.app.widgets.rendered.elements import Node, TextRun

ROW = re.compile(r"\|.*\|[ \t]*(?:\n|\Z)")
RULE = re.compile(r"\|(?:[ \t]*:?-+:?[ \t]*\|)+[ \t]*(?:\n|\Z)")
CELL_END = re.compile(r"(?<!\\)\|")


def with_table_header(text: str, header: str) -> tuple[str, int]:
    """Return a text that begins with rows below their header, and how many characters were put before it.

    Without a ``header`` the columns' names are empty. A text that does not begin so, or has a header, stays.
    """
    first = ROW.match(text)
    if first is None or RULE.match(text, first.end()):
        return text, 0
    lines = header.strip().splitlines()
    names = lines[0] if lines else ""
    columns = _columns(first.group())
    if _columns(names) != columns:
        names = "|" + " |" * columns
    lead = f"{names}\n|{'---|' * columns}\n"
    return lead + text, len(lead)


def moved_back(nodes: Sequence[Node], lead: int) -> tuple[Node, ...]:
    """Return nodes at their places in the text without its first ``lead`` characters; those in the lead have none."""
    return tuple(_moved(node, lead) for node in nodes)


def _moved(node: Node, lead: int) -> Node:
    if isinstance(node, TextRun):
        inside = node.start >= lead
        return replace(node, start=node.start - lead, end=node.end - lead) if inside else TextRun(node.text, 0, 0)
    span = node.span
    moved = (span[0] - lead, span[1] - lead) if span is not None and span[0] >= lead else None
    return replace(node, children=moved_back(node.children, lead), span=moved)


def _columns(row: str) -> int:
    return max(0, len(CELL_END.findall(row.strip())) - 1)

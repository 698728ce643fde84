"""The blocks of a page as its Markdown has them: the items of a list, which the parser names singly, are one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from liteparse.types import LayoutBlock, LayoutCell, ParsedPage

ITEM = "list_item"


@dataclass(frozen=True, slots=True)
class PageBlock:
    """A block's kind, the rows of a table, and its box in points: left, top, right, bottom; None where unknown."""

    kind: str
    rows: tuple[Sequence[LayoutCell], ...]
    box: tuple[float, float, float, float] | None


def page_blocks(page: ParsedPage) -> list[PageBlock]:
    """Return a page's blocks in order, items in a row as one."""
    blocks: list[PageBlock] = []
    for block in page.blocks or ():
        own = _block(block)
        if own.kind == ITEM and blocks and blocks[-1].kind == ITEM:
            blocks[-1] = PageBlock(ITEM, (), _around(blocks[-1].box, own.box))
        else:
            blocks.append(own)
    return blocks


def _block(block: LayoutBlock) -> PageBlock:
    box = block.bbox
    rows = (*([block.header] if block.header else []), *(block.rows or []))
    return PageBlock(block.kind, rows, None if box is None else (box.x, box.y, box.x + box.width, box.y + box.height))


def _around(
    one: tuple[float, float, float, float] | None, other: tuple[float, float, float, float] | None
) -> tuple[float, float, float, float] | None:
    if one is None or other is None:
        return None
    return min(one[0], other[0]), min(one[1], other[1]), max(one[2], other[2]), max(one[3], other[3])

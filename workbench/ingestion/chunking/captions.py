"""The names of tables: the short lines before them (caption, units, years) and the names of their columns."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Sequence
from itertools import takewhile

from workbench.ingestion.about import CONTENTS
from workbench.ingestion.chunking.blocks import Block, heading_text

LINES = 3  # short blocks before a table that may name it: a heading, who reports, the units or the years
LONGEST = 200  # characters of such a line; a longer one is prose
COLUMNS = 120  # characters of the columns' names
RUNNING, RUNNING_SHARE = 5, 0.2  # pages, and share of the pages, above which a heading is a running one
OVER_MANY, OVER_SHARE = 10, 0.25  # pages, and share of a document, above which one heading tells nothing of a passage
RULE = re.compile(r"[-*_\s]+")
MARKUP = re.compile(r"\*\*|__|`")
AMOUNT = re.compile(r"[$€£¥%]|\d[,.]\d|\(\d")  # a cell that holds a figure, and so no name of a column


def caption(text: str, blocks: Sequence[Block], table: Block, running: Collection[str], start: int = 0) -> str:
    """Return the lines that name the table and its columns' names in one line, "" where there are none.

    Lines are looked for from the table upwards, as far as ``start``; above a heading only headings count, ``running``
    ones never. A first row with figures in it is no row of names.
    """
    lines: list[str] = []
    headed = False
    for index in range(bisect_left(blocks, table.start, key=lambda block: block.start) - 1, -1, -1):
        block = blocks[index]
        raw = text[block.start : block.end].strip()
        if RULE.fullmatch(raw) or (block.kind == "heading" and heading_text(raw) in running):
            continue
        if not _names(block, raw, headed) or block.start < start or len(lines) == LINES:
            break
        headed = headed or block.kind == "heading"
        lines.append(heading_text(raw) if block.kind == "heading" else MARKUP.sub("", raw))
    columns = _columns(text[table.start : table.body])
    return " ".join(" ".join([*reversed(lines), columns]).split())


def page_head(text: str, blocks: Sequence[Block], start: int, end: int, running: Collection[str]) -> tuple[int, str]:
    """Return the first line of ``text[start:end]`` that is no running one, if it names the page, and its end."""
    for index in range(bisect_left(blocks, start, key=lambda block: block.start), len(blocks)):
        block = blocks[index]
        raw = text[block.start : block.end].strip()
        words = heading_text(raw) if block.kind == "heading" else " ".join(MARKUP.sub("", raw).split())
        if block.start >= end or (words not in running and not _names(block, raw, headed=False)):
            break
        if words not in running and not RULE.fullmatch(raw):
            return block.end, words
    return start, ""


def running_headings(blocks: Sequence[Block], pages: int) -> frozenset[str]:
    """Return the headings that tell no two passages apart.

    These stand on many of the pages, belong to a table of contents, or stand above many pages, as a line in large print
    on the cover of a report does.
    """
    times = Counter(block.path[-1] for block in blocks if block.kind == "heading" and block.path)
    most = max(RUNNING, RUNNING_SHARE * pages)
    above = Counter[str]()
    for block in blocks:
        for heading in set(block.path):
            above[heading] += block.end - block.start
    widest = max(OVER_SHARE, OVER_MANY / max(1, pages)) * sum(block.end - block.start for block in blocks)
    return frozenset(
        heading
        for heading, count in times.items()
        if count > most or heading.casefold() in CONTENTS or above[heading] > widest
    )


def leads_to_table(text: str, blocks: Sequence[Block], place: int) -> bool:
    """Tell whether a table begins at a place among the blocks, or after a few headings and lines that name it."""
    for block in blocks[place : place + LINES]:
        if block.kind == "table":
            return True
        if block.kind != "heading" and not is_naming(block, text[block.start : block.end]):
            return False
    return False


def is_naming(block: Block, raw: str) -> bool:
    """Tell whether a text of a block is a short line that ends no sentence, as those that name a table do."""
    return block.kind == "text" and _names(block, raw.strip(), headed=False)


def _names(block: Block, raw: str, headed: bool) -> bool:
    """Tell whether a block is a heading, or below the first heading a short line that ends no sentence."""
    if len(raw) > LONGEST:
        return False
    if block.kind == "heading":
        return True
    return block.kind == "text" and not headed and not raw.rstrip("*_ ").endswith((".", ";", ","))


def _columns(header: str) -> str:
    cells = [cell.strip() for cell in header.split("\n", 1)[0].strip().strip("|").split("|")]
    if any(AMOUNT.search(cell) for cell in cells):
        return ""
    return MARKUP.sub("", " | ".join(_without_repeats([cell for cell in cells if cell])))[:COLUMNS]


def _without_repeats(names: Sequence[str]) -> list[str]:
    """Return names of columns without the words that each begins with like the one before it.

    "Year ended May 31, 2020", "Year ended May 26, 2019" are "Year ended May 31, 2020", "26, 2019".
    """
    short: list[str] = []
    before: list[str] = []
    for name in names:
        words = name.split()
        alike = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(before, words, strict=False)))
        if words[alike:]:
            short.append(" ".join(words[alike:]))
        before = words
    return short

"""The task of a chunker: one document with its blocks, token counts and available room."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from workbench.ingestion.chunking.blocks import Block, heading_text, parse_blocks, parse_code_blocks
from workbench.ingestion.chunking.spans import ChunkInput, TokenCounter, Tokenize, lock_free_cached_property
from workbench.ingestion.metadata import CONTENTS_HEADINGS, append_description, context_header
from workbench.types import ParameterValue

# --- Names of tables: lines above and column names ---

MAX_CAPTION_BLOCKS = 3  # short blocks before a table that may name it: heading, company, units or years
MAX_CAPTION_LINE_CHARS = 200  # characters of such a line; longer ones are prose
MAX_COLUMN_NAMES_CHARS = 120  # characters of the column names
MIN_RUNNING_PAGES, MIN_RUNNING_SHARE = 5, 0.2  # pages, and share of pages, above which a heading is a running header
MIN_COVERED_PAGES, MIN_COVERED_SHARE = 10, 0.25  # pages, and share of a document, that make a heading uninformative
RULE = re.compile(r"[-*_\s]+")
MARKUP = re.compile(r"\*\*|__|`")
AMOUNT = re.compile(r"[$€£¥%]|\d[,.]\d|\(\d")  # a cell with a figure is not a column name


def table_caption(text: str, blocks: Sequence[Block], table: Block, running: Collection[str], start: int = 0) -> str:
    """Return the lines that name a table and its column names on one line, or "" if there are none.

    Lines are searched upwards from the table to ``start``. Above a heading only headings count, and ``running``
    headings never do. A first row that contains figures is not a header.
    """
    lines: list[str] = []
    headed = False
    for index in range(bisect_left(blocks, table.start, key=lambda block: block.start) - 1, -1, -1):
        block = blocks[index]
        raw = text[block.start : block.end].strip()
        if RULE.fullmatch(raw) or (block.kind == "heading" and heading_text(raw) in running):
            continue
        if not _may_name_table(block, raw, headed) or block.start < start or len(lines) == MAX_CAPTION_BLOCKS:
            break
        headed = headed or block.kind == "heading"
        lines.append(heading_text(raw) if block.kind == "heading" else MARKUP.sub("", raw))
    columns = _column_names(text[table.start : table.body])
    return " ".join(" ".join([*reversed(lines), columns]).split())


def find_running_headings(blocks: Sequence[Block], pages: int) -> frozenset[str]:
    """Return the headings that do not distinguish passages.

    They occur on many pages, belong to a table of contents, or have many pages below them, like a line in large print
    on a cover.
    """
    times = Counter(block.path[-1] for block in blocks if block.kind == "heading" and block.path)
    most = max(MIN_RUNNING_PAGES, MIN_RUNNING_SHARE * pages)
    above = Counter[str]()
    for block in blocks:
        for heading in set(block.path):
            above[heading] += block.end - block.start
    widest = max(MIN_COVERED_SHARE, MIN_COVERED_PAGES / max(1, pages)) * sum(
        block.end - block.start for block in blocks
    )
    return frozenset(
        heading
        for heading, count in times.items()
        if count > most or heading.casefold() in CONTENTS_HEADINGS or above[heading] > widest
    )


def leads_to_table(text: str, blocks: Sequence[Block], place: int) -> bool:
    """Return whether a table starts at a block, or after a few headings and lines that name it."""
    for block in blocks[place : place + MAX_CAPTION_BLOCKS]:
        if block.kind == "table":
            return True
        if block.kind != "heading" and not is_caption_line(block, text[block.start : block.end]):
            return False
    return False


def is_caption_line(block: Block, raw: str) -> bool:
    """Return whether a block is a short line that does not end a sentence, like lines that name a table."""
    return block.kind == "text" and _may_name_table(block, raw.strip(), headed=False)


def _may_name_table(block: Block, raw: str, headed: bool) -> bool:
    """Return whether a block is a heading, or a short line below the first heading that does not end a sentence."""
    if len(raw) > MAX_CAPTION_LINE_CHARS:
        return False
    if block.kind == "heading":
        return True
    return block.kind == "text" and not headed and not raw.rstrip("*_ ").endswith((".", ";", ","))


def _column_names(header: str) -> str:
    cells = [cell.strip() for cell in header.split("\n", 1)[0].strip().strip("|").split("|")]
    if any(AMOUNT.search(cell) for cell in cells):
        return ""
    return MARKUP.sub("", " | ".join(_drop_repeated_words([cell for cell in cells if cell])))[:MAX_COLUMN_NAMES_CHARS]


def _drop_repeated_words(names: Sequence[str]) -> list[str]:
    """Return column names without the leading words that each shares with the previous one.

    "Year ended May 31, 2020", "Year ended May 26, 2019" becomes "Year ended May 31, 2020", "26, 2019".
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


Embed: TypeAlias = Callable[[Sequence[str]], NDArray[np.float32]]  # one row per text
HEADER_SHARE = 0.6  # header characters per token of the limit: 152 of MiniLM's 254


@dataclass(frozen=True)
class CuttingTask:
    """A task for a chunker."""

    document: ChunkInput  # the document
    tokens: Tokenize  # returns the token spans of a text
    limit: int  # the encoder's maximum tokens, without special tokens
    options: Mapping[str, ParameterValue]  # all of the chunker's options, checked
    embed: Embed | None = None  # embeds texts, for chunkers that need it

    @property
    def text(self) -> str:
        """The document's text, which all spans refer to."""
        return self.document.text

    @property
    def header_characters(self) -> int:
        """Maximum characters of a context header, so that the passage keeps most of the limit."""
        return int(self.limit * HEADER_SHARE)

    @lock_free_cached_property
    def ruler(self) -> TokenCounter:
        """Token counter for the document's text."""
        return TokenCounter(self.document.text, self.tokens)

    @lock_free_cached_property
    def blocks(self) -> list[Block]:
        """The document's blocks: definitions for source code, Markdown blocks for everything else."""
        return parse_code_blocks(self.text) if self.document.document_type == "code" else parse_blocks(self.text)

    @lock_free_cached_property
    def running(self) -> frozenset[str]:
        """Headings that do not distinguish passages, because they are on many pages."""
        pages = len(self.document.pages)
        return find_running_headings(self.blocks, pages) if pages else frozenset()

    @lock_free_cached_property
    def captions(self) -> Mapping[int, str]:
        """The names of each table by its start."""
        captions: dict[int, str] = {}
        for block in self.blocks:
            if block.kind == "table":
                page = self.page_index(block.start)
                start = 0 if page is None else self.document.pages[page][1]
                captions[block.start] = table_caption(self.text, self.blocks, block, self.running, start)
        return captions

    @lock_free_cached_property
    def page_starts(self) -> list[int]:
        """The first character of each page, in order; empty if the document has no pages."""
        return [start for _, start, _ in self.document.pages]

    def page_index(self, position: int) -> int | None:
        """Return the index of the page that contains a position, or None if the document has no pages."""
        return max(0, bisect_right(self.page_starts, position) - 1) if self.page_starts else None

    @lock_free_cached_property
    def header_tokens(self) -> int:
        """Tokens of the document's longest context header, measured in one call of the tokenizer."""
        paths = {block.path for block in self.blocks} | {()}
        paths |= {path[:depth] for path in paths for depth in range(len(path))}
        headers = {self.header(path) for path in paths}
        headers |= {
            self.header(block.path, self.captions[block.start]) for block in self.blocks if block.kind == "table"
        }
        headers = sorted(headers - {""})
        ruler = TokenCounter("\n\n".join(headers), self.tokens)
        start = longest = 0
        for header in headers:
            longest = max(longest, ruler.count(start, start + len(header)))
            start += len(header) + 2
        return longest

    @lock_free_cached_property
    def room(self) -> int:
        """Maximum tokens of a passage, so that any header fits before it."""
        return max(1, self.limit - self.header_tokens)

    @property
    def size(self) -> int:
        """The target size of a passage: the option, or less if there is less room."""
        return max(1, min(int(self.options["size"]), self.room))

    def header(self, path: Sequence[str], table: str = "") -> str:
        """Return the context of a passage under these headings; ``table`` names the table that it continues."""
        about = self.document.about
        headings = (heading for heading in path if heading not in table and heading not in self.running)
        parts = [about.name, about.title or ("" if about.name else self.document.title), *headings, table]
        first, *others = [part for part in parts if part] or [""]
        header = context_header(first, others, self.header_characters)
        return append_description(header, about.description, self.header_characters)

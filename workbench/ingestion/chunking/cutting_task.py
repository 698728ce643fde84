"""One document on its way through a chunker: its text measured, its blocks seen, its room known."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from workbench.ingestion.chunking.blocks import Block, blocks_of
from workbench.ingestion.chunking.captions import caption, page_head, running_headings
from workbench.ingestion.chunking.code_blocks import code_blocks_of
from workbench.ingestion.chunking.computed_once import computed_once
from workbench.ingestion.chunking.ruler import Ruler
from workbench.ingestion.chunking.span import ChunkInput, Tokenize
from workbench.ingestion.context import context_header, with_sayings
from workbench.types import ParameterValue

Embed: TypeAlias = Callable[[Sequence[str]], NDArray[np.float32]]  # one row a text
HEADER_SHARE = 0.6  # header characters per token of the limit: 152 of MiniLM's 254


@dataclass(frozen=True)
class CuttingTask:
    """The task that a chunker is given; ``options`` are complete and in range, ``limit`` counts no special tokens."""

    document: ChunkInput
    tokens: Tokenize
    limit: int
    options: Mapping[str, ParameterValue]
    embed: Embed | None = None

    @property
    def text(self) -> str:
        """The document's whole text; every span of the task counts its characters."""
        return self.document.text

    @property
    def header_characters(self) -> int:
        """The most characters that a context header may have, so that the passage keeps most of the limit."""
        return int(self.limit * HEADER_SHARE)

    @computed_once
    def ruler(self) -> Ruler:
        """The counter of the model's tokens over the document's text."""
        return Ruler(self.document.text, self.tokens)

    @computed_once
    def blocks(self) -> list[Block]:
        """The document's blocks: definitions for source code, Markdown's for everything else."""
        return code_blocks_of(self.text) if self.document.document_type == "code" else blocks_of(self.text)

    @computed_once
    def running(self) -> frozenset[str]:
        """The headings that say nothing of a passage because they stand on many pages."""
        pages = len(self.document.pages)
        return running_headings(self.blocks, pages) if pages else frozenset()

    @computed_once
    def page_heads(self) -> list[tuple[int, str]]:
        """Of each page, the line that names it and where that line ends."""
        return [page_head(self.text, self.blocks, start, end, self.running) for _, start, end in self.document.pages]

    @computed_once
    def captions(self) -> Mapping[int, str]:
        """Each table's start -> the lines that name it."""
        captions: dict[int, str] = {}
        for block in self.blocks:
            if block.kind == "table":
                page = self.page_of(block.start)
                start = 0 if page is None else self.document.pages[page][1]
                near = caption(self.text, self.blocks, block, self.running, start)
                head = "" if page is None else self.page_heads[page][1]
                captions[block.start] = near if head in near else f"{head} {near}".strip()
        return captions

    @computed_once
    def page_starts(self) -> list[int]:
        """The character at which each page begins, in order; empty where the document has no pages."""
        return [start for _, start, _ in self.document.pages]

    def page_of(self, position: int) -> int | None:
        """Return the place among the document's pages of the one that holds a position; None where it has no pages."""
        return max(0, bisect_right(self.page_starts, position) - 1) if self.page_starts else None

    @computed_once
    def header_tokens(self) -> int:
        """The tokens of the document's longest context header, all measured in one call of the tokenizer."""
        paths = {block.path for block in self.blocks} | {()}
        paths |= {path[:depth] for path in paths for depth in range(len(path))}
        headers = {self.header(path) for path in paths}
        headers |= {
            self.header(block.path, self.captions[block.start]) for block in self.blocks if block.kind == "table"
        }
        headers = sorted(headers - {""})
        ruler = Ruler("\n\n".join(headers), self.tokens)
        start = longest = 0
        for header in headers:
            longest = max(longest, ruler.count(start, start + len(header)))
            start += len(header) + 2
        return longest

    @computed_once
    def room(self) -> int:
        """The most tokens a passage of this document may have, so that any header still fits before it."""
        return max(1, self.limit - self.header_tokens)

    @property
    def size(self) -> int:
        """The size to pack to: the option, or what there is room for."""
        return max(1, min(int(self.options["size"]), self.room))

    def header(self, path: Sequence[str], table: str = "") -> str:
        """Return the context of a passage under these headings; ``table`` names the table that it goes on with."""
        about = self.document.about
        headings = (heading for heading in path if heading not in table and heading not in self.running)
        parts = [about.name, about.title or ("" if about.name else self.document.title), *headings, table]
        first, *others = [part for part in parts if part] or [""]
        header = context_header(first, others, self.header_characters)
        return with_sayings(header, about.says, self.header_characters)

"""One document on its way through a chunker: its text measured, its blocks seen, its room known."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from workbench.ingestion.chunking.blocks import Block, blocks_of
from workbench.ingestion.chunking.code_blocks import code_blocks_of
from workbench.ingestion.chunking.ruler import Ruler
from workbench.ingestion.chunking.span import ChunkInput, Tokens
from workbench.ingestion.context import context_header

HEADER_SHARE = 0.6  # header characters per token of the limit: 152 of MiniLM's 254


@dataclass(frozen=True)
class Job:
    """What every chunker is given; ``options`` are complete and in range, ``limit`` counts no special tokens."""

    document: ChunkInput
    tokens: Tokens
    limit: int
    options: Mapping[str, Any]
    embed: Callable[[Sequence[str]], Any] | None = None

    @property
    def text(self) -> str:
        return self.document.text

    @property
    def header_characters(self) -> int:
        return int(self.limit * HEADER_SHARE)

    @cached_property
    def ruler(self) -> Ruler:
        return Ruler(self.document.text, self.tokens)

    @cached_property
    def blocks(self) -> list[Block]:
        """The document's blocks: definitions for source code, Markdown's for everything else."""
        return code_blocks_of(self.text) if self.document.document_type == "code" else blocks_of(self.text)

    @cached_property
    def header_tokens(self) -> int:
        """The tokens of the document's longest context header, all measured in one call of the tokenizer."""
        paths = {block.path for block in self.blocks} | {()}
        paths |= {path[:depth] for path in paths for depth in range(len(path))}
        headers = sorted({self.header(path) for path in paths} - {""})
        ruler = Ruler("\n\n".join(headers), self.tokens)
        start = longest = 0
        for header in headers:
            longest = max(longest, ruler.count(start, start + len(header)))
            start += len(header) + 2
        return longest

    @cached_property
    def room(self) -> int:
        """The most tokens a passage of this document may have, so that any header still fits before it."""
        return max(1, self.limit - self.header_tokens)

    @property
    def size(self) -> int:
        """The size to pack to: the option, or what there is room for."""
        return max(1, min(int(self.options["size"]), self.room))

    def header(self, path: Sequence[str]) -> str:
        return context_header(self.document.title, path, self.header_characters)

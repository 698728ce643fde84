"""A tokenizer for chunking tests: one token per word or mark; and the passages of a chunker as a list."""

from __future__ import annotations

import re
from collections.abc import Mapping

from workbench.ingestion.chunking import ChunkInput, CutPassage, Tokenize, cut_spans


def word_spans(text: str) -> list[tuple[int, int]]:
    """Return the (start, end) of each word and mark."""
    return [match.span() for match in re.finditer(r"\w+|[^\w\s]", text)]


def chunk(
    name: str, document: ChunkInput, tokens: Tokenize, options: Mapping[str, object] | None = None
) -> list[CutPassage]:
    """Cut a document as ``cut_spans`` does, and return a list."""
    return list(cut_spans(name, document, tokens, options))

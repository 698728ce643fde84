"""A tokenizer for chunking tests: one token per word or mark."""

from __future__ import annotations

import re

from workbench.ingestion.chunking import chunk as chunk


def word_spans(text: str) -> list[tuple[int, int]]:
    """Return the (start, end) of each word and mark."""
    return [match.span() for match in re.finditer(r"\w+|[^\w\s]", text)]

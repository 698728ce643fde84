"""Cutting documents into passages: a table of chunkers and the one function that runs them."""

from workbench.ingestion.chunking.span import ChunkInput, Span, Tokens
from workbench.ingestion.chunking.table import CHUNKERS, DEFAULT_CHUNKER, Chunker, chunk, complete

__all__ = ["CHUNKERS", "DEFAULT_CHUNKER", "ChunkInput", "Chunker", "Span", "Tokens", "chunk", "complete"]

"""Chunkers, which cut documents into passages."""

from workbench.ingestion.chunking.chunkers import CHUNKERS, DEFAULT_CHUNKER, Chunker, chunk, complete_options, cut_spans
from workbench.ingestion.chunking.finish import Spans
from workbench.ingestion.chunking.spans import ChunkInput, CutPassage, Tokenize

__all__ = [
    "CHUNKERS",
    "DEFAULT_CHUNKER",
    "ChunkInput",
    "Chunker",
    "CutPassage",
    "Spans",
    "Tokenize",
    "chunk",
    "complete_options",
    "cut_spans",
]

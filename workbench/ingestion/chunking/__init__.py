"""Chunkers, which cut documents into passages."""

from workbench.ingestion.chunking.chunkers import CHUNKERS, DEFAULT_CHUNKER, Spans, chunk, complete_options, cut_spans
from workbench.ingestion.chunking.spans import ChunkInput, CutPassage, Piece, Tokenize
from workbench.ingestion.chunking.task import CuttingTask

__all__ = [
    "CHUNKERS",
    "DEFAULT_CHUNKER",
    "ChunkInput",
    "CutPassage",
    "CuttingTask",
    "Piece",
    "Spans",
    "Tokenize",
    "chunk",
    "complete_options",
    "cut_spans",
]

"""The steps of a search whose time is kept, declared once and in the order in which they happen."""

from __future__ import annotations

from enum import StrEnum

TOTAL = "total"  # beside the steps in ``timings_ms``: the whole search; the steps need not add up to it


class TimedStep(StrEnum):
    """A step that ``Trace.stage`` times; its value is the key in ``timings_ms``."""

    LLM = "llm"
    EMBED = "embed"
    VECTOR = "vector"
    SPELLING = "spelling"
    KEYWORD = "keyword"
    FRAMEWORK = "framework"
    FUSE = "fuse"
    WIDEN = "widen"
    RERANK = "rerank"
    CLUSTER = "cluster"
    LEARNED = "learned"
    CROSS_ENCODER = "cross-encoder"
    MMR = "mmr"
    FETCH = "fetch"
    EVIDENCE = "evidence"
    EXTRACT = "extract"

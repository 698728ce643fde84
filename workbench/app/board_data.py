"""A comparison as the board draws it: plain JSON values, nothing that the browser would have to work out again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from workbench.app.excerpt import excerpt, plain, stems_of
from workbench.app.judging import place_key
from workbench.app.looks import look
from workbench.retrieval.strategies import STRATEGIES
from workbench.types import Comparison, Passage, SearchResult

STAGES = ("embed", "vector", "keyword", "fuse", "rerank", "fetch")  # in the order they happen
_LEG_NAMES = {"vector": "Meaning", "keyword": "Words", "late": "Word by word"}
_LEG_UNITS = {"vector": "cosine", "keyword": "BM25", "late": "MaxSim"}


def board_data(comparison: Comparison) -> dict[str, Any]:
    """Return columns of hits and how far they agree; ``judging`` and ``serving`` are a page's to fill in."""
    ranks = {
        name: {passage.passage_id: passage.rank for passage in result} for name, result in comparison.strategies.items()
    }
    columns = [_column(comparison, name, result, ranks) for name, result in comparison.strategies.items()]
    return {
        "columns": columns,
        "agreement": _agreement(comparison),
        "judging": None,
        "serving": None,
        "slowest": max((column["total"] for column in columns), default=0.0),
    }


def _column(
    comparison: Comparison, name: str, result: SearchResult, ranks: Mapping[str, Mapping[str, int]]
) -> dict[str, Any]:
    seen = look(name)
    return {
        "name": name,
        "title": title_of(name),
        "summary": STRATEGIES[name].summary if name in STRATEGIES else "",
        "hue": seen.hue,
        "shape": seen.shape,
        "dash": seen.dash,
        "total": round(result.timings_ms.get("total", 0.0), 1),
        "stages": _stages(result),
        "notes": [*result.degraded, *result.scope.notes],
        "hits": [_hit(comparison.query, passage, name, ranks) for passage in result],
    }


def _stages(result: SearchResult) -> list[dict[str, Any]]:
    """Return the time of each stage, in milliseconds; what no stage claims is "other"."""
    known = [name for name in STAGES if name in result.timings_ms]
    known += [name for name in result.timings_ms if name not in (*STAGES, "total")]
    stages = [{"name": name, "ms": round(result.timings_ms[name], 2)} for name in known]
    rest = result.timings_ms.get("total", 0.0) - sum(stage["ms"] for stage in stages)
    return [*stages, {"name": "other", "ms": round(max(0.0, rest), 2)}]


def _hit(query: str, passage: Passage, name: str, ranks: Mapping[str, Mapping[str, int]]) -> dict[str, Any]:
    language = str(passage.metadata.get("language", "english"))
    headings = [str(heading) for heading in passage.metadata.get("heading_path", ())]
    text = plain(passage.text, [passage.document_title, *headings])
    return {
        "id": passage.passage_id,
        "key": place_key(passage),
        "document": passage.document_id,
        "start": passage.start,
        "end": passage.end,
        "rank": passage.rank,
        "score": f"{passage.score:.3f}",
        "share": round(passage.score, 4),
        "title": passage.document_title,
        "place": place_of(passage, headings) or passage.path or passage.url or "",
        "path": passage.path or passage.url or "",
        "text": excerpt(text, stems_of(query, language), language),
        "others": [_other(passage, other, ranks[other]) for other in ranks if other != name],
        "legs": [_leg(leg, value) for leg, value in passage.attribution.items()],
    }


def _other(passage: Passage, other: str, found: Mapping[str, int]) -> dict[str, Any]:
    """Say where another column has the passage; ``moved`` is its rank there against here, positive = better there."""
    rank = found.get(passage.passage_id)
    return {
        "name": other,
        "title": title_of(other),
        "hue": look(other).hue,
        "shape": look(other).shape,
        "rank": rank,
        "moved": None if rank is None else passage.rank - rank,
    }


def _leg(name: str, leg: Any) -> dict[str, Any]:
    return {
        "name": _LEG_NAMES.get(name, name),
        "unit": _LEG_UNITS.get(name, ""),
        "score": f"{leg.score:.3f}",
        "rank": leg.rank,
        "adds": f"{leg.contribution:.3f}",
    }


def _agreement(comparison: Comparison) -> dict[str, Any]:
    return {measure: dict(pairs) for measure, pairs in comparison.agreement.items()}


def place_of(passage: Passage, headings: Sequence[str]) -> str:
    """Return where in its document a passage stands: heading path and page, where there are some."""
    path = list(headings)
    if path and path[0].strip().lower() == passage.document_title.strip().lower():
        path = path[1:]
    page = passage.metadata.get("page")
    return " › ".join([*path, *([f"p. {page}"] if page else [])])


def title_of(strategy: str) -> str:
    """Return a strategy's name for people."""
    return STRATEGIES[strategy].title if strategy in STRATEGIES else strategy

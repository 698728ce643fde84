"""A comparison as the board draws it: plain JSON values, nothing that the browser would have to work out again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from string import ascii_uppercase
from typing import Any

from workbench.app.card_text import card_text
from workbench.app.joining import Joins, joins
from workbench.app.judging import place_key
from workbench.app.likeness import Likes
from workbench.app.looks import look
from workbench.retrieval.strategies import STRATEGIES
from workbench.types import Comparison, Passage, SearchResult

STAGES = ("embed", "vector", "keyword", "fuse", "rerank", "fetch")  # in the order they happen
_LEG_NAMES = {"vector": "Meaning", "keyword": "Words", "late": "Word by word"}
_LEG_UNITS = {"vector": "cosine", "keyword": "BM25", "late": "MaxSim"}


@dataclass(frozen=True, slots=True)
class _Whole:
    """What a hit is told of the comparison it stands in: ``ranks`` by column and joined text."""

    query: str
    ranks: Mapping[str, Mapping[str, int]]
    joined: Joins
    likes: Likes


def board_data(comparison: Comparison, likes: Likes | None = None) -> dict[str, Any]:
    """Return columns of hits and how far they agree; ``judging`` and ``serving`` are a page's to fill in.

    ``likes`` are the words to underline.
    """
    joined = joins(comparison)
    ranks: dict[str, dict[str, int]] = {name: {} for name in comparison.strategies}
    for name, result in comparison.strategies.items():
        for passage in result:
            ranks[name].setdefault(joined[name, passage.passage_id], passage.rank)
    letters = index_letters(comparison)
    whole = _Whole(comparison.query, ranks, joined, likes or {})
    columns = [_column(whole, name, result) for name, result in comparison.strategies.items()]
    for column in columns:
        column["letter"] = letters.get(column["index"], "")
        for hit in column["hits"]:
            for other in hit["others"]:
                other["letter"] = letters.get(comparison.strategies[other["name"]].index, "")
    return {
        "columns": columns,
        "by_document": bool(letters),  # how far the columns agree, then
        "agreement": _agreement(comparison),
        "judging": None,
        "serving": None,
        "slowest": max((column["total"] for column in columns), default=0.0),
    }


def _column(whole: _Whole, name: str, result: SearchResult) -> dict[str, Any]:
    strategy, _, own_index = name.partition("@")
    seen = look(strategy)
    return {
        "name": name,
        "title": title_of(name),
        "strategy": title_of(strategy),
        "index": result.index,
        "cut": own_index,
        "summary": STRATEGIES[strategy].summary if strategy in STRATEGIES else "",
        "hue": seen.hue,
        "shape": seen.shape,
        "dash": seen.dash,
        "total": round(result.timings_ms.get("total", 0.0), 1),
        "stages": _stages(result),
        "notes": [*result.degraded, *result.scope.notes],
        "hits": [_hit(whole, name, passage) for passage in result],
    }


def _stages(result: SearchResult) -> list[dict[str, Any]]:
    """Return the time of each stage, in milliseconds; what no stage claims is "other"."""
    known = [name for name in STAGES if name in result.timings_ms]
    known += [name for name in result.timings_ms if name not in (*STAGES, "total")]
    stages = [{"name": name, "ms": round(result.timings_ms[name], 2)} for name in known]
    rest = result.timings_ms.get("total", 0.0) - sum(stage["ms"] for stage in stages)
    return [*stages, {"name": "other", "ms": round(max(0.0, rest), 2)}]


def _hit(whole: _Whole, name: str, passage: Passage) -> dict[str, Any]:
    joined, place = whole.joined[name, passage.passage_id], place_key(passage)
    language = str(passage.metadata.get("language", "english"))
    headings = [str(heading) for heading in passage.metadata.get("heading_path", ())]
    hidden = [passage.document_title, *headings]
    return {
        "id": joined,
        "key": place,
        "document": passage.document_id,
        "start": passage.start,
        "end": passage.end,
        "rank": passage.rank,
        "score": f"{passage.score:.3f}",
        "share": round(passage.score, 4),
        "title": passage.document_title,
        "place": place_of(passage, headings) or passage.path or passage.url or "",
        "path": passage.path or passage.url or "",
        "text": card_text(whole.query, passage.text, hidden, language, whole.likes.get(place)),
        "others": [_other(passage, joined, other, ranks) for other, ranks in whole.ranks.items() if other != name],
        "legs": [_leg(leg, value) for leg, value in passage.attribution.items()],
    }


def _other(passage: Passage, joined: str, other: str, found: Mapping[str, int]) -> dict[str, Any]:
    """Say where another column has the same text; ``moved`` is its rank there against here, positive = better there."""
    rank, seen = found.get(joined), look(other.partition("@")[0])
    return {
        "name": other,
        "title": title_of(other),
        "hue": seen.hue,
        "shape": seen.shape,
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


def index_letters(comparison: Comparison) -> dict[str, str]:
    """Return index -> A, B, C, D where the columns search several; nothing where it is one."""
    names = list(dict.fromkeys(result.index for result in comparison.strategies.values()))
    return dict(zip(names, ascii_uppercase, strict=False)) if len(names) > 1 else {}


def title_of(name: str) -> str:
    """Return the name for people of a strategy, or of "strategy@index"."""
    strategy, _, index = name.partition("@")
    title = STRATEGIES[strategy].title if strategy in STRATEGIES else strategy
    return f"{title} on {index}" if index else title

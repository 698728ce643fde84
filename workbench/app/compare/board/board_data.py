"""A comparison as the board draws it: plain JSON values, nothing that the browser would have to work out again."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from string import ascii_uppercase
from typing import TYPE_CHECKING

from workbench.app.compare.likeness import Likes
from workbench.app.compare.same_text import Joins, joins, place_key
from workbench.app.widgets.card_text import card_text
from workbench.app.widgets.looks import look
from workbench.app.widgets.names import place_of, title_of
from workbench.errors import ScopeError, WorkbenchError
from workbench.languages import language_title
from workbench.retrieval.strategies import STRATEGIES
from workbench.types import Comparison, JsonObject, JsonValue, Passage, SearchResult
from workbench.types.results import TOTAL, TimedStep

if TYPE_CHECKING:
    from workbench.workbench import Workbench

OTHER = "other"  # the time of a search that no step claims
MOST_SCOPES = 200  # sources offered in a column that wants a scope


@dataclass(frozen=True, slots=True)
class _Whole:
    """The comparison around a hit; ``ranks`` are by column and joined text, ``letters`` by column."""

    query: str
    ranks: Mapping[str, Mapping[str, int]]
    joined: Joins
    likes: Likes
    spoken: Collection[str]
    letters: Mapping[str, str]
    headers: Mapping[str, str]
    texts: dict[tuple[str, str], list[JsonValue]] = field(default_factory=dict)

    def text(self, passage: Passage) -> list[JsonValue]:
        """Return what the card of a passage shows, worked out once for all columns that have it."""
        key = passage.passage_id, passage.text
        if key not in self.texts:
            self.texts[key] = card_text(
                self.query,
                passage.text,
                [passage.document_title, *passage.headings],
                str(passage.metadata.get("language", "english")),
                self.likes.get(place_key(passage)),
                str(passage.metadata.get("document_type", "")),
                self.headers.get(place_key(passage), ""),
            )
        return self.texts[key]


def board_data(
    comparison: Comparison,
    likes: Likes | None = None,
    spoken: Collection[str] = (),
    headers: Mapping[str, str] | None = None,
) -> JsonObject:
    """Return columns of hits and how far they agree; ``judging`` and ``serving`` are a page's to fill in.

    ``likes`` are the words to underline, ``spoken`` the indexes of several languages, whose hits say theirs,
    ``headers`` those of tables that begin before a hit, by its place.
    """
    joined = joins(comparison)
    ranks: dict[str, dict[str, int]] = {name: {} for name in comparison.strategies}
    for name, result in comparison.strategies.items():
        for passage in result:
            ranks[name].setdefault(joined[name, passage.passage_id], passage.rank)
    letters = index_letters(comparison)
    of_column = {name: letters.get(result.index, "") for name, result in comparison.strategies.items()}
    whole = _Whole(comparison.query, ranks, joined, likes or {}, spoken, of_column, headers or {})
    return {
        "columns": [_column(whole, name, result) for name, result in comparison.strategies.items()],
        "by_document": bool(letters),  # how far the columns agree, then
        "agreement": _agreement(comparison),
        "stages": [*TimedStep, OTHER],
        "judging": None,
        "serving": None,
        "slowest": max(map(_total, comparison.strategies.values()), default=0.0),
    }


def failures_data(workbench: Workbench, failures: Mapping[str, WorkbenchError]) -> list[JsonObject]:
    """Return the columns that failed, each with its sentence and, where it wants a scope, the scopes to choose from."""
    return [_failure(workbench, name, error) for name, error in failures.items()]


def _failure(workbench: Workbench, name: str, error: WorkbenchError) -> JsonObject:
    strategy = name.partition("@")[0]
    appearance = look(strategy)
    wants_scope = isinstance(error, ScopeError) and strategy in STRATEGIES and STRATEGIES[strategy].needs_scope
    projects = [{"id": project.id, "title": project.title} for project in workbench.projects.list()]
    sources = [{"id": source.id, "title": source.title} for source in workbench.sources.list()[:MOST_SCOPES]]
    return {
        "name": name,
        "strategy": strategy,
        "title": title_of(name),
        "hue": appearance.hue,
        "shape": appearance.shape,
        "text": str(error),
        "scopes": {"project": projects, "source": sources} if wants_scope else {},
    }


def _column(whole: _Whole, name: str, result: SearchResult) -> JsonObject:
    strategy, _, own_index = name.partition("@")
    appearance = look(strategy)
    return {
        "name": name,
        "title": title_of(name),
        "strategy": title_of(strategy),
        "index": result.index,
        "cut": own_index,
        "summary": STRATEGIES[strategy].summary if strategy in STRATEGIES else "",
        "hue": appearance.hue,
        "shape": appearance.shape,
        "dash": appearance.dash,
        "total": _total(result),
        "stages": _stages(result),
        "notes": list(result.remarks),
        "close": result.evidence.close,
        "hits": [_hit(whole, name, passage, spoken=result.index in whole.spoken) for passage in result],
        "letter": whole.letters[name],
    }


def _stages(result: SearchResult) -> list[JsonObject]:
    """Return the time of each step, in milliseconds; the time that no step claims is "other"."""
    times = {step.value: round(result.timings_ms[step], 2) for step in TimedStep if step in result.timings_ms}
    rest = result.timings_ms.get(TOTAL, 0.0) - sum(times.values())
    return [{"name": name, "ms": ms} for name, ms in (*times.items(), (OTHER, round(max(0.0, rest), 2)))]


def _total(result: SearchResult) -> float:
    """Return the milliseconds of a whole search."""
    return round(result.timings_ms.get(TOTAL, 0.0), 1)


def _hit(whole: _Whole, name: str, passage: Passage, *, spoken: bool) -> JsonObject:
    joined, place = whole.joined[name, passage.passage_id], place_key(passage)
    language = str(passage.metadata.get("language", "english"))
    headings = passage.headings
    said = place_of(passage, headings) or passage.path or passage.url or ""
    return {
        "id": joined,
        "passage": passage.passage_id,
        "key": place,
        "document": passage.document_id,
        "start": passage.start,
        "end": passage.end,
        "rank": passage.rank,
        "score": f"{passage.score:.3f}",
        "share": round(passage.score, 4),
        "title": passage.document_title,
        "place": " · ".join(part for part in (said, language_title(language) if spoken else "") if part),
        "path": passage.path or passage.url or "",
        "text": whole.text(passage),
        "others": [_other(whole, passage, joined, other) for other in whole.ranks if other != name],
    }


def _other(whole: _Whole, passage: Passage, joined: str, other: str) -> JsonObject:
    """Say where another column has the same text; ``moved`` is its rank there against here, positive = better there."""
    rank, appearance = whole.ranks[other].get(joined), look(other.partition("@")[0])
    return {
        "name": other,
        "title": title_of(other),
        "hue": appearance.hue,
        "shape": appearance.shape,
        "rank": rank,
        "moved": None if rank is None else passage.rank - rank,
        "letter": whole.letters[other],
    }


def _agreement(comparison: Comparison) -> JsonObject:
    return {measure: dict(pairs) for measure, pairs in comparison.agreement.items()}


def index_letters(comparison: Comparison) -> dict[str, str]:
    """Return index -> A, B, C, D where the columns search several; nothing where it is one."""
    names = list(dict.fromkeys(result.index for result in comparison.strategies.values()))
    return dict(zip(names, ascii_uppercase, strict=False)) if len(names) > 1 else {}

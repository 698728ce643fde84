"""The board of a comparison: its columns, and the user's actions in them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from string import ascii_uppercase
from typing import TYPE_CHECKING

import streamlit as st

from workbench.app.compare.columns import ComparedHits, SearchSettings
from workbench.app.compare.judging import QuestionJudging, read_marks, show_progress
from workbench.app.compare.matches import Joins, Underlines, find_same_places, join_hits, place_key
from workbench.app.compare.why import open_why
from workbench.app.state import address
from workbench.app.widgets.card import render_card
from workbench.app.widgets.looks import escape_markdown, format_place, get_look, strategy_title
from workbench.app.widgets.notices import load_component
from workbench.app.widgets.promoting import (
    LiveStrategy,
    PromotionCandidate,
    find_joint_evidence,
    find_live_columns,
    list_places,
    open_promotion,
)
from workbench.app.widgets.reader import open_document
from workbench.errors import ScopeError, WorkbenchError
from workbench.retrieval.strategies import STRATEGIES
from workbench.services.search import split_strategy
from workbench.text import language_title
from workbench.types import TOTAL, Comparison, JsonObject, JsonValue, Passage, SearchResult, TimedStep

if TYPE_CHECKING:
    from workbench.workbench import Workbench

# The data of the board

OTHER_STAGE = "other"  # time of a search outside the measured steps
MAX_SCOPES_OFFERED = 200  # sources offered in a column whose strategy needs a scope


@dataclass(frozen=True, slots=True)
class _BoardContext:
    """What the data of a hit depends on beyond the hit.

    Attributes:
        query: The question.
        ranks: Rank by column and joined text.
        joined: What hits of the same text have in common.
        likes: Words to underline, by the place of a hit.
        spoken: Indexes of several languages, whose hits show theirs.
        letters: Letter of its index, by column.
        headers: Headers of tables that start before a hit, by its place.
        texts: Cache of ``text``.
    """

    query: str
    ranks: Mapping[str, Mapping[str, int]]
    joined: Joins
    likes: Underlines
    spoken: Collection[str]
    letters: Mapping[str, str]
    headers: Mapping[str, str]
    texts: dict[tuple[str, str], list[JsonValue]] = field(default_factory=dict)

    def text(self, passage: Passage) -> list[JsonValue]:
        """Return the text of a passage's card, computed once for all columns that have it."""
        key = passage.passage_id, passage.text
        if key not in self.texts:
            self.texts[key] = render_card(
                self.query,
                passage.text,
                [passage.document_title, *passage.headings],
                str(passage.metadata.get("language", "english")),
                self.likes.get(place_key(passage)),
                str(passage.metadata.get("document_type", "")),
                self.headers.get(place_key(passage), ""),
            )
        return self.texts[key]


def build_board_data(
    comparison: Comparison,
    likes: Underlines | None = None,
    spoken: Collection[str] = (),
    headers: Mapping[str, str] | None = None,
) -> JsonObject:
    """Return the columns and their agreement; the page fills in ``judging`` and ``serving``.

    Args:
        comparison: The comparison.
        likes: Words to underline, by the place of a hit.
        spoken: Indexes of several languages, whose hits show theirs.
        headers: Headers of tables that start before a hit, by its place.
    """
    joined = join_hits(comparison)
    ranks: dict[str, dict[str, int]] = {name: {} for name in comparison.strategies}
    for name, result in comparison.strategies.items():
        for passage in result:
            ranks[name].setdefault(joined[name, passage.passage_id], passage.rank)
    letters = assign_index_letters(comparison)
    of_column = {name: letters.get(result.index, "") for name, result in comparison.strategies.items()}
    whole = _BoardContext(comparison.query, ranks, joined, likes or {}, spoken, of_column, headers or {})
    return {
        "columns": [_build_column(whole, name, result) for name, result in comparison.strategies.items()],
        "by_document": bool(letters),  # the unit of the agreement
        "agreement": _copy_agreement(comparison),
        "stages": [*TimedStep, OTHER_STAGE],
        "judging": None,
        "serving": None,
        "slowest": max(map(_total_ms, comparison.strategies.values()), default=0.0),
    }


def build_failures_data(wb: Workbench, failures: Mapping[str, WorkbenchError]) -> list[JsonObject]:
    """Return the columns that failed, with the error and, if the strategy needs a scope, the scopes to choose from."""
    return [_build_failure(wb, name, error) for name, error in failures.items()]


def _build_failure(wb: Workbench, name: str, error: WorkbenchError) -> JsonObject:
    strategy = name.partition("@")[0]
    appearance = get_look(strategy)
    wants_scope = isinstance(error, ScopeError) and strategy in STRATEGIES and STRATEGIES[strategy].needs_scope
    projects = [{"id": project.id, "title": project.title} for project in wb.projects.list()]
    sources = [{"id": source.id, "title": source.title} for source in wb.sources.list()[:MAX_SCOPES_OFFERED]]
    return {
        "name": name,
        "strategy": strategy,
        "title": strategy_title(name),
        "hue": appearance.hue,
        "shape": appearance.shape,
        "text": str(error),
        "scopes": {"project": projects, "source": sources} if wants_scope else {},
    }


def _build_column(whole: _BoardContext, name: str, result: SearchResult) -> JsonObject:
    strategy, _, own_index = name.partition("@")
    appearance = get_look(strategy)
    return {
        "name": name,
        "title": strategy_title(name),
        "strategy": strategy_title(strategy),
        "index": result.index,
        "cut": own_index,
        "summary": STRATEGIES[strategy].summary if strategy in STRATEGIES else "",
        "hue": appearance.hue,
        "shape": appearance.shape,
        "dash": appearance.dash,
        "total": _total_ms(result),
        "stages": _list_stages(result),
        "notes": list(result.remarks),
        "close": result.evidence.close,
        "hits": [_build_hit(whole, name, passage, spoken=result.index in whole.spoken) for passage in result],
        "letter": whole.letters[name],
    }


def _list_stages(result: SearchResult) -> list[JsonObject]:
    """Return the time of each step in milliseconds; the rest is "other"."""
    times = {step.value: round(result.timings_ms[step], 2) for step in TimedStep if step in result.timings_ms}
    rest = result.timings_ms.get(TOTAL, 0.0) - sum(times.values())
    return [{"name": name, "ms": ms} for name, ms in (*times.items(), (OTHER_STAGE, round(max(0.0, rest), 2)))]


def _total_ms(result: SearchResult) -> float:
    """Return the time of a whole search in milliseconds."""
    return round(result.timings_ms.get(TOTAL, 0.0), 1)


def _build_hit(whole: _BoardContext, name: str, passage: Passage, *, spoken: bool) -> JsonObject:
    joined, place = whole.joined[name, passage.passage_id], place_key(passage)
    language = str(passage.metadata.get("language", "english"))
    headings = passage.headings
    where = format_place(passage, headings) or passage.path or passage.url or ""
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
        "place": " · ".join(part for part in (where, language_title(language) if spoken else "") if part),
        "path": passage.path or passage.url or "",
        "text": whole.text(passage),
        "others": [_build_other(whole, passage, joined, other) for other in whole.ranks if other != name],
    }


def _build_other(whole: _BoardContext, passage: Passage, joined: str, other: str) -> JsonObject:
    """Return the rank of the same text in another column; ``moved`` is positive if it ranks better there."""
    rank, appearance = whole.ranks[other].get(joined), get_look(other.partition("@")[0])
    return {
        "name": other,
        "title": strategy_title(other),
        "hue": appearance.hue,
        "shape": appearance.shape,
        "rank": rank,
        "moved": None if rank is None else passage.rank - rank,
        "letter": whole.letters[other],
    }


def _copy_agreement(comparison: Comparison) -> JsonObject:
    return {measure: dict(pairs) for measure, pairs in comparison.agreement.items()}


def assign_index_letters(comparison: Comparison) -> dict[str, str]:
    """Return index -> A, B, C, D if the columns search several indexes, else {}."""
    names = list(dict.fromkeys(result.index for result in comparison.strategies.values()))
    return dict(zip(names, ascii_uppercase, strict=False)) if len(names) > 1 else {}


_STORED_MARKS_KEY = "marks_kept"  # number of the last mark of this session that was stored
_FAILURE_KEY = "marks_failed"


@st.fragment
def show_board(
    wb: Workbench, hits: ComparedHits, asking: SearchSettings, serving: LiveStrategy, judging: QuestionJudging | None
) -> None:
    """Show the columns; judging redraws only this part of the page."""
    if _FAILURE_KEY in st.session_state:
        st.toast(escape_markdown(st.session_state.pop(_FAILURE_KEY)))
    with st.container():  # even if empty: the board keeps its position, and thereby its state in the browser
        if judging is not None:
            show_progress(judging)
    comparison = hits.comparison
    data = build_board_data(comparison, hits.likes, _find_multilingual_indexes(wb, comparison), hits.headers) | {
        "failures": build_failures_data(wb, hits.failures)
    }
    if judging is not None:
        grades = _load_grades(judging)
        data["judging"] = {
            "about": judging.about,
            "title": judging.test_set.title,
            "grades": grades,
            "same": find_same_places(comparison, grades),
            "kept": st.session_state.get(_STORED_MARKS_KEY, 0),
        }

    columns = find_live_columns(serving, comparison, asking.parameters)
    data["serving"] = {"columns": columns, "badge": serving.badge, "reason": serving.reason}

    def keep() -> None:
        _store_marks(comparison, judging)

    result = load_component("compare/board")(
        key="board", data=data, on_open_change=_ignore_event, on_marks_change=keep, on_promote_change=_ignore_event,
        on_scope_change=_ignore_event, on_reset_change=_ignore_event, on_why_change=_ignore_event,
    )  # fmt: skip
    _apply_remedy(result.scope, result.reset)
    if result.open:
        address.put(cut=result.open["cut"])
        open_document(result.open["document"], int(result.open["start"]), int(result.open["end"]))
        st.rerun()
    if result.why:
        open_why(str(result.why["column"]), str(result.why["passage"]))
        st.rerun()
    if result.promote and result.promote in comparison.strategies and result.promote not in columns:
        _open_promotion(wb, asking, str(result.promote), serving)


def _find_multilingual_indexes(wb: Workbench, comparison: Comparison) -> set[str]:
    """Return the compared indexes that hold passages in several languages."""
    names = {result.index for result in comparison.strategies.values()}
    return {name for name in names if len(wb.indexes.languages(name)) > 1}


def _open_promotion(wb: Workbench, asking: SearchSettings, name: str, serving: LiveStrategy) -> None:
    """Open the dialog that promotes a column."""
    strategy, own_index = split_strategy(name, None)
    parameters = asking.parameters.get(name, asking.parameters.get(strategy)) or {}
    candidate = PromotionCandidate(strategy, parameters, own_index or asking.index)
    open_promotion(wb, candidate, list_places(wb, asking.scope), [find_joint_evidence(wb, candidate, serving)])


def _apply_remedy(scope: Mapping[str, str] | None, reset: str | None) -> None:
    """Apply the scope, or remove the strategy, that the user chose in a failed column."""
    if scope and scope.get("kind") in ("project", "source"):
        address.put(**{str(scope["kind"]): str(scope["id"])})
        st.rerun()
    if reset:
        names = [name for name in address.get_all("s") if name != reset]
        address.put(s=names or None, set=[item for item in address.get_all("set") if not item.startswith(f"{reset}.")])
        st.rerun()


def _load_grades(judging: QuestionJudging) -> dict[str, int]:
    try:
        return judging.grades()
    except WorkbenchError:  # reported by _keep, and by the control on the next visit
        return {}


def _store_marks(comparison: Comparison, judging: QuestionJudging | None) -> None:
    """Store the new marks of the browser; after a failure the board shows what is stored."""
    marks = read_marks(st.session_state.get("board"), st.session_state.get(_STORED_MARKS_KEY, 0))
    if not marks or judging is None:
        return
    try:
        judging.keep(comparison, marks)
    except WorkbenchError as error:
        st.session_state[_FAILURE_KEY] = str(error)  # a callback cannot show anything
    st.session_state[_STORED_MARKS_KEY] = max(number for number, _, _ in marks)


def _ignore_event() -> None:
    """Do nothing: Streamlit requires a callback, and the trigger is read from the result."""

"""The tab Why of the inspector: the score of a passage, and the pipeline trace of an expected document.

In the URL, ``why`` is the passage, ``by`` the column and ``missed`` the expected document.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import streamlit as st

from workbench.app.compare.columns import EXPECTED_DOCUMENT, ComparedHits, SearchSettings, open_passage
from workbench.app.compare.matches import UNDERLINE_THRESHOLDS, place_key
from workbench.app.state import address
from workbench.app.state.shared import change_count, note_change
from workbench.app.widgets.elements import TextRun, to_json
from workbench.app.widgets.looks import strategy_look
from workbench.app.widgets.markdown import parse_markdown
from workbench.app.widgets.notices import mount
from workbench.app.widgets.reader import RENDERED, choose_form
from workbench.app.widgets.tables import add_table_header, shift_back
from workbench.errors import ModelError, NotFound, WorkbenchError
from workbench.marking import FUNCTION_WORDS, find_own_word, match_spans
from workbench.retrieval.legs import leg_kind
from workbench.retrieval.strategies import DEFAULT_STRATEGY, STRATEGIES, split_strategy
from workbench.types import Span, preference_text, to_plain

if TYPE_CHECKING:
    from workbench.retrieval.explain import Explanation, QuestionWord, WordComparison
    from workbench.types import Comparison, JsonObject, JsonValue, Passage, SearchResult
    from workbench.workbench import Workbench

# Question and passage as marked pieces

FULL_STRENGTH_SIMILARITY = 0.75  # cosine similarity drawn at full strength

QuestionPiece = tuple[str, int | None]  # text, and the position of the word it is
TextPiece = tuple[str, bool, int, dict[str, float]]  # text, exact match, underline 0 to 3, word -> 0..1


def split_question(compared: WordComparison) -> list[QuestionPiece]:
    """Split the question into pieces; significant words have their position in ``compared.words``."""
    pieces: list[QuestionPiece] = []
    at = 0
    for place, word in enumerate(compared.words):
        if is_significant(compared, word):
            pieces += [(compared.question[at : word.start], None), (compared.question[word.start : word.end], place)]
            at = word.end
    return [piece for piece in (*pieces, (compared.question[at:], None)) if piece[0]]


def is_significant(compared: WordComparison, word: QuestionWord) -> bool:
    """Return whether a question word is significant: it has weight and is not a function word."""
    return word.weight > 0 and compared.question[word.start : word.end].lower() not in FUNCTION_WORDS


def split_text(compared: WordComparison) -> tuple[list[TextPiece], list[TextPiece]]:
    """Return the title and headings, and the passage, split into pieces."""
    matched = match_spans(compared.question, compared.text, compared.language)
    likes = _similarities_by_span(compared)
    context = len(compared.context)
    return (
        _split_at_marks(compared.text, (0, len(compared.context.rstrip())), matched, likes),
        _split_at_marks(compared.text, (context, len(compared.text)), matched, likes),
    )


def render_passage(text: str, compared: WordComparison | None, table_header: str = "") -> list[JsonValue]:
    """Return a Markdown passage as elements, with its texts split as by ``split_text``.

    Args:
        text: The passage.
        compared: The token matches; None if there are none.
        table_header: Markdown header of a table that starts before the passage.
    """
    whole, lead = add_table_header(text, table_header)
    blocks = shift_back(parse_markdown(whole).blocks, lead) if lead else parse_markdown(text).blocks
    if compared is None:
        return to_json(blocks, lambda run: [run.text])
    matched = match_spans(compared.question, compared.text, compared.language)
    likes, context = _similarities_by_span(compared), len(compared.context)

    def pieces(run: TextRun) -> list[TextPiece]:
        if run.start == run.end or not run.text:
            return [(run.text, False, 0, {})]
        cut = _split_at_marks(compared.text, (context + run.start, context + run.end), matched, likes)
        if run.is_exact:  # line ends in a code span are shown as spaces
            return cut if len(cut) > 1 else [(run.text, *cut[0][1:])]
        words = {word: value for piece in cut for word, value in piece[3].items()}
        return [(run.text, any(piece[1] for piece in cut), max(piece[2] for piece in cut), words)]

    return to_json(blocks, pieces)


def match_strength(similarity: float) -> float:
    """Return the opacity of a match, 0..1."""
    least = UNDERLINE_THRESHOLDS[0]
    return round(min(1.0, max(0.1, (similarity - least) / (FULL_STRENGTH_SIMILARITY - least))), 2)


def _similarities_by_span(compared: WordComparison) -> dict[Span, dict[int, float]]:
    """Return the matched spans of the text, with the similarity to each significant question word."""
    likes: dict[Span, dict[int, float]] = {}
    for place, word in enumerate(compared.words):
        if is_significant(compared, word):
            for like in word.likes:
                if compared.text[like.start : like.end].lower() not in FUNCTION_WORDS:
                    likes.setdefault((like.start, like.end), {})[place] = like.similarity
    return likes


def _split_at_marks(
    text: str, whole: Span, matched: Iterable[Span], likes: dict[Span, dict[int, float]]
) -> list[TextPiece]:
    start, end = whole
    marks = [span for span in (*matched, *likes) if span[0] < end and span[1] > start]
    edges = sorted({start, end, *(min(end, max(start, edge)) for span in marks for edge in span)})
    matched = list(matched)
    pieces: list[TextPiece] = []
    for first, last in pairwise(edges):
        is_matched = any(a <= first and last <= b for a, b in matched)
        alike = next((by_word for (a, b), by_word in likes.items() if a <= first and last <= b), {})
        underline = bisect_right(UNDERLINE_THRESHOLDS, max(alike.values(), default=0.0))
        strengths = {str(word): match_strength(value) for word, value in alike.items()}
        pieces.append((text[first:last], is_matched, underline, strengths))
    return pieces


# The data of the panel

NEIGHBOURS_SHOWN = 2  # hits above and below the explained one that are shown for comparison


def build_frame_data(comparison: Comparison, column: str) -> JsonObject:
    """Return the part of the data that needs no passage, such as the columns of the same index."""
    own = comparison.strategies.get(column)
    names = [name for name, result in comparison.strategies.items() if own and result.index == own.index] or [column]
    return {
        "strategy": strategy_look(column),
        "columns": [strategy_look(name) | {"own": name == column} for name in names],
        "cut": column.partition("@")[2],
        "error": "",
        "expected": None,
    }


def build_panel_data(
    why: Explanation,
    compared: WordComparison | None,
    column: str,
    neighbours: SearchResult | None,
    document_type: str = "text",
    table_header: str = "",
) -> JsonObject:
    """Return the data of a passage.

    Args:
        why: The explanation.
        compared: The token matches; None if the index has no token vectors.
        column: Name of the column.
        neighbours: Hits of the column, shown for comparison.
        document_type: Markdown types are rendered.
        table_header: Markdown header of a table that starts before the passage.
    """
    from workbench.retrieval.explain import IS_FOUND, IS_SHOWN_WITHIN  # imports the framework

    language = compared.language if compared else "english"
    context, text = split_text(compared) if compared else ([], [])
    return {
        "title": why.document_title,
        "document": why.document_id,
        "start": why.start,
        "end": why.end,
        "rank": why.rank,
        "score": None if why.score is None else f"{why.score:.3f}",
        "found": why.outcome in (IS_FOUND, IS_SHOWN_WITHIN),
        "reason": "" if why.outcome == IS_FOUND else why.reason,
        "steps": [step.to_dict() for step in why.steps],
        "legs": _list_legs(why),
        "bars": to_plain(_list_bars(why, neighbours)),
        "question": split_question(compared) if compared else [(why.query, None)],
        "context": context,
        "text": text or [(why.text, False, 0, {})],
        "blocks": render_passage(why.text, compared, table_header)
        if choose_form(document_type, "") == RENDERED
        else None,
        "likes": _list_matches(compared),
        "terms": [
            {
                "word": find_own_word(why.query, term.term, language),
                "times": term.frequency,
                "score": f"{term.score:.2f}",
                "share": round(term.share, 4),
            }
            for term in why.terms
        ],
        "missing": [find_own_word(why.query, term, language) for term in why.missing_terms],
        "features": _list_features(why),
        "elsewhere": _list_other_ranks(why, column),
        "notes": list(filter(None, [preference_text(why.preferring), *why.notes])),
    }


def build_expected_data(why: Explanation, where: str) -> JsonObject:
    """Return the data of an expected document, shown as a funnel."""
    return {
        "document": why.document_id,
        "passage": why.passage_id,
        "title": why.document_title,
        "where": where,
        "outcome": why.outcome,
        "reason": why.reason,
        "steps": [step.to_dict() for step in why.steps],
    }


def _list_legs(why: Explanation) -> list[JsonObject]:
    rows: list[JsonObject] = []
    parts = STRATEGIES[why.strategy].legs
    for name, leg in sorted(why.legs.items(), key=lambda item: item[0] not in parts):
        kind = leg_kind(name)
        rows.append(
            {
                "title": kind.title,
                "unit": kind.unit,
                "hue": kind.hue,
                "score": f"{leg.score:.3f}",
                "rank": leg.rank,
                "of": "among candidates" if kind.reranks else "in scope",
                "adds": leg.contribution,
                "vote": round(leg.vote, 2),
                "part": name in parts,
            }
        )
    return rows


def _list_features(why: Explanation) -> list[JsonObject]:
    """Return the weighted features of a learned ranker, in the order of the explanation."""
    return [
        {
            "title": view.title,
            "why": view.why,
            "value": f"{view.value:.3f}",
            "weight": f"{view.weight:+.2f}",
            "share": round(view.share, 4),
        }
        for view in why.features
        if view.weight
    ]


def _list_bars(why: Explanation, neighbours: SearchResult | None) -> list[JsonObject]:
    """Return the scores of the explained hit and its neighbours, by rank."""
    if why.rank is None or why.score is None:
        return []
    legs = {name: leg.contribution for name, leg in why.legs.items()}
    bars = {
        why.rank: _build_bar(why.rank, why.document_title, why.score, legs) | {"passage": why.passage_id, "own": True}
    }
    for hit in neighbours or ():
        if hit.rank != why.rank and abs(hit.rank - why.rank) <= NEIGHBOURS_SHOWN:
            legs = {name: leg.contribution for name, leg in hit.attribution.items()}
            bar = _build_bar(hit.rank, hit.document_title, hit.score, legs)
            bars[hit.rank] = bar | {"passage": hit.passage_id, "own": False}
    return [bars[rank] for rank in sorted(bars)]


def _build_bar(rank: int, title: str, score: float, legs: Mapping[str, float | None]) -> JsonObject:
    parts: list[JsonObject] = [
        {"title": leg_kind(name).title, "hue": leg_kind(name).hue, "adds": round(adds, 5)}
        for name, adds in legs.items()
        if adds is not None and adds > 0
    ]
    return {"rank": rank, "title": title, "score": f"{score:.3f}", "parts": parts}


def _list_matches(compared: WordComparison | None) -> list[list[tuple[str, str]]]:
    """Return, for each question word, its matches as (word, similarity), best first, without duplicates."""
    if compared is None:
        return []
    rows: list[list[tuple[str, str]]] = []
    for word in compared.words:
        best: dict[str, tuple[str, str]] = {}
        for like in word.likes:
            spelt = compared.text[like.start : like.end]
            best.setdefault(spelt.lower(), (spelt, f"{like.similarity:.2f}"))
        rows.append(list(best.values())[:4])
    return rows


def _list_other_ranks(why: Explanation, column: str) -> list[JsonObject]:
    rows = [(column, why.rank, True), *((name, rank, False) for name, rank in why.elsewhere.items())]
    return [strategy_look(name) | {"rank": rank, "own": own} for name, rank, own in rows]


_EXPLANATIONS_KEY = "why_explained"  # this session's latest explanations
_MAX_EXPLANATIONS = 8
PASSAGE_GONE = "This passage is no longer in the index, because its document was changed or deleted."
_SKELETON_HEIGHTS = (56, 120, 190, 150)


@dataclass(frozen=True, slots=True)
class ExplainedQuestion:
    """The question, passage limit and settings of the board, and what they found."""

    question: str
    limit: int
    asking: SearchSettings
    compared: ComparedHits


def show_why(wb: Workbench, explaining: ExplainedQuestion) -> None:
    """Show why the passage of the URL has its rank; without one, only the search for an expected document."""
    place = st.empty()
    with place.container():
        st.html('<p class="wb-kind" role="status" style="margin:0">Explaining this passage with every strategy…</p>')
        for height in _SKELETON_HEIGHTS:
            st.skeleton(height=height)
    data = _build_data(wb, explaining)
    place.empty()
    if not address.get("why") and not address.get("missed"):  # the tab was opened by itself
        st.caption("Press Why on a result to see how each strategy ranked it.")
    mount(
        "compare/why",
        "why",
        data,
        open=lambda: open_passage(data, str(data["cut"])),
        expect=lambda: _store_choice("expect", "missed"),
        turn=lambda: _store_choice("turn", "why"),
        column=lambda: _store_choice("column", "by"),
    )


def _build_data(wb: Workbench, explaining: ExplainedQuestion) -> JsonObject:
    """Return the data of the panel; after a failure, with the error."""
    column = address.get("by") or next(iter(explaining.compared.comparison.strategies), DEFAULT_STRATEGY)
    passage, missed = address.get("why") or EXPECTED_DOCUMENT, address.get("missed")
    data = build_frame_data(explaining.compared.comparison, column) | {
        "passage": None if passage == EXPECTED_DOCUMENT else passage
    }
    key = (explaining.question, column, passage, explaining.limit, repr(explaining.asking), change_count())
    try:
        if data["passage"]:
            data |= _get_or_explain(key, lambda: _explain_passage(wb, explaining, column, passage))
    except NotFound as error:
        if _find_hit(explaining, passage) is None:
            return data | {"error": str(error)}
        note_change()  # refreshes the board
        return data | {"error": PASSAGE_GONE}
    except WorkbenchError as error:
        return data | {"error": str(error)}
    if missed:
        data["expected"] = _explain_expected(wb, explaining, column, missed)
    return data


def _find_hit(explaining: ExplainedQuestion, passage_id: str) -> Passage | None:
    results = explaining.compared.comparison.strategies.values()
    return next((hit for result in results for hit in result if hit.passage_id == passage_id), None)


def _explain_passage(wb: Workbench, explaining: ExplainedQuestion, column: str, passage_id: str) -> JsonObject:
    why = _explain(wb, explaining, column, passage_id=passage_id)
    try:
        compared = wb.explaining.word_by_word(explaining.question, passage_id, why.index)
    except ModelError:  # reported in the notes; the text is shown without matches
        compared = None
    neighbours = explaining.compared.comparison.strategies.get(column)
    document_type = wb.documents.get(why.document_id).document_type
    hit = _find_hit(explaining, passage_id)
    header = explaining.compared.headers.get(place_key(hit), "") if hit else ""
    return build_panel_data(why, compared, column, neighbours, document_type, header)


def _explain_expected(wb: Workbench, explaining: ExplainedQuestion, column: str, document_id: str) -> JsonObject:
    def explain() -> JsonObject:
        why = _explain(wb, explaining, column, document_id=document_id)
        document = wb.documents.get(document_id)
        return build_expected_data(why, document.path or document.url or "")

    key = (explaining.question, column, document_id, explaining.limit, repr(explaining.asking), change_count())
    try:
        return _get_or_explain(key, explain)
    except WorkbenchError as error:
        return {"document": document_id, "error": str(error)}


def _explain(
    wb: Workbench,
    explaining: ExplainedQuestion,
    column: str,
    passage_id: str | None = None,
    document_id: str | None = None,
) -> Explanation:
    strategy, own_index = split_strategy(column, None)
    asking = explaining.asking
    return wb.explain(
        explaining.question,
        passage_id,
        document_id,
        strategy=strategy,
        limit=explaining.limit,
        scope=asking.scope,
        index=own_index or asking.index,
        parameters=asking.parameters.get(column, asking.parameters.get(strategy)),
        history=asking.history,
        elsewhere=document_id is None,
    )


def _get_or_explain(key: Hashable, explain: Callable[[], JsonObject]) -> JsonObject:
    """Return this session's explanation for a key, computed if necessary; errors are not cached."""
    explanations: dict[Hashable, JsonObject] = st.session_state.setdefault(_EXPLANATIONS_KEY, {})
    if key not in explanations:
        explanations[key] = explain()
        for old in list(explanations)[:-_MAX_EXPLANATIONS]:
            del explanations[old]
    return explanations[key]


def _store_choice(trigger: str, name: str) -> None:
    """Put the expected document ("" removes it), another passage or another column in the URL."""
    state = st.session_state.get("why")
    chosen = state.get(trigger) if isinstance(state, Mapping) else None
    if isinstance(chosen, str) and (chosen or name == "missed"):
        address.put(**{name: chosen})

"""An explanation as the why panel draws it: plain JSON values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from workbench.app.compare.why.marked_texts import QuestionPiece, question_pieces, rendered_text, text_pieces
from workbench.app.widgets.looks import look
from workbench.app.widgets.names import title_of
from workbench.app.widgets.reader_data import RENDERED, form_of
from workbench.marking import own_word
from workbench.retrieval.explain.outcome import FOUND, SHOWN
from workbench.retrieval.legs import leg_kind
from workbench.retrieval.strategies import STRATEGIES
from workbench.types import plain, preference

if TYPE_CHECKING:
    from workbench.retrieval.explain.explanation import Explanation, WordByWord
    from workbench.types import Comparison, SearchResult
    from workbench.types.json import JsonObject

AROUND = 2  # hits above and below the explained one whose scores stand beside it


def frame_data(comparison: Comparison, column: str) -> JsonObject:
    """Return the frame of the panel, drawn with or without a passage: the columns of one index to choose from."""
    own = comparison.strategies.get(column)
    names = [name for name, result in comparison.strategies.items() if own and result.index == own.index] or [column]
    return {
        "strategy": _looks(column),
        "columns": [_looks(name) | {"own": name == column} for name in names],
        "cut": column.partition("@")[2],
        "error": "",
        "expected": None,
    }


def _looks(column: str) -> JsonObject:
    appearance = look(column.partition("@")[0])
    return {"name": column, "title": title_of(column), "hue": appearance.hue, "shape": appearance.shape}


def panel_data(
    why: Explanation,
    compared: WordByWord | None,
    column: str,
    neighbours: SearchResult | None,
    document_type: str = "text",
    table_header: str = "",
) -> JsonObject:
    """Return what the panel draws of a passage; ``neighbours`` are the hits that its score is shown beside.

    ``blocks`` is the passage rendered, where its document's type is one of Markdown; ``table_header`` names the columns
    of a table that begins before it.
    """
    language = compared.language if compared else "english"
    context, text = text_pieces(compared) if compared else ([], [])
    return {
        "title": why.document_title,
        "document": why.document_id,
        "start": why.start,
        "end": why.end,
        "rank": why.rank,
        "score": None if why.score is None else f"{why.score:.3f}",
        "found": why.fate in (FOUND, SHOWN),
        "reason": "" if why.fate == FOUND else why.reason,
        "steps": [step.to_dict() for step in why.course],
        "legs": _legs(why),
        "bars": plain(_bars(why, neighbours)),
        "question": _question(why, compared),
        "context": context,
        "text": text or [(why.text, False, 0, {})],
        "blocks": rendered_text(why.text, compared, table_header) if form_of(document_type, "") == RENDERED else None,
        "likes": _similarity_rows(compared),
        "terms": [
            {
                "word": own_word(why.query, term.term, language),
                "times": term.frequency,
                "score": f"{term.score:.2f}",
                "share": round(term.share, 4),
            }
            for term in why.terms
        ],
        "missing": [own_word(why.query, term, language) for term in why.missing_terms],
        "features": _features(why),
        "elsewhere": _elsewhere(why, column),
        "notes": list(filter(None, [preference(why.preferring), *why.notes])),
    }


def expected_data(why: Explanation, where: str) -> JsonObject:
    """Return what the panel draws of a document that one expected: its course as a funnel."""
    return {
        "document": why.document_id,
        "passage": why.passage_id,
        "title": why.document_title,
        "where": where,
        "fate": why.fate,
        "reason": why.reason,
        "steps": [step.to_dict() for step in why.course],
    }


def _legs(why: Explanation) -> list[JsonObject]:
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
                "of": "of the candidates" if kind.reranks else "in scope",
                "adds": leg.contribution,
                "vote": round(leg.vote, 2),
                "part": name in parts,
            }
        )
    return rows


def _features(why: Explanation) -> list[JsonObject]:
    """Return what a learned ranker weighed, the heaviest part first; features that weigh nothing are left out."""
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


def _bars(why: Explanation, neighbours: SearchResult | None) -> list[JsonObject]:
    """Return the explained hit's score and those of the hits around it, in the order of their ranks."""
    if why.rank is None or why.score is None:
        return []
    legs = {name: leg.contribution for name, leg in why.legs.items()}
    bars = {why.rank: _bar(why.rank, why.document_title, why.score, legs) | {"passage": why.passage_id, "own": True}}
    for hit in neighbours or ():
        if hit.rank != why.rank and abs(hit.rank - why.rank) <= AROUND:
            legs = {name: leg.contribution for name, leg in hit.attribution.items()}
            bar = _bar(hit.rank, hit.document_title, hit.score, legs)
            bars[hit.rank] = bar | {"passage": hit.passage_id, "own": False}
    return [bars[rank] for rank in sorted(bars)]


def _bar(rank: int, title: str, score: float, legs: Mapping[str, float | None]) -> JsonObject:
    parts: list[JsonObject] = [
        {"title": leg_kind(name).title, "hue": leg_kind(name).hue, "adds": round(adds, 5)}
        for name, adds in legs.items()
        if adds is not None and adds > 0
    ]
    return {"rank": rank, "title": title, "score": f"{score:.3f}", "parts": parts}


def _question(why: Explanation, compared: WordByWord | None) -> list[QuestionPiece]:
    return question_pieces(compared) if compared else [(why.query, None)]


def _similarity_rows(compared: WordByWord | None) -> list[list[tuple[str, str]]]:
    """Return for each word of the question its likes as (word, similarity), best first, each spelling once."""
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


def _elsewhere(why: Explanation, column: str) -> list[JsonObject]:
    rows = [(column, why.rank, True), *((name, rank, False) for name, rank in why.elsewhere.items())]
    return [_looks(name) | {"rank": rank, "own": own} for name, rank, own in rows]

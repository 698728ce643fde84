"""The "why" panel under the board: one passage taken apart, or where an expected document fell out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

import streamlit as st

from workbench.app.board_data import title_of
from workbench.app.states import failed
from workbench.errors import WorkbenchError
from workbench.services.search import named
from workbench.types import Comparison

if TYPE_CHECKING:
    from workbench.retrieval.explain import Explanation
    from workbench.workbench import Workbench

MOST_OFFERED = 2000  # documents to choose an expected one from
LEGS = {"vector": "Meaning (cosine)", "keyword": "Words (BM25)", "late": "Word by word (MaxSim)"}


def why_panel(workbench: Workbench, comparison: Comparison, asked: Mapping[str, Any]) -> None:
    """Offer every passage of the board, and every document; ``asked`` are the search's scope, limit, index, parameters.

    Nothing is explained before one is chosen, because that asks all strategies again.
    """
    with st.expander("Why is it there, or not?", key="why_panel"):
        hits = {
            (name, hit.passage_id): f"{title_of(name)} {hit.rank}: {hit.document_title}"
            for name, result in comparison.strategies.items()
            for hit in result
        }
        found, expected = st.columns(2)
        hit = found.selectbox(
            "A passage of the board", list(hits), index=None, format_func=lambda key: hits[key], key="why_hit"
        )
        documents = {item.id: item.title for item in workbench.knowledge.documents(limit=MOST_OFFERED)}
        missed = expected.selectbox(
            "A document you expected",
            list(documents),
            index=None,
            format_func=lambda key: documents[key],
            key="why_not",
        )
        strategies = list(comparison.strategies)
        if missed:
            strategy = st.segmented_control(
                "Expected from", strategies, default=strategies[-1], format_func=title_of, key="why_strategy"
            )
            _explained(workbench, comparison.query, str(strategy or strategies[-1]), asked, document_id=missed)
        elif hit:
            _explained(workbench, comparison.query, hit[0], asked, passage_id=hit[1])


def _explained(workbench: Workbench, query: str, strategy: str, asked: Mapping[str, Any], **target: str | None) -> None:
    options = {name: value for name, value in asked.items() if name != "parameters"}
    name, own_index = named(strategy, None)
    options["index"] = own_index or options.get("index")
    try:
        why = workbench.explain(
            query, strategy=name, parameters=asked.get("parameters", {}).get(name), **options, **target
        )
    except WorkbenchError as error:
        failed(error)
        return
    st.html(why_html(why))


def why_html(why: Explanation) -> str:
    """Return an explanation as tables; every text is escaped."""
    parts = [f"<p><b>{escape(why.document_title)}</b>: {escape(why.fate)}. {escape(why.reason)}</p>"]
    legs = [
        (LEGS.get(name, name), f"{leg.score:.4f}", leg.rank or "–", _adds(leg.contribution))
        for name, leg in why.legs.items()
    ]
    parts.append(_table("How it stands in the whole scope", ("Leg", "Score", "Rank", "Adds"), legs))
    terms = [(term.term, term.frequency, f"{term.score:.3f}", f"{term.share:.0%}") for term in why.terms]
    terms += [(term, 0, "–", "–") for term in why.missing_terms]
    parts.append(_table("The question's words in it", ("Word", "Times", "BM25", "Share"), terms))
    likes = [
        (word.query_token, word.passage_token, f"{word.similarity:.2f}", f"{word.weight:.0%}") for word in why.alignment
    ]
    parts.append(_table("Word by word", ("In the question", "Most alike in the passage", "Alike", "Counts"), likes))
    others = [(title_of(name), rank if rank is not None else "–") for name, rank in why.elsewhere.items()]
    parts.append(_table("Its rank by the other strategies", ("Strategy", "Rank"), others))
    return "".join(parts)


def _adds(contribution: float | None) -> str:
    return "–" if contribution is None else f"+{contribution:.4f}"


def _table(caption: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    if not rows:
        return ""
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in columns)
    body = "".join("<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><caption>{escape(caption)}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"

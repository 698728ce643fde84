"""Whether what was found is about the question at all: answers are refused below a threshold, not made up.

A passage is evidence when it is near in meaning, or when it holds most of what the question's words say:

    cosine >= NEAR[model]    or    coverage >= COVERED and cosine >= FAR[model]
    coverage = sum of idf over the question's words in the passage / sum of idf over all its words

Models place unrelated texts at different cosines, so the thresholds are per model; a model that is not listed is
judged by its words alone.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from workbench.marking import FUNCTION_WORDS
from workbench.retrieval.bm25 import idf
from workbench.retrieval.keyword import Words, read_words
from workbench.retrieval.request import Request
from workbench.types import Passage

# Measured on 60 questions each: of questions asked to their own corpus (anthropic_docs, xquad_en) 100 % and 98 % were
# answered, of questions from another corpus 0 to 5 %. The best cosines' 5th percentile was .41 for the first kind, the
# 95th percentile .29 to .39 for the second. "hash" only counts common words, so its numbers are set by hand.
NEAR = {"minilm": 0.40, "hash": 0.30}
FAR = {"minilm": 0.20, "hash": 0.10}
COVERED = 0.6
SMALLEST = 1000  # passages a corpus counts as at least: in a few, one passage more or less makes a word rare or common
_WORD = re.compile(r"[^\W_]+")
LOOKED_AT = 5  # passages: what answers stands at the top, or the question is not answered


def is_evidence(cosine: float | None, coverage: float, model: str) -> bool:
    """Tell whether a passage of that cosine (None: not known) and coverage is about the question."""
    if cosine is None:
        return coverage >= COVERED
    return cosine >= NEAR.get(model, 2.0) or (coverage >= COVERED and cosine >= FAR.get(model, -1.0))


def has_evidence(request: Request, connection: Any, query: str, passages: Sequence[Passage]) -> bool:
    """Tell whether any of the first passages is about the question."""
    words = read_words(request, connection, query)
    model = request.store.index.embedding_model
    return any(
        is_evidence(_cosine(passage), coverage(request, connection, query, words, passage), model)
        for passage in passages[:LOOKED_AT]
    )


def _cosine(passage: Passage) -> float | None:
    leg = passage.attribution.get("vector")
    return leg.score if leg else None


def coverage(request: Request, connection: Any, query: str, words: Words, passage: Passage) -> float:
    """Return the share of the question's idf whose words stand in the passage, 0..1; 0 for a question without words.

    A word that several languages stem differently counts once, by its rarest form; English function words, which are
    words to the other languages of an index, do not count.
    """
    key = request.store.internal_ids(connection, [passage.passage_id]).get(passage.passage_id)
    if key is None:
        return 0.0
    held = {term for term, _, _ in request.store.term_shares(connection, words.weights, key)}
    whole: dict[int, float] = {}
    found: dict[int, float] = {}
    typed = _WORD.findall(query.lower())
    for term in words.terms:
        if 0 < term.position <= len(typed) and typed[term.position - 1] in FUNCTION_WORDS:
            continue
        weight = idf(term.df, max(term.passages, SMALLEST))
        whole[term.position] = max(whole.get(term.position, 0.0), weight)
        if term.term in held:
            found[term.position] = max(found.get(term.position, 0.0), weight)
    total = sum(whole.values())
    return min(1.0, sum(found.values()) / total) if total else 0.0

"""Late-interaction rerank: the fused candidates again, word by word, over the stored one-bit token vectors."""

from __future__ import annotations

import string
from collections.abc import Sequence

import numpy as np
from llama_index.core.schema import NodeWithScore

from workbench.languages import gram_weights, spaced_words
from workbench.models.encoder import FloatArray
from workbench.retrieval.hit import Hit, mixed
from workbench.retrieval.legs import votes
from workbench.retrieval.nodes import hit_of, with_hits
from workbench.retrieval.parameters import DOCUMENT_WEIGHT, LATE_WEIGHT
from workbench.retrieval.question_words import Words
from workbench.retrieval.request import Likenesses, Request
from workbench.retrieval.stages.late_interaction import best_similarities, beyond_chance, token_shares
from workbench.retrieval.stages.stage import Stage
from workbench.retrieval.votes import of_words
from workbench.retrieval.words.bm25 import rarity
from workbench.retrieval.words.query_words import read_words
from workbench.storage.database import Connection
from workbench.storage.passages import token_bits
from workbench.types.parameter import LATE
from workbench.types.results import TimedStep

# Shares of digits among a passage's characters: prose has fewer than the first, and of a table with more than the
# second nothing is read. On annual reports (19 questions) a page of evidence is among five / ten for .63 / .74 instead
# of .53 / .68; anthropic_docs stays as it is, scifact within .0005.
PROSE, FIGURES = 0.1, 0.3
DOCUMENT = "document"  # the leg of the names of documents: words of a passage say nothing of them


class LateInteractionRerank(Stage):
    """A stage that adds the late-interaction score to the first stage's and sorts anew."""

    leg = LATE

    def apply(self, query: str, nodes: list[NodeWithScore]) -> list[NodeWithScore]:
        """Return the nodes by both judges' scores."""
        request = self._request
        hits = [hit_of(node) for node in nodes]
        with request.store.reading() as connection:
            words = read_words(request, connection, query)
            with request.trace.stage(TimedStep.RERANK):
                late = late_scores(request, connection, query, words, hits)
        if not late:
            return nodes
        weight = request.number(LATE_WEIGHT) * votes(request, query)[self.leg]
        trust = {hit.id: words_share(node.node.get_content()) for hit, node in zip(hits, nodes, strict=True)}
        untouched = untouched_leg(request, hits)
        return with_hits(nodes, mixed(hits, self.leg, late, weight, trust=trust, untouched=untouched))


def untouched_leg(request: Request, hits: Sequence[Hit]) -> tuple[str, float]:
    """Return the leg of the documents' names, which a judge of passages leaves alone, and its share of the score."""
    named = any(DOCUMENT in hit.legs for hit in hits)
    return DOCUMENT, request.number(DOCUMENT_WEIGHT) if named else 0.0


def words_share(text: str) -> float:
    """Return how far a judge of words can read a passage, 0..1: 1 for prose, 0 for a table of figures.

    To the model one figure is like another, so that any table of figures is near any question with a number.
    """
    digits = sum(map(text.count, string.digits))
    share = digits / max(1, len(text) - text.count(" ") - text.count("\n"))
    return min(1.0, max(0.0, (FIGURES - share) / (FIGURES - PROSE)))


def late_scores(
    request: Request, connection: Connection, query: str, words: Words, hits: Sequence[Hit]
) -> dict[int, float]:
    """Return MaxSim beyond chance for each hit; nothing (and a note) where the index keeps no token vectors."""
    encoded = request.encoded(query)
    bits = token_bits(connection, request.index.name, [hit.id for hit in hits])
    if encoded.token_axes is None or not bits:
        request.trace.note("rerank: this index keeps no token vectors, so the order is the first stage's")
        return {}
    across = 1 - of_words(request, query)
    weights = token_weights(query, encoded.token_spans, words, across)
    ids = sorted(bits)
    token_rows = [bits[key] for key in ids]
    best, shares = best_similarities(encoded.token_axes, token_rows), token_shares(len(weights), weights)
    request.likenesses[query] = Likenesses(tuple(ids), best, shares)
    scores = beyond_chance(best @ shares, token_rows)
    return {key: float(score) for key, score in zip(ids, scores, strict=True)}


def token_weights(query: str, spans: Sequence[tuple[int, int]], words: Words, across: float = 0.0) -> FloatArray:
    """Weigh each query token by the root of the idf of the word it belongs to; a stop word, which is no term, counts 0.

    When no word is a term, all tokens count alike. The root, because rare words already lead in BM25: on scifact's
    train questions uniform / root / plain idf gave late interaction alone .716 / .712 / .711 nDCG@10, and in the mix,
    where words and meaning have their say already, the root did at least as well as either on every open set. In a
    language that the index lacks (``across``, 0..1: how far) its lexicon says nothing of a word: all count alike.
    """
    by_position: dict[int, float] = {}
    by_term: dict[str, float] = {}
    for term in words.terms:  # one word may be a term in several languages
        by_term[term.term] = rarity(term, words.totals.passages) ** 0.5
        by_position[term.position] = max(by_position.get(term.position, 0.0), by_term[term.term])
    starts = {
        place: by_position.get(position, 0.0)
        for position, match in enumerate(spaced_words(query), start=1)
        for place in range(match.start(), match.end())
    } | gram_weights(query, by_term)
    weights = np.array([starts.get(start, 0.0) for start, _ in spans], dtype=np.float32)
    if not weights.any():
        return np.ones(len(spans), dtype=np.float32)
    if not across:
        return weights
    alike = np.array([any(map(str.isalnum, query[start:end])) for start, end in spans], dtype=np.float32)
    return (1 - across) * weights / weights.mean() + across * alike / (alike.mean() or 1.0)

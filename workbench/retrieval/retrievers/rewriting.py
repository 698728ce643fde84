"""Retrievers that search with further texts: rephrasings and answers by an LLM, and words of the first hits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import cast

import numpy as np
from llama_index.core.schema import NodeWithScore

from workbench import types
from workbench.errors import ModelError
from workbench.models.encoder import FloatArray, normalise_rows
from workbench.retrieval.bm25 import idf
from workbench.retrieval.hits import Hit, hit_from_legs, scale_contributions
from workbench.retrieval.llm_prompts import HYDE, MULTI_QUERY, RETRIEVAL_SYSTEM, questions_schema
from workbench.retrieval.nodes import to_nodes
from workbench.retrieval.parameters import FEEDBACK_PASSAGES, FEEDBACK_WEIGHT, HYDE_WEIGHT, QUERIES, TERM_WEIGHT, TERMS
from workbench.retrieval.query import Query, Words
from workbench.retrieval.retrievers.hybrid import find_hybrid_hits, leg_depth
from workbench.retrieval.retrievers.retriever import Retriever
from workbench.storage.passages import Connection
from workbench.storage.ranking import fetch_passage_terms
from workbench.types import FEEDBACK, KEYWORD, QUERY, VECTOR, Leg, TimedStep

# --- Multi-query: an LLM rephrases the question, and passages are ranked by their mean score over all versions ---

MAX_QUESTION_CHARS = 300  # longer rephrasings are cut


class MultiQueryRetriever(Retriever):
    """A search for the question and its rephrasings; only the question, with a note, if the LLM fails."""

    def find(self, query: Query) -> list[NodeWithScore]:
        """Return the candidates of all phrasings, by mean score."""
        request = self._request
        if query.reply is None:
            query.reply = self._rephrase(query.text)
        others = [Query(request, text) for text in cast("list[str]", query.reply)]
        with request.store.reading() as connection:
            rankings = [find_hybrid_hits(asked, connection, leg_depth(request)) for asked in (query, *others)]

            def fetch(hits: Sequence[Hit]) -> list[NodeWithScore]:
                similar = [self._with_cosine(connection, query, hit) for hit in hits]
                return to_nodes(request, connection, [hit for hit in similar if hit is not None])

            return self._fetch(connection, average_hits(rankings), fetch)

    def _with_cosine(self, connection: Connection, query: Query, hit: Hit) -> Hit | None:
        """Add the question's own cosine, with no contribution, to a hit that only rephrasings found."""
        if VECTOR in hit.legs:
            return hit
        cosine = self._request.store.fetch_cosines(connection, query.encoded.vector, [hit.id]).get(hit.id)
        if cosine is None:  # deleted in the meantime
            return None
        similar = query.is_similar_enough(cosine, has_words=KEYWORD in hit.legs)
        return Hit(hit.id, hit.score, {**hit.legs, VECTOR: Leg(cosine)}) if similar else None

    def _rephrase(self, query: str) -> list[str]:
        request, count = self._request, int(self._request.float_param(QUERIES))
        assert request.llm is not None  # guaranteed by build_engine
        try:
            with request.trace.stage(TimedStep.LLM):
                prompt = MULTI_QUERY.format(query=query, count=count)
                reply = request.llm.read_json(RETRIEVAL_SYSTEM, prompt, questions_schema(count))
        except ModelError as error:
            request.trace.note(f"multi-query: {error} Searched with the question alone.")
            return []
        texts = [text for text in reply if isinstance(text, str)] if isinstance(reply, list) else []
        texts = [" ".join(text.split())[:MAX_QUESTION_CHARS] for text in texts]
        others = [text for text in dict.fromkeys(texts) if text and text != query][:count]
        if not others:
            request.trace.note("multi-query: the LLM wrote no other questions; searched with the question alone.")
        return others


def average_hits(rankings: Sequence[Sequence[Hit]]) -> list[Hit]:
    """Return the hits of several questions by mean score; a question that did not find a passage counts as 0.

    The first question's legs keep their names; each other question is a leg "query 2", "query 3", ...
    """
    share = 1 / len(rankings)
    legs: dict[int, dict[str, Leg]] = {}
    for hit in rankings[0]:
        legs[hit.id] = scale_contributions(hit.legs, share)
    for number, hits in enumerate(rankings[1:], start=2):
        for rank, hit in enumerate(hits, start=1):
            legs.setdefault(hit.id, {})[f"{QUERY} {number}"] = Leg(hit.score, rank, hit.score * share)
    return sorted((hit_from_legs(key, parts) for key, parts in legs.items()), key=lambda hit: (-hit.score, hit.id))


# Pseudo-relevance feedback: the top passages are assumed to be relevant, and the question moves towards them.
#
# Rocchio, "Relevance Feedback in Information Retrieval" (1971), without the negative part: with the vectors p of the
# first n passages,
#
#     q' = q + weight * mean(p),  scaled to length 1
#
# Terms by RM3 (Abdul-Jaleel et al. 2004): a term's share of the top passages, weighted by their scores, times its
# idf; the best are added to the question's terms with a fixed total weight.

# Hybrid with a moved question vector


def find_moved_hits(
    query: Query, connection: Connection, vector: FloatArray, leg: str, pool: int, words: Words | None = None
) -> list[Hit]:
    """Return every candidate for the moved ``vector``, fused, best first; ``words`` replace the question's."""
    request = query.request
    query.read_words(connection)
    moved = query.rebind(replace(request, min_similarity=0.0), vector, words)
    hits = find_hybrid_hits(moved, connection, pool)
    query.names, query.titles, query.spread = moved.names, moved.titles, moved.spread
    near = request.store.fetch_cosines(connection, query.encoded.vector, [hit.id for hit in hits])
    named: list[Hit] = []
    for hit in hits:
        cosine = near.get(hit.id)  # None if it was deleted in the meantime
        if cosine is not None and query.is_similar_enough(cosine, has_words=KEYWORD in hit.legs):
            others = {name: value for name, value in hit.legs.items() if name != VECTOR}
            named.append(Hit(hit.id, hit.score, {leg: hit.legs[VECTOR], **others, VECTOR: Leg(cosine)}))
    return named


class FeedbackRetriever(Retriever):
    """A retriever that searches, moves the question towards the top passages, and searches again."""

    def find(self, query: Query) -> list[NodeWithScore]:
        """Return the candidates of the second search."""
        request = self._request
        pool = leg_depth(request)
        with request.store.reading() as connection:
            passages = int(request.float_param(FEEDBACK_PASSAGES))
            first = list(find_hybrid_hits(query, connection, pool).order[:passages])
            if not first:
                return []
            stored = request.store.fetch_vectors(connection, first)
            rows = np.stack([stored[key] for key in first if key in stored])
            moved = move_towards(query.encoded.vector, rows, request.float_param(FEEDBACK_WEIGHT))
            words = self._expand_words(connection, query.read_words(connection), first)
            hits = find_moved_hits(query, connection, moved, FEEDBACK, pool, words)
            return self._fetch(connection, hits)

    def _expand_words(self, connection: Connection, words: Words, passages: list[int]) -> Words:
        """Add the passages' best terms, with a total weight of ``term_weight`` relative to the question's."""
        share, most = self._request.float_param(TERM_WEIGHT), int(self._request.float_param(TERMS))
        asked_ids = set(words.weights.ids)
        if not share or not most or not asked_ids:
            return words
        request = self._request
        size = request.scope_size(connection)
        telling = fetch_passage_terms(connection, request.index.name, passages, request.scope.place, size)
        rated = {
            term.id: term.share * idf(term.df, words.totals.passages)
            for term in telling
            if term.id not in asked_ids and term.passages > 1  # terms of a single passage are not typical
        }
        counts, names = {term.id: term.postings for term in telling}, {term.id: term.term for term in telling}
        best = sorted(rated, key=lambda key: (-rated[key], names[key]))[:most]
        total = sum(rated[key] for key in best)
        if not total:
            return words
        budget = share * sum(words.weights.weights)
        weights = replace(
            words.weights,
            ids=(*words.weights.ids, *best),
            weights=(*words.weights.weights, *(budget * rated[key] / total for key in best)),
            counts=(*words.weights.counts, *(counts[key] for key in best)),
        )
        return replace(words, weights=weights, guesses=())


def move_towards(query: FloatArray, passages: FloatArray, weight: float) -> FloatArray:
    """Return q + weight * mean(p) at length 1."""
    return normalise_rows((query + np.float32(weight) * passages.mean(axis=0))[None, :])[0]


# HyDE: search near a hypothetical answer


class HydeRetriever(Retriever):
    """Hybrid with the vector of a hypothetical answer; plain hybrid, with a note, if the LLM fails."""

    def find(self, query: Query) -> list[NodeWithScore]:
        """Return the candidates for the query and the hypothetical answer."""
        request = self._request
        if query.reply is None:
            query.reply = self._write_hypothetical_answer(query.text)
        imagined = str(query.reply)
        pool = request.depth
        with request.store.reading() as connection:
            if imagined:
                with request.trace.stage(TimedStep.EMBED):
                    passage = request.encoder.encode([imagined]).vectors
                vector = move_towards(query.encoded.vector, passage, request.float_param(HYDE_WEIGHT))
                hits = find_moved_hits(query, connection, vector, types.HYDE, pool)
            else:
                hits = find_hybrid_hits(query, connection, pool)
            return self._fetch(connection, hits)

    def _write_hypothetical_answer(self, query: str) -> str:
        assert self._request.llm is not None  # guaranteed by build_engine
        try:
            with self._request.trace.stage(TimedStep.LLM):
                return self._request.llm.complete(RETRIEVAL_SYSTEM, HYDE.format(query=query)).strip()
        except ModelError as error:
            self._request.trace.note(f"hyde: {error} Searched with the question alone.")
            return ""

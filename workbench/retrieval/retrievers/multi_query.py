"""Multi-query: an LLM rephrases the question, and passages are ranked by their mean score over all versions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from llama_index.core.schema import NodeWithScore

from workbench.errors import ModelError
from workbench.retrieval.hits import Hit, hit_from_legs, scale_contributions
from workbench.retrieval.llm_prompts import MULTI_QUERY, RETRIEVAL_SYSTEM, questions_schema
from workbench.retrieval.nodes import to_nodes
from workbench.retrieval.parameters import QUERIES
from workbench.retrieval.retrievers.hybrid import find_hybrid_hits, leg_depth
from workbench.retrieval.retrievers.retriever import Query, Retriever
from workbench.storage.database import Connection
from workbench.storage.postings import fetch_cosines
from workbench.types import KEYWORD, QUERY, VECTOR, Leg, TimedStep

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
        index, vector = self._request.index, query.encoded.vector
        cosine = fetch_cosines(connection, index.name, vector, [hit.id]).get(hit.id)
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
    """Return the hits of several questions by mean score; a question that did not find a passage counts 0.

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

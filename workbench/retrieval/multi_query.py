"""Multi-query: an LLM says the question in other words, each is searched, and the passages' mean score ranks them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llama_index.core.schema import NodeWithScore

from workbench.errors import ModelError
from workbench.retrieval.hybrid import POOL, hybrid_hits
from workbench.retrieval.nodes import to_nodes
from workbench.retrieval.prompts import MULTI_QUERY, RETRIEVAL_SYSTEM
from workbench.retrieval.request import Hit
from workbench.retrieval.source import Source
from workbench.types import Leg

LONGEST = 300  # characters of a rephrasing that are used


class MultiQueryRetriever(Source):
    """Search the question and its rephrasings; the question alone, and a note, where the LLM fails."""

    def find(self, query: str) -> list[NodeWithScore]:
        """Return the candidates of all phrasings, by their mean score."""
        request = self._request
        others = self._rephrased(query)
        with request.store.reading() as connection:
            pool = max(POOL, request.limit)
            found = [hybrid_hits(request, connection, text, pool) for text in (query, *others)]
            hits = [self._with_cosine(connection, query, hit) for hit in mean_hits(found)[: self._keep]]
            return to_nodes(request, connection, [hit for hit in hits if hit is not None])

    def _with_cosine(self, connection: Any, query: str, hit: Hit) -> Hit | None:
        """Give a hit of the rephrasings alone the question's own cosine, without a share in its score."""
        if "vector" in hit.legs:
            return hit
        cosine = self._request.store.cosines(connection, self._request.encoded(query).vector, [hit.id])[hit.id]
        kept = self._request.similar_enough(cosine)
        return Hit(hit.id, hit.score, {**hit.legs, "vector": Leg(cosine)}) if kept else None

    def _rephrased(self, query: str) -> list[str]:
        request, count = self._request, int(self._request.parameters["queries"])
        assert request.llm is not None  # build_engine saw to it
        try:
            with request.trace.stage("llm"):
                prompt = MULTI_QUERY.format(query=query, count=count)
                found = request.llm.read_json(RETRIEVAL_SYSTEM, prompt)
        except ModelError as error:
            request.trace.note(f"multi-query: {error} Searched with the question alone.")
            return []
        texts = [text for text in found if isinstance(text, str)] if isinstance(found, list) else []
        texts = [" ".join(text.split())[:LONGEST] for text in texts]
        others = [text for text in dict.fromkeys(texts) if text and text != query][:count]
        if not others:
            request.trace.note("multi-query: the LLM wrote no other questions; searched with the question alone.")
        return others


def mean_hits(found: Sequence[Sequence[Hit]]) -> list[Hit]:
    """Return the hits of several questions by their mean score, 0 where a question did not find a passage.

    The first question's legs keep their names; each other question is a leg "query 2", "query 3", ...
    """
    share = 1 / len(found)
    legs: dict[int, dict[str, Leg]] = {}
    for hit in found[0]:
        legs[hit.id] = {name: Leg(leg.score, leg.rank, leg.contribution * share) for name, leg in hit.legs.items()}
    for number, hits in enumerate(found[1:], start=2):
        for rank, hit in enumerate(hits, start=1):
            legs.setdefault(hit.id, {})[f"query {number}"] = Leg(hit.score, rank, hit.score * share)
    scored = [Hit(key, sum(leg.contribution for leg in parts.values()), parts) for key, parts in legs.items()]
    return sorted(scored, key=lambda hit: (-hit.score, hit.id))

"""HyDE: an LLM writes the answer it imagines, and passages near to that are looked for.

Gao et al., "Precise Zero-Shot Dense Retrieval without Relevance Labels" (arXiv:2212.10496). The imagined passage's
vector and the question's are averaged; the words stay the question's, so what is made up cannot match by name.
"""

from __future__ import annotations

from llama_index.core.schema import NodeWithScore

from workbench.errors import ModelError
from workbench.retrieval.llm_prompts import HYDE, RETRIEVAL_SYSTEM
from workbench.retrieval.nodes import to_nodes
from workbench.retrieval.parameters import HYDE_WEIGHT
from workbench.retrieval.retrievers.feedback import towards
from workbench.retrieval.retrievers.hybrid import hybrid_hits
from workbench.retrieval.retrievers.moved_query import moved_hits
from workbench.retrieval.retrievers.retriever import Retriever
from workbench.types import parameter
from workbench.types.results import TimedStep


class HydeRetriever(Retriever):
    """Hybrid with the question's vector moved to an imagined answer; plain hybrid, and a note, where the LLM fails."""

    def find(self, query: str) -> list[NodeWithScore]:
        """Return the candidates for the query and the imagined answer."""
        request = self._request
        if query not in request.replies:
            request.replies[query] = self._imagined(query)
        imagined = str(request.replies[query])
        pool = request.depth
        with request.store.reading() as connection:
            if imagined:
                with request.trace.stage(TimedStep.EMBED):
                    passage = request.encoder.encode([imagined]).vectors
                vector = towards(request.encoded(query).vector, passage, request.number(HYDE_WEIGHT))
                hits = moved_hits(request, connection, query, vector, parameter.HYDE, pool)
            else:
                hits = hybrid_hits(request, connection, query, pool)
            return to_nodes(request, connection, self._kept(hits))

    def _imagined(self, query: str) -> str:
        assert self._request.llm is not None  # build_engine saw to it
        try:
            with self._request.trace.stage(TimedStep.LLM):
                return self._request.llm.complete(RETRIEVAL_SYSTEM, HYDE.format(query=query)).strip()
        except ModelError as error:
            self._request.trace.note(f"hyde: {error} Searched with the question alone.")
            return ""

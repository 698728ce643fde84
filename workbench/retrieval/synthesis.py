"""From passages to an answer: by an LLM with citations, else by quoting; refused where nothing relevant was found."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from llama_index.core.base.response.schema import Response
from llama_index.core.llms import MockLLM
from llama_index.core.response_synthesizers.no_text import NoText
from llama_index.core.schema import NodeWithScore, QueryBundle

from workbench.errors import ModelError
from workbench.retrieval.citing import known_marks, numbers_in
from workbench.retrieval.evidence import has_evidence
from workbench.retrieval.extracts import Quote, best_sentences, quoted
from workbench.retrieval.nodes import to_passages
from workbench.retrieval.prompts import ANSWER, ANSWER_SYSTEM, REFUSAL, cited_passages
from workbench.retrieval.request import Request
from workbench.types import Passage

REFUSED = "Nothing in the documents answers this question."


@dataclass(slots=True)
class Draft:
    """An answer as it comes: ``pieces`` once each, and what is known of it when they are through.

    ``kind`` is "llm", "extracts" or "refused"; an LLM may still refuse when its first words come.
    """

    kind: str
    pieces: Iterator[str]
    passages: tuple[Passage, ...]
    quotes: tuple[Quote, ...] = ()
    text: str = field(default="", init=False)

    def __iter__(self) -> Iterator[str]:
        """Yield the answer's text piece by piece; ``text`` keeps what was yielded."""
        for piece in self.pieces:
            self.text += piece
            yield piece

    @property
    def cited(self) -> list[int]:
        """The numbers of the passages that the text cites."""
        return [] if self.kind == "refused" else numbers_in(self.text)


def draft(request: Request, query: str, passages: Sequence[Passage]) -> Draft:
    """Begin an answer from passages, best first.

    Raises:
        ModelError: later, where the LLM fails in the middle of its answer.
    """
    shown = tuple(passages)
    with request.store.reading() as connection:
        enough = bool(shown) and has_evidence(request, connection, query, shown)
    if not enough:
        return Draft("refused", iter([REFUSED]), ())
    if request.llm is not None:
        prompt = ANSWER.format(query=query, passages=cited_passages(shown))
        try:
            return _begun(request.llm.stream(ANSWER_SYSTEM, prompt), shown)
        except ModelError as error:
            request.trace.note(f"answer: {error} These are extracts instead.")
    return extracted(request, query, shown)


def extracted(request: Request, query: str, passages: tuple[Passage, ...]) -> Draft:
    """Answer by quoting the best sentences."""
    try:
        vector = request.encoded(query).vector
    except ModelError:  # the search has said so already
        vector = None
    with request.trace.stage("extract"):
        quotes = best_sentences(query, vector, request.encoder, passages)
    if not quotes:
        return Draft("refused", iter([REFUSED]), ())
    return Draft("extracts", iter([quoted(quotes)]), passages, tuple(quotes))


def _begun(pieces: Iterator[str], passages: tuple[Passage, ...]) -> Draft:
    """Read as far as it takes to know whether the LLM refuses."""
    start = ""
    for piece in pieces:
        start += piece
        if not REFUSAL.startswith(start.strip()[: len(REFUSAL)]) or len(start.strip()) >= len(REFUSAL):
            break
    if not start.strip() or start.strip().startswith(REFUSAL):
        return Draft("refused", iter([REFUSED]), ())
    return Draft("llm", known_marks(chain([start], pieces), len(passages)), passages)


class CitingSynthesizer(NoText):
    """The same answers for LlamaIndex's query engines; ``source_nodes`` are in the order of the citation numbers."""

    def __init__(self, request: Request) -> None:
        super().__init__(llm=MockLLM())
        self._request = request

    def synthesize(
        self,
        query: Any,
        nodes: list[NodeWithScore],
        additional_source_nodes: Sequence[NodeWithScore] | None = None,
        **response_kwargs: Any,
    ) -> Any:
        """Answer from nodes that came from this request."""
        asked = query.query_str if isinstance(query, QueryBundle) else str(query)
        answer = draft(self._request, asked, to_passages(nodes))
        text = "".join(answer)
        sources = [*nodes, *(additional_source_nodes or ())]
        return Response(text, source_nodes=sources, metadata={"kind": answer.kind, "cited": answer.cited})

    async def asynthesize(
        self,
        query: Any,
        nodes: list[NodeWithScore],
        additional_source_nodes: Sequence[NodeWithScore] | None = None,
        **response_kwargs: Any,
    ) -> Any:
        """Answer in a thread."""
        import asyncio

        return await asyncio.to_thread(self.synthesize, query, nodes, additional_source_nodes)

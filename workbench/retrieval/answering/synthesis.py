"""Answers from passages: by an LLM with citations, else by quoting; refused if nothing relevant was found."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain

from llama_index.core.base.response.schema import Response
from llama_index.core.llms import MockLLM
from llama_index.core.response_synthesizers.no_text import NoText
from llama_index.core.schema import NodeWithScore, QueryBundle

from workbench.errors import ModelError
from workbench.retrieval.answering.extracts import Quote, best_sentences, known_marks, numbers_in, quoted
from workbench.retrieval.evidence import is_sentence_evidence, judge_evidence
from workbench.retrieval.llm_prompts import ANSWER, ANSWER_SYSTEM, REFUSAL, number_passages
from workbench.retrieval.nodes import to_passages
from workbench.retrieval.query import Query, Request
from workbench.storage.ranking import fetch_document_slices
from workbench.types import Evidence, Passage, TimedStep, as_integer, as_items

# Headers of tables that start before a passage


def fetch_table_headers(request: Request, passages: Sequence[Passage]) -> dict[int, str]:
    """Return the Markdown of the headers, by the passages' numbers from 1; passages that need none are left out."""
    spans = {number: as_items(hit.metadata.get("table_header")) for number, hit in enumerate(passages, start=1)}
    places = {
        number: (passages[number - 1].document_id, as_integer(span[0]), as_integer(span[1]))
        for number, span in spans.items()
        if span and as_integer(span[0]) < passages[number - 1].start
    }
    if not places:
        return {}
    with request.store.reading() as connection:
        texts = fetch_document_slices(connection, request.index.name, list(places.values()))
    return {number: text for number, text in zip(places, texts, strict=True) if text is not None}


REFUSAL_TEXT = "Nothing in the documents answers this question."


@dataclass(slots=True)
class AnswerDraft:
    """An answer as it comes: ``pieces`` once each, and the facts about it when they are through.

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
        if self.kind == "extracts":
            return list(dict.fromkeys(quote.number for quote in self.quotes))
        return numbers_in(self.text) if self.kind == "llm" else []


def draft_answer(query: Query, passages: Sequence[Passage], evidence: Evidence) -> AnswerDraft:
    """Begin an answer from passages, best first; without evidence among them or their sentences it is refused.

    Raises:
        ModelError: later, if the LLM fails in the middle of its answer.
    """
    request, sources = query.request, tuple(passages)
    quotes = _find_quotes(query, sources) if sources and not (evidence.close and request.llm) else []
    similarities = (quote.similarity for quote in quotes)
    if not sources or not (evidence.close or is_sentence_evidence(query, similarities)):
        return AnswerDraft("refused", iter([REFUSAL_TEXT]), ())
    if request.llm is not None:
        prompt = ANSWER.format(query=query.text, passages=number_passages(sources))
        try:
            return _start_llm_answer(request.llm.stream(ANSWER_SYSTEM, prompt), sources)
        except ModelError as error:
            request.trace.note(f"answer: {error} These are extracts instead.")
    return _quote_answer(quotes or _find_quotes(query, sources), sources)


def _find_quotes(query: Query, passages: Sequence[Passage]) -> list[Quote]:
    """Return the sentences that would be quoted as the answer."""
    request = query.request
    try:
        encoded = query.encoded if query.can_read else None
    except ModelError:  # the search has said so already
        encoded = None
    with request.trace.stage(TimedStep.EXTRACT):
        return best_sentences(query.text, encoded, request.encoder, passages, fetch_table_headers(request, passages))


def _quote_answer(quotes: Sequence[Quote], passages: tuple[Passage, ...]) -> AnswerDraft:
    """Answer by quoting sentences."""
    if not quotes:
        return AnswerDraft("refused", iter([REFUSAL_TEXT]), ())
    return AnswerDraft("extracts", iter([quoted(quotes)]), passages, tuple(quotes))


def _start_llm_answer(pieces: Iterator[str], passages: tuple[Passage, ...]) -> AnswerDraft:
    """Read as far as it takes to know whether the LLM refuses."""
    start = ""
    for piece in pieces:
        start += piece
        if not REFUSAL.startswith(start.strip()[: len(REFUSAL)]) or len(start.strip()) >= len(REFUSAL):
            break
    if not start.strip() or start.strip().startswith(REFUSAL):
        return AnswerDraft("refused", iter([REFUSAL_TEXT]), ())
    return AnswerDraft("llm", known_marks(chain([start], pieces), len(passages)), passages)


class CitingSynthesizer(NoText):
    """The same answers for LlamaIndex's query engines; ``source_nodes`` are in the order of the citation numbers."""

    def __init__(self, request: Request) -> None:
        super().__init__(llm=MockLLM())
        self._request = request

    def synthesize(
        self,
        query: str | QueryBundle,
        nodes: list[NodeWithScore],
        additional_source_nodes: Sequence[NodeWithScore] | None = None,
        **response_kwargs: object,
    ) -> Response:
        """Answer from nodes that came from this request."""
        asked = self._request.question(query)
        answer = draft_answer(asked, to_passages(nodes, self._request.draw_page), judge_evidence(asked, nodes))
        text = "".join(answer)
        sources = [*nodes, *(additional_source_nodes or ())]
        return Response(text, source_nodes=sources, metadata={"kind": answer.kind, "cited": answer.cited})

    async def asynthesize(
        self,
        query: str | QueryBundle,
        nodes: list[NodeWithScore],
        additional_source_nodes: Sequence[NodeWithScore] | None = None,
        **response_kwargs: object,
    ) -> Response:
        """Answer in a thread."""
        import asyncio

        return await asyncio.to_thread(self.synthesize, query, nodes, additional_source_nodes)

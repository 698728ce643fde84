"""Answers: a question, the passages a strategy finds for it, and a text that cites them or says there is nothing."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from workbench.errors import InvalidInput
from workbench.retrieval.options import Ask
from workbench.retrieval.parameters import CUTOFF, MACHINES_CUTOFF
from workbench.services.checks import check_query
from workbench.services.corpus import Corpus
from workbench.services.outages import read_once_more
from workbench.services.search import Requests
from workbench.types import Passage, SearchResult, Value
from workbench.types.results import TOTAL

if TYPE_CHECKING:
    from IPython.lib.pretty import RepresentationPrinter

    from workbench.retrieval.answering.synthesis import AnswerDraft
    from workbench.retrieval.query import Request

SHOWN = 8  # passages an answer rests on at most: about 1,600 tokens, what small local models read well
MOST_SHOWN = 20
AS_ASKED = Ask(limit=SHOWN)


@dataclass(frozen=True, slots=True)
class Citation(Value):
    """The passage of a document that a mark [number] in an answer opens.

    ``quotes`` are the (start, end) of the sentences in the document that were quoted; empty where an LLM wrote.
    """

    number: int
    passage_id: str
    document_id: str
    document_title: str
    source_id: str
    path: str | None
    url: str | None
    start: int
    end: int
    text: str
    quotes: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Answer(Value):
    """A cited answer. ``kind`` is "llm", "extracts" (sentences of the passages) or "refused" (nothing relevant).

    ``citations`` are those that the text marks, by number; ``passages`` everything that was found.
    """

    query: str
    text: str
    kind: str
    model: str
    strategy: str
    index: str
    citations: tuple[Citation, ...]
    passages: tuple[Passage, ...]
    degraded: tuple[str, ...]
    timings_ms: Mapping[str, float]

    @property
    def refused(self) -> bool:
        """True when nothing relevant was found."""
        return self.kind == "refused"

    def page(self, citation: Citation) -> str:
        """Return the page that a cited passage begins on, with the number that it bears: "2 (41)"; "" without pages."""
        return self.passages[citation.number - 1].page

    def _repr_markdown_(self) -> str:
        pages = [self.page(citation) for citation in self.citations]
        sources = "\n".join(
            f"{citation.number}. {citation.document_title}" + (f", page {page}" if page else "")
            for citation, page in zip(self.citations, pages, strict=True)
        )
        return f"{self.text}\n\n{sources}"

    def _repr_pretty_(self, printer: RepresentationPrinter, cycle: bool) -> None:
        printer.text(self._repr_markdown_())


class AnswerStream:
    """An answer as it comes: iterate over its pieces once, then ``answer()``; it reads on by itself if need be."""

    def __init__(self, result: SearchResult, draft: AnswerDraft, model: str, request: Request, began: float) -> None:
        self._result, self._draft, self._model = result, draft, model
        self._request, self._began = request, began
        self._pieces = iter(draft)

    @property
    def passages(self) -> tuple[Passage, ...]:
        """The passages found, known before the first piece; the marks count these from 1."""
        return self._result.results

    def __iter__(self) -> Iterator[str]:
        """Yield the text piece by piece. Raises ModelError where the LLM fails in the middle."""
        return self._pieces

    def answer(self) -> Answer:
        """Return the whole answer. Raises ModelError where the LLM fails in the middle."""
        for _ in self._pieces:
            pass
        draft, result, trace = self._draft, self._result, self._request.trace
        citations = tuple(_citation(number, draft) for number in draft.cited)
        if draft.kind == "llm" and not citations:
            trace.note("answer: the LLM cited no passage; check what it says against the passages")
        timings = {name: round(ms, 3) for name, ms in trace.timings_ms.items()}
        timings[TOTAL] = round((time.perf_counter() - self._began) * 1000, 3)
        return Answer(
            query=result.query,
            text=draft.text,
            kind=draft.kind,
            model=self._model if draft.kind == "llm" else "",
            strategy=result.strategy,
            index=result.index,
            citations=citations,
            passages=result.results,
            degraded=tuple(trace.degraded),
            timings_ms=timings,
        )


class AnswerService:
    """The verb ``ask``."""

    def __init__(self, corpus: Corpus, requests: Requests) -> None:
        self._corpus, self._requests = corpus, requests

    @read_once_more
    def ask(self, query: str, ask: Ask = AS_ASKED) -> AnswerStream:
        """Search, and begin to answer from what was found.

        Raises:
            InvalidInput: a limit outside 1..20. ConfigurationError: an LLM is half configured. Further what
                ``search`` raises. An LLM that cannot be asked is no error: extracts answer, and a note says so.
        """
        from workbench.retrieval.answering.synthesis import draft
        from workbench.retrieval.pipeline import run

        check_query(query)
        if not 1 <= ask.limit <= MOST_SHOWN:
            raise InvalidInput(f"limit cannot be {ask.limit}; use a whole number from 1 to {MOST_SHOWN}.")
        began = time.perf_counter()
        request = self._requests.of(ask)
        if request.number(CUTOFF, otherwise=MACHINES_CUTOFF) == 0 and CUTOFF.name not in ask.parameters:
            request.parameters = {**request.parameters, CUTOFF.name: MACHINES_CUTOFF}
        request.llm = self._corpus.llm
        asked = request.question(query)
        result = run(asked)
        model = request.llm.name if request.llm is not None else ""
        return AnswerStream(result, draft(asked, result.results, result.evidence), model, request, began)

    @read_once_more
    def table_headers(self, hits: Sequence[Passage], index: str) -> dict[str, str]:
        """Return passage id -> the Markdown of the header of the table that it goes on with, where it does."""
        from workbench.retrieval.answering.synthesis import table_headers

        headers = table_headers(self._requests.of(Ask(limit=len(hits), index=index)), hits)
        return {hits[number - 1].passage_id: header for number, header in headers.items()}


def _citation(number: int, draft: AnswerDraft) -> Citation:
    passage = draft.passages[number - 1]
    return Citation(
        number=number,
        passage_id=passage.passage_id,
        document_id=passage.document_id,
        document_title=passage.document_title,
        source_id=passage.source_id,
        path=passage.path,
        url=passage.url,
        start=passage.start,
        end=passage.end,
        text=passage.text,
        quotes=tuple((quote.start, quote.end) for quote in draft.quotes if quote.number == number),
    )

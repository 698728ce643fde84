"""Answers: a question, the passages a strategy finds for it, and a text that cites them, or a refusal."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from workbench.errors import InvalidInput, ModelError
from workbench.retrieval.options import Ask
from workbench.services.checks import check_query
from workbench.services.corpus import Corpus, import_framework, retry_read
from workbench.services.search import Requests
from workbench.telemetry import ASK, Measurement, measure
from workbench.types import TOTAL, Passage, SearchResult, Value

if TYPE_CHECKING:
    from IPython.lib.pretty import RepresentationPrinter

    from workbench.retrieval.answering.synthesis import AnswerDraft
    from workbench.retrieval.query import Query

DEFAULT_PASSAGES = 8  # passages for an answer by default: about 1,600 tokens, which small local models handle well
MAX_PASSAGES = 20
DEFAULT_ASK = Ask(limit=DEFAULT_PASSAGES)


@dataclass(frozen=True, slots=True)
class Citation(Value):
    """The passage that a mark [number] in an answer refers to."""

    number: int  # from 1
    passage_id: str
    document_id: str
    document_title: str
    source_id: str
    path: str | None
    url: str | None
    start: int  # of the passage in the document's text, in characters
    end: int
    text: str
    quotes: tuple[tuple[int, int], ...] = ()  # (start, end) of each quoted sentence; empty for answers by an LLM


@dataclass(frozen=True, slots=True)
class Answer(Value):
    """An answer with citations."""

    query: str
    text: str
    kind: str  # "llm", "extracts" (sentences from the passages) or "refused" (nothing relevant was found)
    model: str  # the LLM that wrote it; "" for others
    strategy: str
    index: str
    citations: tuple[Citation, ...]  # those that the text refers to, by number
    passages: tuple[Passage, ...]  # all results of the search
    degraded: tuple[str, ...]  # a note for each part that was unavailable
    timings_ms: Mapping[str, float]  # by step

    @property
    def refused(self) -> bool:
        """True if nothing relevant was found."""
        return self.kind == "refused"

    def page(self, citation: Citation) -> str:
        """Return the page on which a cited passage starts, with its printed number: "2 (41)"; "" without pages."""
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
    """A streamed answer: iterate over its pieces once, then call ``answer()``, which reads any remaining pieces."""

    def __init__(
        self, result: SearchResult, draft: AnswerDraft, model: str, asked: Query, began: float, measured: Measurement
    ) -> None:
        self._result, self._draft, self._model = result, draft, model
        self._asked, self._began = asked, began
        self._pieces = _read_measured(draft, measured)
        next(self._pieces)  # its end is measured even if no piece is read

    @property
    def passages(self) -> tuple[Passage, ...]:
        """The passages found, available before the first piece; marks number them from 1."""
        return self._result.results

    def __iter__(self) -> Iterator[str]:
        """Yield the text piece by piece. Raises ModelError if the LLM failed in the middle of the answer."""
        return self._pieces

    def answer(self) -> Answer:
        """Return the complete answer. Raises ModelError if the LLM failed in the middle of the answer."""
        for _ in self._pieces:
            pass
        draft, result, trace = self._draft, self._result, self._asked.request.trace
        citations = tuple(_make_citation(number, draft) for number in draft.citation_numbers)
        if draft.kind == "llm" and not citations:
            trace.note("answer: the LLM cited no passage; check the answer against the passages")
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
            degraded=(*result.scope.notes, *trace.degraded),
            timings_ms=timings,
        )

    def find_threshold(self) -> float:
        """Return the threshold of the index up to which the question is answered; 0 if it was refused with evidence."""
        from workbench.retrieval.answering.synthesis import find_threshold

        return find_threshold(self._asked, self._result.results, self._draft)


class AnswerService:
    """Answers questions from passages."""

    def __init__(self, corpus: Corpus, requests: Requests) -> None:
        self._corpus, self._requests = corpus, requests

    @retry_read
    def ask(self, query: str, ask: Ask = DEFAULT_ASK) -> AnswerStream:
        """Search, and start to answer from the passages found; see ``Workbench.ask``.

        If the LLM is unavailable, the answer consists of extracts, with a note.

        Raises:
            ConfigurationError: An LLM is only partly configured.
        """
        import_framework()
        from workbench.retrieval.answering.synthesis import draft_answer
        from workbench.retrieval.pipeline import run_search

        check_query(query)
        if not 1 <= ask.limit <= MAX_PASSAGES:
            raise InvalidInput(f"Invalid limit {ask.limit}: expected a whole number from 1 to {MAX_PASSAGES}.")
        began = time.perf_counter()
        request = self._requests.make(ask)
        request.use_answer_cutoff(ask.parameters)
        request.llm = request.llm or self._corpus.llm
        asked = request.question(query)
        model = request.llm.name if request.llm is not None else ""
        with measure(ASK, request.strategy.name) as measured:
            measured.add_text("input.value", query)
            result = run_search(asked)
            draft = draft_answer(asked, result.results, result.evidence)
            measured.is_kept = True
            return AnswerStream(result, draft, model, asked, began, measured)

    @retry_read
    def table_headers(self, hits: Sequence[Passage], index: str) -> dict[str, str]:
        """Return passage id -> header row in Markdown, for passages that continue a table."""
        import_framework()
        from workbench.retrieval.answering.synthesis import fetch_table_headers

        headers = fetch_table_headers(self._requests.make(Ask(limit=len(hits), index=index)), hits)
        return {hits[number - 1].passage_id: header for number, header in headers.items()}


def _read_measured(draft: AnswerDraft, measured: Measurement) -> Iterator[str]:
    """Yield "", then the pieces of an answer; its span ends with the last one, or when the iterator is dropped."""
    try:
        yield ""
        yield from draft
    except ModelError as error:
        measured.record_failure(type(error).__name__)
        raise
    finally:
        measured.add_text("output.value", draft.text)
        measured.end()


def _make_citation(number: int, draft: AnswerDraft) -> Citation:
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

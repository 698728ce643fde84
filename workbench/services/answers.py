"""Answers: a question, the passages a strategy finds for it, and a text that cites them or says there is nothing."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from workbench.errors import InvalidInput
from workbench.services.corpus import Corpus
from workbench.services.question import check_query
from workbench.services.search import SearchService
from workbench.types import Passage, Scope, SearchResult, Value

if TYPE_CHECKING:
    from workbench.retrieval.synthesis import Draft

SHOWN = 6  # passages an answer rests on: about 1,500 tokens, what small local models read well
MOST_SHOWN = 20


@dataclass(frozen=True, slots=True)
class Citation(Value):
    """What a mark [number] in an answer opens: a passage of a document.

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

    def _repr_markdown_(self) -> str:
        sources = "\n".join(f"{c.number}. {c.document_title}" for c in self.citations)
        return f"{self.text}\n\n{sources}"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(self._repr_markdown_())


class AnswerStream:
    """An answer as it comes: iterate over its pieces once, then ``answer()``; it reads on by itself if need be."""

    def __init__(self, result: SearchResult, draft: Draft, model: str, request: Any, began: float) -> None:
        self._result, self._draft, self._model = result, draft, model
        self._request, self._began = request, began
        self._pieces = iter(draft)

    @property
    def passages(self) -> tuple[Passage, ...]:
        """What was found, known before the first piece; the marks count these from 1."""
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
        timings["total"] = round((time.perf_counter() - self._began) * 1000, 3)
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

    def __init__(self, corpus: Corpus, search: SearchService) -> None:
        self._corpus, self._search = corpus, search

    def ask(
        self,
        query: str,
        *,
        strategy: str | None = None,
        limit: int = SHOWN,
        scope: Scope | None = None,
        index: str | None = None,
        parameters: Mapping[str, Any] | None = None,
    ) -> AnswerStream:
        """Search, and begin to answer from what was found.

        Raises:
            InvalidInput: a limit outside 1..20. ConfigurationError: an LLM is half configured. Further what
                ``search`` raises. An LLM that cannot be asked is no error: extracts answer, and a note says so.
        """
        from workbench.retrieval.synthesis import draft

        check_query(query)
        if not 1 <= limit <= MOST_SHOWN:
            raise InvalidInput(f"limit cannot be {limit}; use a whole number from 1 to {MOST_SHOWN}.")
        began = time.perf_counter()
        resolved = self._search.resolve(scope)
        name, index, parameters = self._search.chosen(strategy, resolved, index, parameters)
        request = self._search.request(name, resolved, limit, index, parameters)
        request.llm = self._corpus.llm
        result = self._search.run(query, name, request)
        model = request.llm.name if request.llm is not None else ""
        return AnswerStream(result, draft(request, query, result.results), model, request, began)


def _citation(number: int, draft: Draft) -> Citation:
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

"""Texts that a run's questions and judgments are about: read from the corpus once each."""

from __future__ import annotations

from collections.abc import Sequence

from evals.experiments.strategy_run import StrategyRun
from evals.gateway import IndexedCorpus, document_of, passages_of
from evals.judges import Sample
from evals.test_set import Judgment, TestSet
from workbench.errors import NotFound
from workbench.types import Document
from workbench.workbench import Workbench

SHOWN = 5  # passages of an answer that count as its context
MOST_REFERENCES = 20  # relevant passages a question is compared with, where whole documents were judged


class Texts:
    """Texts of passages and documents by the names that judgments use, each document read once."""

    def __init__(self, wb: Workbench, test_set: TestSet, corpus: IndexedCorpus) -> None:
        self._wb, self._test_set, self._corpus = wb, test_set, corpus
        self._ids = {key: document_id for document_id, key in corpus.keys.items()}
        self._questions = {question.id: question for question in test_set.questions}
        self._texts: dict[str, str] = {}

    def sample(self, question_id: str, run: StrategyRun) -> Sample:
        """Return one question as ragas sees it."""
        question, hits = self._questions[question_id], run.answers[question_id].passages[:SHOWN]
        relevant = [key for key, grade in self._test_set.qrels[question_id].items() if grade > 0]
        return Sample(
            question_id=question_id,
            question=question.text,
            passages=tuple(self.text(hit.document)[hit.start : hit.end] for hit in hits),
            documents=tuple(dict.fromkeys(hit.document for hit in hits)),
            reference_passages=tuple(self._references(question_id, relevant)),
            reference_documents=tuple(relevant),
            reference_answer=question.reference_answer,
        )

    def judged(self, judgment: Judgment) -> str:
        """Return what a judgment is about: the span, or the whole document."""
        return self.text(judgment.document)[judgment.start : judgment.end]

    def text(self, key: str) -> str:
        """Return a document's text; "" where it is gone."""
        if key not in self._texts:
            document = self._document(key)
            self._texts[key] = (document.text or "") if document else ""
        return self._texts[key]

    def _document(self, key: str) -> Document | None:
        document_id = self._ids.get(key, key)
        if self._corpus.keys and document_id not in self._corpus.keys:
            return None
        try:
            return document_of(self._wb, document_id)
        except NotFound:  # judged once, deleted since
            return None

    def _references(self, question_id: str, relevant: Sequence[str]) -> list[str]:
        spans = self._test_set.spans.get(question_id, ())
        if spans:
            return [text for text in map(self.judged, spans) if text]
        texts = []
        for document in filter(None, map(self._document, relevant)):
            passages = passages_of(self._wb, document.id, self._corpus.index.name)
            texts += [passage.text for passage in passages]
        return texts[:MOST_REFERENCES]

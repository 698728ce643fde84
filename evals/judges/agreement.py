"""An LLM's grades for judgments made by a person, and how well the two agree."""

from __future__ import annotations

import asyncio
import hashlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from pydantic import BaseModel

from evals.experiments.runs import StrategyRun
from evals.gateway import IndexedCorpus
from evals.judges.endpoint import Endpoint, run_judging
from evals.judges.scores import Sample
from evals.measures.metrics import Agreement, JudgeAgreement
from evals.test_set import GRADE_VALUES, Judgment, TestSet
from workbench.errors import ModelError, NotFound
from workbench.types import Document, ShouldStop
from workbench.workbench import Workbench

MAX_DOCUMENT_CHARS = 6_000  # about 1,500 tokens, which small local models read well
_PROMPT = """How well does the text answer the question? The grades:
relevant - it answers the question by itself
partly - it answers a part of it
not - it does not answer it

Question: {question}

Text: {text}

Answer with JSON only: {{"grade": "relevant", "partly" or "not"}}"""


class _Grade(BaseModel):
    grade: Literal["relevant", "partly", "not"]


@dataclass(frozen=True)
class Grading:
    """The LLM's judgments of the same spans; ``reasons`` has the reasons for missing ones, with counts."""

    judgments: tuple[Judgment, ...]
    reasons: Mapping[str, int]


def grade_judgments(
    endpoint: Endpoint,
    judged: Sequence[Judgment],
    questions: Mapping[str, str],
    text_of: Callable[[Judgment], str],
    should_stop: ShouldStop | None = None,
) -> Grading:
    """Grade the same spans with an LLM; ``questions`` are by id; ``text_of`` returns the judged text."""
    verdicts = run_judging(lambda: _grade_all(endpoint, judged, questions, text_of), should_stop)
    graded = [
        replace(judgment, grade=value)
        for judgment, value in zip(judged, verdicts, strict=True)
        if isinstance(value, int)
    ]
    return Grading(tuple(graded), dict(Counter(value for value in verdicts if isinstance(value, str))))


def measure_agreement(human: Sequence[Judgment], llm: Sequence[Judgment]) -> Agreement:
    """Return the agreement of two judges on items that both judged: the share of equal verdicts, and Cohen's kappa.

    A verdict is relevant or not (grade above 0). kappa = (observed - expected) / (1 - expected), where expected is
    the chance agreement of judges with the same rates of "relevant" (Cohen 1960); None if undefined.
    """
    first = {(j.question_id, j.document, j.start, j.end): j.grade > 0 for j in human}
    second = {(j.question_id, j.document, j.start, j.end): j.grade > 0 for j in llm}
    both = [(first[place], second[place]) for place in first if place in second]
    if not both:
        return {"pairs": 0, "agreement": None, "kappa": None}
    observed = sum(a == b for a, b in both) / len(both)
    yes_a, yes_b = (sum(verdicts) / len(both) for verdicts in zip(*both, strict=True))
    expected = yes_a * yes_b + (1 - yes_a) * (1 - yes_b)
    kappa = None if expected == 1 else round((observed - expected) / (1 - expected), 6)
    return {"pairs": len(both), "agreement": round(observed, 6), "kappa": kappa}


async def _grade_all(
    endpoint: Endpoint, judged: Sequence[Judgment], questions: Mapping[str, str], text_of: Callable[[Judgment], str]
) -> list[int | str]:
    async def parse_verdict(judgment: Judgment) -> int | str:
        text = text_of(judgment)[:MAX_DOCUMENT_CHARS]
        try:
            reply = await endpoint.ask(_PROMPT.format(question=questions[judgment.question_id], text=text), _Grade)
        except ModelError as error:
            return str(error)
        return GRADE_VALUES[reply.grade]

    async with endpoint:
        return list(await asyncio.gather(*(parse_verdict(judgment) for judgment in judged)))


# Answers for the judge to score


def add_answers(endpoint: Endpoint, samples: Sequence[Sample], should_stop: ShouldStop | None = None) -> list[Sample]:
    """Return the samples with the model's answers, or with the reason in ``no_answer``.

    Raises:
        Cancelled: ``should_stop`` returned True.
    """

    async def answer(sample: Sample) -> Sample:
        passages = "\n\n".join(f"[{n}] {text}" for n, text in enumerate(sample.passages, start=1))
        prompt = f"Answer the question from these passages only.\n\n{passages}\n\nQuestion: {sample.question}\nAnswer:"
        try:
            text = (await endpoint.complete(prompt)).strip()
        except ModelError as error:
            return replace(sample, no_answer=str(error))
        return replace(sample, answer=text, no_answer="" if text else "The model's answer was empty.")

    async def ask() -> list[Sample]:
        async with endpoint:
            return list(await asyncio.gather(*map(answer, samples)))

    return run_judging(ask, should_stop)


# Texts of questions and judgments

CONTEXT_PASSAGES = 5  # passages used as the context of an answer
MAX_REFERENCE_PASSAGES = 20  # relevant passages compared with a question if whole documents were judged


class Texts:
    """Texts of passages and documents by the keys of judgments; each document is read once."""

    def __init__(self, wb: Workbench, test_set: TestSet, corpus: IndexedCorpus) -> None:
        self._wb, self._test_set, self._corpus = wb, test_set, corpus
        self._ids = {key: document_id for document_id, key in corpus.keys.items()}
        self._questions = {question.id: question for question in test_set.questions}
        self._texts: dict[str, str] = {}

    def sample(self, question_id: str, run: StrategyRun) -> Sample:
        """Return one question as a sample."""
        question, hits = self._questions[question_id], run.answers[question_id].passages[:CONTEXT_PASSAGES]
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

    def judged_text(self, judgment: Judgment) -> str:
        """Return the judged text: the span, or the whole document."""
        return self.text(judgment.document)[judgment.start : judgment.end]

    def text(self, key: str) -> str:
        """Return a document's text; "" if it is gone."""
        if key not in self._texts:
            document = self._document(key)
            self._texts[key] = (document.text or "") if document else ""
        return self._texts[key]

    def _document(self, key: str) -> Document | None:
        document_id = self._ids.get(key, key)
        if self._corpus.keys and document_id not in self._corpus.keys:
            return None
        try:
            return self._wb.documents.get(document_id)
        except NotFound:  # deleted since it was judged
            return None

    def _references(self, question_id: str, relevant: Sequence[str]) -> list[str]:
        spans = self._test_set.spans.get(question_id, ())
        if spans:
            return [text for text in map(self.judged_text, spans) if text]
        texts = []
        for document in filter(None, map(self._document, relevant)):
            passages = self._wb.documents.passages(document.id, index=self._corpus.index.name)
            texts += [passage.text for passage in passages]
        return texts[:MAX_REFERENCE_PASSAGES]


# Agreement of an LLM with the test set

MAX_JUDGMENTS = 50  # judgments that the LLM repeats, one call each


def measure_judge_agreement(
    test_set: TestSet, texts: Texts, endpoint: Endpoint, should_stop: ShouldStop | None = None
) -> JudgeAgreement:
    """Return how well the endpoint's grades agree with the test set's, and the reasons for missing ones."""
    questions = {question.id: question.text for question in test_set.questions}
    judgeable = [
        judgment
        for judgment in test_set.judgments
        if judgment.question_id in questions and texts.judged_text(judgment).strip()
    ]
    chosen = sample_judgments(judgeable, MAX_JUDGMENTS)
    graded = grade_judgments(endpoint, chosen, questions, texts.judged_text, should_stop)
    return {
        **measure_agreement(chosen, graded.judgments),
        "model": endpoint.model,
        "not_graded": len(chosen) - len(graded.judgments),
        "reasons": dict(graded.reasons),
    }


def sample_judgments(judgments: Sequence[Judgment], most: int) -> list[Judgment]:
    """Return at most ``most`` judgments, always the same ones, half of them relevant if possible."""
    ordered = sorted(
        judgments, key=lambda judgment: hashlib.sha256(f"{judgment.question_id}|{judgment.document}".encode()).digest()
    )
    relevant = [judgment for judgment in ordered if judgment.grade > 0]
    others = [judgment for judgment in ordered if judgment.grade <= 0]
    first = max(most // 2, most - len(others))
    return [*relevant[:first], *others[: most - len(relevant[:first])]]


def describe_agreement(figures: JudgeAgreement) -> str:
    """Return the agreement as a sentence."""
    if not figures["pairs"]:
        why = "; ".join(figures["reasons"]) or "No judged text of the test set still exists."
        return f"The agreement of the LLM {figures['model']!r} with the test set could not be measured: {why}"
    agreed = round((figures["agreement"] or 0.0) * figures["pairs"])
    kappa = "" if figures["kappa"] is None else f" (kappa {figures['kappa']:.2f}; 0 is chance, 1 is perfect)"
    rest = f" {figures['not_graded']} were not graded: {'; '.join(figures['reasons'])}" if figures["not_graded"] else ""
    judgments = f"{agreed} of {figures['pairs']} judgments{kappa}"
    return f"The LLM {figures['model']!r} agrees with the test set on {judgments}.{rest}"

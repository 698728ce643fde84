"""Fitting the weights of a ranker: a listwise logistic model over documents with a prior on the weights.

For a question with candidates d, gains g (grades) and features x, the model fits softmax(w . x) to g / sum(g):

    loss(w) = - sum over questions and d of g_d / sum(g) * log softmax(w . x)_d  +  penalty / 2 * |w - prior|^2

(ListNet's top-one probabilities: Cao et al., ICML 2007.) A document is represented by its best passage, as
in the metrics, so fitting alternates with choosing passages. Between these steps the loss is convex, and Newton's
method finds its only minimum, so the weights are deterministic.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evals.gateway import IndexedCorpus, extract_features
from evals.test_set import Judgment, TestSet
from workbench.errors import Cancelled
from workbench.retrieval.ranker import NAMES, NONNEGATIVE_FEATURES, RERANK_SCORE, FeatureArray, FeatureSheet
from workbench.types import OnProgress, Progress, ShouldStop
from workbench.workbench import Workbench

# Training material


@dataclass(frozen=True)
class QuestionSheet:
    """One question: rows are candidate passages, with the keys of their ``documents`` and their ``grades`` (0 or more).

    ``eligible`` rows may represent their document; if spans were judged, only passages that touch one are eligible.
    ``orders`` has the rows, best first, by fixed strategy.
    """

    question_id: str
    documents: tuple[str, ...]
    scaled: FeatureArray
    grades: FeatureArray
    eligible: NDArray[np.bool_]
    orders: dict[str, tuple[int, ...]]


def make_sheets(
    wb: Workbench,
    test_set: TestSet,
    corpus: IndexedCorpus,
    *,
    on_progress: OnProgress | None = None,
    should_stop: ShouldStop | None = None,
) -> list[QuestionSheet]:
    """Ask every answerable question once and return its candidates' features, in the test set's order.

    A question without results is omitted. Raises Cancelled, and errors of a search.
    """
    sheets: list[QuestionSheet] = []
    total = len(test_set.answerable)
    for done, question in enumerate(test_set.answerable, start=1):
        if should_stop is not None and should_stop():
            raise Cancelled("Stopped; no ranker was trained.")
        found = extract_features(wb, question, corpus)
        if found is not None:
            sheets.append(make_sheet(question.id, *found, test_set, corpus))
        if on_progress is not None:
            on_progress(Progress(done, total, "computing features"))
    return sheets


def make_sheet(
    question_id: str, sheet: FeatureSheet, orders: dict[str, tuple[int, ...]], test_set: TestSet, corpus: IndexedCorpus
) -> QuestionSheet:
    """Return the sheet of a question, with the test set's judgments."""
    grades = test_set.qrels[question_id]
    documents = tuple(corpus.key(document) for document in sheet.documents)
    spans = test_set.spans.get(question_id, ())
    touched = [_touches_span(key, span, spans) for key, span in zip(documents, sheet.spans, strict=True)]
    return QuestionSheet(
        question_id=question_id,
        documents=documents,
        scaled=sheet.scaled,
        grades=np.array([max(0, grades.get(key, 0)) for key in documents], dtype=np.float64),
        eligible=np.array(touched, dtype=bool),
        orders=orders,
    )


def rank_documents(sheet: QuestionSheet, rows: Sequence[int]) -> list[str]:
    """Return the distinct documents of rows, best first."""
    return list(dict.fromkeys(sheet.documents[row] for row in rows))


def rank_by_weights(sheet: QuestionSheet, weights: FeatureArray) -> list[str]:
    """Return the documents ranked by weights, with ties as in rerank."""
    scores = sheet.scaled @ weights
    return rank_documents(sheet, [int(row) for row in np.argsort(-scores, kind="stable")])


def _touches_span(key: str, span: tuple[int, int], spans: Sequence[Judgment]) -> bool:
    own = [judged for judged in spans if judged.document == key]
    start, end = span
    return not own or any((judged.start or 0) < end and start < (judged.end or 0) for judged in own)


PENALTIES = (0.3, 1.0, 10.0, 100.0)
FIT_ROUNDS = 3  # rounds of choosing passages and fitting
MAX_NEWTON_STEPS = 25  # maximum steps of Newton's method
MIN_STEP = 1e-9
GRADIENT_TOLERANCE = 1e-6  # gradient norm per question
PRIOR_SHARPNESS = 10.0  # inverse temperature of the softmax over rerank's scores
INNER_FOLDS = 3
NDCG_CUTOFF = 10  # the penalty is chosen by nDCG@10


@dataclass(frozen=True, slots=True)
class FittedWeights:
    """Weights by ``NAMES``, with the chosen penalty and the number of the chosen prior."""

    weights: FeatureArray
    penalty: float
    prior: int


def make_rerank_prior() -> FeatureArray:
    """Return weights that rank like rerank."""
    return np.array([PRIOR_SHARPNESS if name == RERANK_SCORE else 0.0 for name in NAMES])


def fit_weights(sheets: Sequence[QuestionSheet], prior: FeatureArray, penalty: float) -> FeatureArray:
    """Return the weights that fit the sheets best, regularised towards ``prior``; without usable sheets, the prior."""
    weights = prior
    for _ in range(FIT_ROUNDS):
        features, wanted, held = _pad(sheets, weights)
        if not len(features):
            return prior
        weights = _minimise(features, wanted, held, weights, prior, penalty)
        against = [place for place, name in enumerate(NAMES) if name in NONNEGATIVE_FEATURES and weights[place] < 0]
        if against:  # as if unknown, so that the other features replace it
            features[:, :, against] = 0.0
            weights = _minimise(
                features, wanted, held, np.where(np.isin(range(len(NAMES)), against), 0.0, weights), prior, penalty
            )
    return weights


def fit_best(sheets: Sequence[QuestionSheet], priors: Sequence[FeatureArray]) -> FittedWeights:
    """Fit with the prior and penalty that give the best held-out nDCG@10; the largest penalty wins ties."""
    settings = [(number, penalty) for penalty in sorted(PENALTIES, reverse=True) for number in range(len(priors))]
    parts = split_folds(len(sheets), INNER_FOLDS)
    values = [0.0] * len(settings)
    for place, (number, penalty) in enumerate(settings):
        for left_out in parts:
            others = [sheet for at, sheet in enumerate(sheets) if at not in left_out]
            weights = fit_weights(others, priors[number], penalty)
            values[place] += sum(measure_ndcg(sheets[at], weights) for at in left_out)
    best = max(range(len(settings)), key=lambda place: (round(values[place], 9), -place))
    number, penalty = settings[best]
    return FittedWeights(fit_weights(sheets, priors[number], penalty), penalty, number)


def split_folds(questions: int, parts: int) -> list[range]:
    """Split question positions into folds, round-robin."""
    return [range(part, questions, parts) for part in range(parts)]


def measure_ndcg(sheet: QuestionSheet, weights: FeatureArray) -> float:
    """Return nDCG@10 among the candidates, 0..1, for choosing settings; reports use ir-measures."""
    grade_of = dict(zip(sheet.documents, sheet.grades, strict=True))
    found = [grade_of[document] for document in rank_by_weights(sheet, weights)]
    best = _dcg(sorted(grade_of.values(), reverse=True))
    return _dcg(found) / best if best else 0.0


def _dcg(grades: Iterable[float]) -> float:
    return sum(float(grade) / np.log2(place + 2) for place, grade in enumerate(list(grades)[:NDCG_CUTOFF]))


def _pad(sheets: Sequence[QuestionSheet], weights: FeatureArray) -> tuple[FeatureArray, FeatureArray, FeatureArray]:
    """Return (questions, documents, features), the target shares, and a mask of the documents.

    Questions without both relevant and irrelevant candidates are omitted.
    """
    rows = [own for sheet in sheets if (own := _best_passages(sheet, weights)) is not None]
    widest = max((len(own) for own, _ in rows), default=0)
    features = np.zeros((len(rows), widest, len(NAMES)))
    wanted, held = np.zeros((len(rows), widest)), np.zeros((len(rows), widest))
    for place, (own, gains) in enumerate(rows):
        features[place, : len(own)] = own
        wanted[place, : len(own)] = gains / gains.sum()
        held[place, : len(own)] = 1.0
    return features, wanted, held


def _best_passages(sheet: QuestionSheet, weights: FeatureArray) -> tuple[FeatureArray, FeatureArray] | None:
    """Return the features and grades of each document's best passage."""
    scores = np.where(sheet.eligible, 0.0, -1e9) + sheet.scaled @ weights
    best: dict[str, int] = {}
    for row in np.argsort(-scores, kind="stable"):
        best.setdefault(sheet.documents[row], int(row))
    rows = list(best.values())
    grades = sheet.grades[rows]
    return (sheet.scaled[rows], grades) if 0 < np.count_nonzero(grades) < len(rows) else None


def _minimise(
    features: FeatureArray,
    wanted: FeatureArray,
    held: FeatureArray,
    start: FeatureArray,
    prior: FeatureArray,
    penalty: float,
) -> FeatureArray:
    def measure_loss(weights: FeatureArray) -> float:
        shares = _softmax(features @ weights, held)
        likelihood = float((wanted * np.log(np.where(held > 0, np.maximum(shares, 1e-300), 1.0))).sum())
        return penalty / 2 * float(((weights - prior) ** 2).sum()) - likelihood

    weights, value = start, measure_loss(start)
    for _ in range(MAX_NEWTON_STEPS):
        expected = _softmax(features @ weights, held)
        means = np.einsum("qd,qdf->qf", expected, features)
        slope = (means - np.einsum("qd,qdf->qf", wanted, features)).sum(axis=0) + penalty * (weights - prior)
        if np.linalg.norm(slope) < GRADIENT_TOLERANCE * len(features):
            break
        spread = np.einsum("qdf,qdg->fg", features * expected[:, :, None], features) - means.T @ means
        step = np.linalg.solve(spread + penalty * np.eye(len(NAMES)), slope)
        while (tried := measure_loss(weights - step)) > value and np.linalg.norm(step) > MIN_STEP:
            step = step / 2
        weights, value = weights - step, tried
    return weights


def _softmax(scores: FeatureArray, held: FeatureArray) -> FeatureArray:
    raised = np.where(held > 0, scores, -np.inf)
    raised = np.exp(raised - raised.max(axis=1, keepdims=True))
    return raised / raised.sum(axis=1, keepdims=True)

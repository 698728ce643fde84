"""Training on named test sets, and the learning curve."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np

from evals.gateway import index_corpus
from evals.learning.fitting import QuestionSheet, fit_best, rank_by_weights, rank_documents
from evals.learning.training import (
    TRAINING_METRIC,
    TrainingResult,
    check_enough,
    has_seen_test_set,
    make_priors,
    read_material,
    train,
)
from evals.measures.metrics import measure_rankings
from evals.test_sets.store import load_named_test_set
from workbench.errors import Cancelled
from workbench.retrieval.ranker import FeatureArray, load_default_ranker
from workbench.retrieval.strategies import DEFAULT_STRATEGY
from workbench.types import OnProgress, Progress, Scope, ShouldStop, Value
from workbench.workbench import Workbench

SPLIT_COUNT = 6
TRAINING_SHARES = (0.25, 0.5, 0.75, 1.0)  # of the training half


@dataclass(frozen=True, slots=True)
class CurvePoint(Value):
    """Mean nDCG@10 on the held-out halves; ``spread`` is the standard deviation of the differences."""

    questions: int
    learned: float
    rerank: float
    difference: float
    spread: float


def measure_learning_curve(
    sheets: Sequence[QuestionSheet],
    qrels: Mapping[str, Mapping[str, int]],
    priors: Sequence[FeatureArray],
    *,
    on_progress: OnProgress | None = None,
    should_stop: ShouldStop | None = None,
) -> list[CurvePoint]:
    """Train on parts of one half and measure on the other, for six fixed splits.

    Raises Cancelled.
    """
    figures: dict[float, list[tuple[float, float]]] = {share: [] for share in TRAINING_SHARES}
    total = SPLIT_COUNT * len(TRAINING_SHARES)
    for division in range(SPLIT_COUNT):
        order = list(sheets)
        random.Random(division).shuffle(order)
        half = len(order) // 2
        for share in TRAINING_SHARES:
            if should_stop is not None and should_stop():
                raise Cancelled("Stopped before the curve was finished.")
            weights = fit_best(order[: max(2, round(half * share))], priors).weights
            figures[share].append(_measure_half(order[half:], qrels, weights))
            if on_progress is not None:
                on_progress(Progress(sum(map(len, figures.values())), total, "learning curve"))
    points: list[CurvePoint] = []
    for share, own in figures.items():
        differences = [learned - rerank for learned, rerank in own]
        learned, rerank = (round(fmean(each), 4) for each in zip(*own, strict=True))
        spread = round(float(np.std(differences, ddof=1)), 4)
        questions = round(len(sheets) // 2 * share)
        points.append(CurvePoint(questions, learned, rerank, round(fmean(differences), 4), spread))
    return points


def _measure_half(
    asked: Sequence[QuestionSheet], qrels: Mapping[str, Mapping[str, int]], weights: FeatureArray
) -> tuple[float, float]:
    own = {sheet.question_id: qrels[sheet.question_id] for sheet in asked}
    learned = {sheet.question_id: rank_by_weights(sheet, weights) for sheet in asked}
    fixed = {sheet.question_id: rank_documents(sheet, sheet.orders[DEFAULT_STRATEGY]) for sheet in asked}
    first, second = (
        fmean(measure_rankings(own, each, [TRAINING_METRIC])[TRAINING_METRIC].values()) for each in (learned, fixed)
    )
    return first, second


# Training by the names of test sets

DEFAULT_RANKER_NAME = "learned here"  # default name of a trained ranker


def learn(
    wb: Workbench,
    test_sets: str | Sequence[str],
    name: str,
    *,
    index: str | None = None,
    scope: Scope | None = None,
    afresh: bool = False,
    with_curve: bool = False,
    on_progress: OnProgress | None = None,
    should_stop: ShouldStop | None = None,
) -> tuple[TrainingResult, list[CurvePoint]]:
    """Train a ranker on stored test sets (title or id), folders or the sample; ``wb.rankers.save`` stores it.

    ``scope`` replaces that of the stored test sets. The second value is the learning curve, empty unless
    ``with_curve``.

    Raises:
        InvalidInput: No such test set, or fewer than 30 judged questions. NotFound: No such index. Cancelled.
        ScopeError: An unknown name in the scope, or a part of a test set's scope has been deleted.
    """
    given = [load_named_test_set(wb, key, scope) for key in ([test_sets] if isinstance(test_sets, str) else test_sets)]
    named = list({(test_set.name, test_set.questions_hash): test_set for test_set in given}.values())  # each once
    check_enough(", ".join(test_set.name for test_set in named), sum(len(test_set.answerable) for test_set in named))
    indexed = [
        (test_set, index_corpus(wb, test_set, index, on_progress=on_progress, should_stop=should_stop))
        for test_set in named
    ]
    material = read_material(wb, indexed, wb.corpus.index(index).name, on_progress=on_progress, should_stop=should_stop)
    learned = train(material, name, afresh=afresh, on_progress=on_progress, should_stop=should_stop)
    if not with_curve:
        return learned, []
    priors = make_priors(afresh=afresh or has_seen_test_set(load_default_ranker(), material.titles))
    curve = measure_learning_curve(
        material.sheets, material.qrels, priors, on_progress=on_progress, should_stop=should_stop
    )
    return learned, curve

"""The learning curve: trained on some questions of one half of a test set, asked the other half."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np

from evals.learning.sheets import QuestionSheet, by_weights, ranking
from evals.learning.training import METRIC
from evals.learning.weight_fitting import fit_best
from evals.measures.metrics import measure
from workbench.errors import Cancelled
from workbench.retrieval.ranker import FeatureArray
from workbench.retrieval.strategies import DEFAULT_STRATEGY
from workbench.types import OnProgress, Progress, ShouldStop, Value

DIVISIONS = 6
SHARES = (0.25, 0.5, 0.75, 1.0)  # of the half that is trained on


@dataclass(frozen=True, slots=True)
class CurvePoint(Value):
    """nDCG@10 on the other half, mean of all divisions; ``spread`` is the standard deviation of their differences."""

    questions: int
    learned: float
    rerank: float
    difference: float
    spread: float


def learning_curve(
    sheets: Sequence[QuestionSheet],
    qrels: Mapping[str, Mapping[str, int]],
    priors: Sequence[FeatureArray],
    *,
    on_progress: OnProgress | None = None,
    should_stop: ShouldStop | None = None,
) -> list[CurvePoint]:
    """Train on parts of one half and measure on the other, for six divisions that are the same every time.

    Raises Cancelled.
    """
    figures: dict[float, list[tuple[float, float]]] = {share: [] for share in SHARES}
    total = DIVISIONS * len(SHARES)
    for division in range(DIVISIONS):
        order = list(sheets)
        random.Random(division).shuffle(order)
        half = len(order) // 2
        for share in SHARES:
            if should_stop is not None and should_stop():
                raise Cancelled("Stopped; the curve was not finished.")
            weights = fit_best(order[: max(2, round(half * share))], priors).weights
            figures[share].append(_measured(order[half:], qrels, weights))
            if on_progress is not None:
                on_progress(Progress(sum(map(len, figures.values())), total, "learning curve"))
    return [_point(round(len(sheets) // 2 * share), own) for share, own in figures.items()]


def _measured(
    asked: Sequence[QuestionSheet], qrels: Mapping[str, Mapping[str, int]], weights: FeatureArray
) -> tuple[float, float]:
    own = {sheet.question_id: qrels[sheet.question_id] for sheet in asked}
    learned = {sheet.question_id: by_weights(sheet, weights) for sheet in asked}
    fixed = {sheet.question_id: ranking(sheet, sheet.orders[DEFAULT_STRATEGY]) for sheet in asked}
    first, second = (fmean(measure(own, each, [METRIC])[METRIC].values()) for each in (learned, fixed))
    return first, second


def _point(questions: int, figures: Sequence[tuple[float, float]]) -> CurvePoint:
    differences = [learned - rerank for learned, rerank in figures]
    learned, rerank = (round(fmean(each), 4) for each in zip(*figures, strict=True))
    return CurvePoint(
        questions, learned, rerank, round(fmean(differences), 4), round(float(np.std(differences, ddof=1)), 4)
    )

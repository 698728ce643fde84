"""The arithmetic of a learned ranker: features scaled within one question, weighed, and summed.

Each feature is scaled to 0..1 over a question's candidates and counts as much as its leg's vote. With weights w and
scaled features x the score is

    sum over f of |w_f| * (x_f if w_f >= 0 else 1 - x_f) / sum over f of |w_f|        in 0..1

which orders as w . x does, and of which every part is at least 0, so that an attribution adds up.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from workbench.retrieval.ranker.feature_table import NAMES

FeatureArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class FeatureSheet:
    """The features of a question's candidates: rows are candidates in their order, columns ``NAMES``.

    ``raw`` are the features in their own units, ``scaled`` in 0..1; ``documents`` and ``spans`` say where each
    candidate stands.
    """

    ids: tuple[int, ...]
    documents: tuple[str, ...]
    spans: tuple[tuple[int, int], ...]
    raw: FeatureArray
    scaled: FeatureArray


def scaled_by_question(raw: FeatureArray, votes: Sequence[float]) -> FeatureArray:
    """Scale each column to 0..1 over the rows, times its vote (0..1); a column of equal values becomes 0."""
    low, high = raw.min(axis=0), raw.max(axis=0)
    width = high - low
    told = width > 1e-12
    return np.where(told, (raw - low) / np.where(told, width, 1.0), 0.0) * np.asarray(votes, dtype=np.float64)


def weight_row(weights: Mapping[str, float]) -> FeatureArray:
    """Return the weights in the order of the table; a feature that is not named weighs nothing."""
    return np.array([weights.get(name, 0.0) for name in NAMES], dtype=np.float64)


def shares(scaled: FeatureArray, weights: FeatureArray) -> FeatureArray:
    """Return each feature's part of each candidate's score, at least 0; a row sums to the score, 0..1."""
    total = float(np.abs(weights).sum()) or 1.0
    return np.where(weights >= 0, scaled, 1.0 - scaled) * (np.abs(weights) / total)


def stretched(scores: FeatureArray, low: float, high: float) -> FeatureArray:
    """Spread scores evenly between two bounds, the best to ``high``; equal ones all get it.

    So a score that was learned lies where rerank's lie, and what asks for a share of the best score goes on to work.
    """
    width = float(scores.max() - scores.min())
    if width < 1e-12:
        return np.full_like(scores, high)
    return low + (high - low) * (scores - scores.min()) / width

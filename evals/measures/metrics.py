"""Ranking metrics by ir-measures, which calls trec_eval's own code: no second opinion on what nDCG is."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from evals.measures.families import DEFAULT_METRICS, FAMILIES
from workbench.errors import InvalidInput, choices
from workbench.extras import check_extra

RANKED = {name: row.provider_name for name, row in FAMILIES.items() if row.provider_name}
DEEPEST = 1000
_NAME = re.compile(r"([a-z]+)@([1-9]\d{0,3})")

Qrels = Mapping[str, Mapping[str, int]]
Rankings = Mapping[str, Sequence[str]]  # question id -> document keys, best first


def check_metrics(names: Sequence[str]) -> tuple[str, ...]:
    """Return the metrics' names. Raises InvalidInput for one that is not FAMILY@K with K from 1 to 1000."""
    for name in names:
        match = _NAME.fullmatch(name)
        if not match or match.group(1) not in RANKED or int(match.group(2)) > DEEPEST:
            valid = choices(f"{family}@K" for family in RANKED)
            raise InvalidInput(f"There is no metric {name!r}; use {valid} with K from 1 to {DEEPEST}.")
    if not names:
        raise InvalidInput(f"No metric was named; use some of {choices(DEFAULT_METRICS)}.")
    return tuple(dict.fromkeys(names))


def depth(names: Sequence[str]) -> int:
    """Return how many documents a ranking needs for these metrics."""
    return max(int(name.partition("@")[2]) for name in names)


def rank(scores: Mapping[str, float]) -> list[str]:
    """Return documents as trec_eval ranks them: by falling score, equal scores by falling document id."""
    return sorted(scores, key=lambda document: (scores[document], document), reverse=True)


def measure(qrels: Qrels, rankings: Rankings, names: Sequence[str] = DEFAULT_METRICS) -> dict[str, dict[str, float]]:
    """Return metric -> question id -> value in 0..1, for every question with something relevant.

    A question without a ranking, or with an empty one, counts 0. Grades are gains as they are (trec_eval's nDCG);
    everything above 0 is relevant to the others. A document that is ranked twice counts at its better place.
    """
    check_extra("eval")
    import ir_measures

    names = check_metrics(names)
    judged = {key: dict(grades) for key, grades in qrels.items() if any(grade > 0 for grade in grades.values())}
    values: dict[str, dict[str, float]] = {name: dict.fromkeys(judged, 0.0) for name in names}
    # Distinct falling scores leave no tie to any provider's own taste.
    run = {
        key: {document: -float(place) for place, document in enumerate(dict.fromkeys(rankings[key]))}
        for key in judged
        if rankings.get(key)
    }
    if not run:
        return values
    by_measure: dict[Any, str] = {ir_measures.parse_measure(_theirs(name)): name for name in names}
    for metric in ir_measures.iter_calc(list(by_measure), judged, run):
        values[by_measure[metric.measure]][metric.query_id] = float(metric.value)
    return values


def means(values: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """Return each metric's mean over the questions; 0 where there are none."""
    return {name: fmean(by_question.values()) if by_question else 0.0 for name, by_question in values.items()}


def _theirs(name: str) -> str:
    family, _, cutoff = name.partition("@")
    return f"{RANKED[family]}@{cutoff}"

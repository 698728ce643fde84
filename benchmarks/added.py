"""``python -m benchmarks.added TEST_SET...``: the effect of adding each feature of a ranker to rerank's score.

Both are scaled to 0..1 within the question, as in training; the feature's weight is FEATURE_WEIGHT times the score's.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from evals.gateway import index_corpus
from evals.learning.fitting import QuestionSheet, make_rerank_prior, make_sheets, rank_by_weights
from evals.learning.training import TRAINING_METRIC
from evals.measures.metrics import measure_rankings
from evals.test_sets.store import load_named_test_set
from workbench.errors import WorkbenchError
from workbench.retrieval.ranker import FEATURES, NAMES, RERANK_SCORE, FeatureArray
from workbench.types import Value
from workbench.workbench import Workbench

FEATURE_WEIGHT = 0.05


@dataclass(frozen=True, slots=True)
class AddedFeature(Value):
    """A feature, and the change of nDCG@10 (-1..1) if it is added to rerank's score with FEATURE_WEIGHT."""

    name: str
    why: str
    change: float


def measure_features(sheets: Sequence[QuestionSheet], qrels: Mapping[str, Mapping[str, int]]) -> list[AddedFeature]:
    """Return the effect of each feature over the questions, in the order of the feature table."""
    plain = make_rerank_prior()
    before = _mean_ndcg(sheets, qrels, plain)
    changes: list[AddedFeature] = []
    for feature in FEATURES:
        if feature.name != RERANK_SCORE:
            weights = plain.copy()
            weights[NAMES.index(feature.name)] += FEATURE_WEIGHT * plain[NAMES.index(RERANK_SCORE)]
            changes.append(AddedFeature(feature.name, feature.why, _mean_ndcg(sheets, qrels, weights) - before))
    return changes


def measure_test_set(wb: Workbench, key: str, index: str | None = None) -> list[AddedFeature]:
    """Measure on a stored test set, a folder or the sample. Raises InvalidInput, and what a search raises."""
    test_set = load_named_test_set(wb, key)
    sheets = make_sheets(wb, test_set, index_corpus(wb, test_set, index))
    return measure_features(sheets, {sheet.question_id: test_set.qrels[sheet.question_id] for sheet in sheets})


def format_table(columns: Mapping[str, Sequence[AddedFeature]]) -> str:
    """Return the Markdown table: one row per feature, one column per test set, values in thousandths."""
    head = [f"| added | {' | '.join(columns)} |", "|---|" + "---:|" * len(columns)]
    rows = zip(*columns.values(), strict=True)
    return "\n".join(
        [*head, *(f"| {row[0].why} | {' | '.join(_format_thousandths(one) for one in row)} |" for row in rows)]
    )


def _format_thousandths(added: AddedFeature) -> str:
    return f"{1000 * added.change:+.1f}"


def _mean_ndcg(sheets: Sequence[QuestionSheet], qrels: Mapping[str, Mapping[str, int]], weights: FeatureArray) -> float:
    rankings = {sheet.question_id: rank_by_weights(sheet, weights) for sheet in sheets}
    return fmean(measure_rankings(qrels, rankings, [TRAINING_METRIC])[TRAINING_METRIC].values())


def main(say: Callable[[str], object] = print) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.added", description=__doc__)
    parser.add_argument("test_sets", nargs="+", metavar="TEST_SET", help="a stored test set, a folder, or 'sample'")
    arguments = parser.parse_args()
    try:
        with Workbench.open() as wb:
            say(
                format_table(
                    {key.rstrip("/").rpartition("/")[2]: measure_test_set(wb, key) for key in arguments.test_sets}
                )
            )
    except WorkbenchError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Evaluation of retrieval: test sets, experiments, judges, metrics, learning.

Notebooks use ``wb.evaluate``, ``wb.test_sets``, ``wb.experiments`` and ``wb.learn`` of ``workbench.Workbench``, and the
names below, which are loaded on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evals.evaluation import (
        Cell,
        bootstrap_interval,
        check_comparable,
        compare_all_pairs,
        compare_pairs,
        compare_with_best,
        find_changes,
        locate_quote,
        make_cells,
        make_leaderboard,
        measure_rankings,
        measure_spans,
    )
    from evals.judges.judging import FREE_METRICS, JUDGED_METRICS, Sample, judge_run, measure_samples

_JUDGES = ("FREE_METRICS", "JUDGED_METRICS", "Sample", "judge_run", "measure_samples")

__all__ = [
    "Cell",
    "check_comparable",
    "FREE_METRICS",
    "JUDGED_METRICS",
    "Sample",
    "bootstrap_interval",
    "compare_all_pairs",
    "compare_pairs",
    "compare_with_best",
    "find_changes",
    "judge_run",
    "locate_quote",
    "make_cells",
    "make_leaderboard",
    "measure_rankings",
    "measure_samples",
    "measure_spans",
]


def __getattr__(name: str) -> object:
    """Load a name on first use (PEP 562)."""
    if name not in __all__:
        raise AttributeError(f"module 'evals' has no attribute {name!r}")
    if name in _JUDGES:
        from evals.judges import judging

        return vars(judging)[name]
    from evals import evaluation

    return vars(evaluation)[name]

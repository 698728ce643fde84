"""Judges: ragas and LLMs, within limits; missing scores have a reason. The only package that imports ragas."""

from evals.judges.ragas import (
    FREE_METRICS,
    INVALID_ANSWER_REASON,
    JUDGED_METRICS,
    JudgedMetric,
    Sample,
    measure_samples,
)

__all__ = ["FREE_METRICS", "JUDGED_METRICS", "INVALID_ANSWER_REASON", "JudgedMetric", "Sample", "measure_samples"]

"""Judges: ragas and LLMs, within limits, never hiding what they could not say. The only package that imports ragas."""

from evals.judges.ragas import (
    FREE_METRICS,
    INVALID_ANSWER_REASON,
    JUDGED_METRICS,
    JudgedMetric,
    Sample,
    measure_samples,
)

__all__ = ["FREE_METRICS", "JUDGED_METRICS", "INVALID_ANSWER_REASON", "JudgedMetric", "Sample", "measure_samples"]

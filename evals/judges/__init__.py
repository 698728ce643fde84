"""Judges: LLMs with our prompts or those of ragas, within limits; missing scores have a reason."""

from evals.judges.endpoint import INVALID_ANSWER_REASON
from evals.judges.scores import (
    FREE_METRICS,
    JUDGED_METRICS,
    JudgedMetric,
    Sample,
    measure_samples,
)

__all__ = ["FREE_METRICS", "JUDGED_METRICS", "INVALID_ANSWER_REASON", "JudgedMetric", "Sample", "measure_samples"]

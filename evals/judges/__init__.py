"""Judges: ragas and LLMs, within limits, never hiding what they could not say. The only package that imports ragas."""

from evals.judges.metrics import FREE, JUDGED, NONSENSE, Judged, Sample, answers, judge

__all__ = ["FREE", "JUDGED", "NONSENSE", "Judged", "Sample", "answers", "judge"]

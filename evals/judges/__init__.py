"""Judges: ragas and LLMs, within limits, never hiding what they could not say. The only package that imports ragas."""

from evals.judges.ragas import FREE, JUDGED, NONSENSE, JudgedMetric, Sample, judge

__all__ = ["FREE", "JUDGED", "NONSENSE", "JudgedMetric", "Sample", "judge"]

"""The verdicts that are kept beside a run's metrics: what ragas measured, and how far its judge can be trusted."""

from __future__ import annotations

from typing import TypedDict


class RagasSummary(TypedDict):
    """One ragas metric of a run: its mean (None: nothing was measured) over how many questions, and why not others."""

    mean: float | None
    measured: int
    not_measured: int
    reasons: dict[str, int]


class Agreement(TypedDict):
    """How far two judges agree: on ``pairs`` places the share of equal verdicts and Cohen's kappa, 0 is chance."""

    pairs: int
    agreement: float | None
    kappa: float | None


class JudgeAgreement(Agreement):
    """How far a language model agrees with a test set's judgments; ``reasons`` why it graded some not, how often."""

    model: str
    not_graded: int
    reasons: dict[str, int]


class Verdicts(TypedDict, total=False):
    """Everything that was said of a run besides its metrics; a part that nobody asked for is missing."""

    ragas: dict[str, RagasSummary]
    judge: JudgeAgreement

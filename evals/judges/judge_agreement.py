"""The agreement of a language model's grades with the test set's own: the worth of its other verdicts."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from evals.judges.endpoint import Endpoint
from evals.judges.grading import agreement, grade
from evals.judges.texts import Texts
from evals.measures.verdicts import JudgeAgreement
from evals.test_set import Judgment, TestSet
from workbench.types import ShouldStop

JUDGMENTS = 50  # of a test set that the LLM grades anew; each is a call


def judge_agreement(
    test_set: TestSet,
    texts: Texts,
    endpoint: Endpoint,
    most: int = JUDGMENTS,
    should_stop: ShouldStop | None = None,
) -> JudgeAgreement:
    """Return how far the endpoint's grades agree with the test set's, and the reasons for missing ones."""
    questions = {question.id: question.text for question in test_set.questions}
    judgeable = [
        judgment
        for judgment in test_set.judgments
        if judgment.question_id in questions and texts.judged(judgment).strip()
    ]
    chosen = drawn(judgeable, most)
    graded = grade(endpoint, chosen, questions, texts.judged, should_stop)
    return {
        **agreement(chosen, graded.judgments),
        "model": endpoint.model,
        "not_graded": len(chosen) - len(graded.judgments),
        "reasons": dict(graded.reasons),
    }


def drawn(judgments: Sequence[Judgment], most: int) -> list[Judgment]:
    """Return at most ``most`` judgments, the same ones every time: as many that say "relevant" as not, if there are."""
    ordered = sorted(
        judgments, key=lambda judgment: hashlib.sha256(f"{judgment.question_id}|{judgment.document}".encode()).digest()
    )
    relevant = [judgment for judgment in ordered if judgment.grade > 0]
    others = [judgment for judgment in ordered if judgment.grade <= 0]
    first = max(most // 2, most - len(others))
    return [*relevant[:first], *others[: most - len(relevant[:first])]]


def sentence(figures: JudgeAgreement) -> str:
    """Say it to people."""
    if not figures["pairs"]:
        why = "; ".join(figures["reasons"]) or "The test set holds no judgment of a text that is there."
        return f"How far the LLM {figures['model']!r} agrees with the test set's judgments could not be measured: {why}"
    agreed = round((figures["agreement"] or 0.0) * figures["pairs"])
    kappa = "" if figures["kappa"] is None else f" (kappa {figures['kappa']:.2f}; 0 is chance, 1 is always)"
    rest = (
        f" {figures['not_graded']} it did not grade: {'; '.join(figures['reasons'])}" if figures["not_graded"] else ""
    )
    judgments = f"{agreed} of {figures['pairs']} judgments{kappa}"
    return f"The LLM {figures['model']!r} agrees with the test set on {judgments}.{rest}"

"""How far a language model's grades agree with the test set's own: what its other verdicts are worth."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from evals.dataset import Dataset, Judgment
from evals.endpoint import Endpoint
from evals.judges.grading import agreement, grade
from evals.texts import Texts

JUDGMENTS = 50  # of a test set that the LLM grades anew; each is a call


def judge_agreement(dataset: Dataset, texts: Texts, endpoint: Endpoint, most: int = JUDGMENTS) -> dict[str, Any]:
    """Return how far the endpoint's grades agree with the test set's, and why what was not graded was not."""
    questions = {question.id: question.text for question in dataset.questions}
    there = [one for one in dataset.judgments if one.question_id in questions and texts.judged(one).strip()]
    chosen = drawn(there, most)
    graded = grade(endpoint, chosen, questions, texts.judged)
    return agreement(chosen, graded.judgments) | {
        "model": endpoint.model,
        "not_graded": len(chosen) - len(graded.judgments),
        "reasons": dict(graded.reasons),
    }


def drawn(judgments: Sequence[Judgment], most: int) -> list[Judgment]:
    """Return at most ``most`` judgments, the same ones every time: as many that say "relevant" as not, if there are."""
    ordered = sorted(judgments, key=lambda one: hashlib.sha256(f"{one.question_id}|{one.document}".encode()).digest())
    relevant = [one for one in ordered if one.grade > 0]
    others = [one for one in ordered if one.grade <= 0]
    first = max(most // 2, most - len(others))
    return [*relevant[:first], *others[: most - len(relevant[:first])]]


def sentence(found: Mapping[str, Any]) -> str:
    """Say it to people."""
    if not found["pairs"]:
        why = "; ".join(found["reasons"]) or "The test set holds no judgment of a text that is there."
        return f"How far the LLM {found['model']!r} agrees with the test set's judgments could not be measured: {why}"
    agreed = round(found["agreement"] * found["pairs"])
    kappa = "" if found["kappa"] is None else f" (kappa {found['kappa']:.2f}; 0 is chance, 1 is always)"
    rest = f" {found['not_graded']} it did not grade: {'; '.join(found['reasons'])}" if found["not_graded"] else ""
    return (
        f"The LLM {found['model']!r} agrees with the test set on {agreed} of {found['pairs']} judgments{kappa}.{rest}"
    )

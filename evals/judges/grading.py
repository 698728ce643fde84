"""Grades of an LLM for places that a person has graded: how far the two agree, before it is trusted with the rest."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from evals.judges.endpoint import Endpoint
from evals.judges.ragas_metrics import NONSENSE
from evals.judges.stopping import run_judging
from evals.measures.verdicts import Agreement
from evals.test_set import GRADES, Judgment
from workbench.errors import ModelError
from workbench.types import JsonObject, ShouldStop

MOST_CHARACTERS = 6_000  # of a document, about 1,500 tokens, which small local models read well
_FIRST = re.compile(r"\W*(relevant|partly|not)\b", re.IGNORECASE)  # further on, "not" may mean anything
_PROMPT = """How well does the text answer the question? Reply with one word:
relevant - it answers the question by itself
partly - it answers a part of it
not - it does not answer it

Question: {question}

Text: {text}

Grade:"""


@dataclass(frozen=True)
class Grading:
    """The LLM's judgments of the same places; ``reasons`` says why, and how often, there is none."""

    judgments: tuple[Judgment, ...]
    reasons: Mapping[str, int]


def grade(
    endpoint: Endpoint,
    judged: Sequence[Judgment],
    questions: Mapping[str, str],
    text_of: Callable[[Judgment], str],
    should_stop: ShouldStop | None = None,
) -> Grading:
    """Grade the same places anew; ``questions`` by id, ``text_of`` gives the text that a judgment is about."""
    verdicts = run_judging(lambda: _grade_all(endpoint, judged, questions, text_of), should_stop)
    graded = [
        replace(judgment, grade=value)
        for judgment, value in zip(judged, verdicts, strict=True)
        if isinstance(value, int)
    ]
    return Grading(tuple(graded), dict(Counter(value for value in verdicts if isinstance(value, str))))


def agreement(human: Sequence[Judgment], llm: Sequence[Judgment]) -> Agreement:
    """Return how far two judges agree where both judged: the share of equal verdicts, and Cohen's kappa.

    A verdict is relevant or not (grade above 0). kappa = (observed - expected) / (1 - expected), where expected is
    the agreement of two judges who say "relevant" as often but by chance (Cohen 1960); None where it is undefined.
    """
    first = {(j.question_id, j.document, j.start, j.end): j.grade > 0 for j in human}
    second = {(j.question_id, j.document, j.start, j.end): j.grade > 0 for j in llm}
    both = [(first[place], second[place]) for place in first if place in second]
    if not both:
        return {"pairs": 0, "agreement": None, "kappa": None}
    observed = sum(a == b for a, b in both) / len(both)
    yes_a, yes_b = (sum(verdicts) / len(both) for verdicts in zip(*both, strict=True))
    expected = yes_a * yes_b + (1 - yes_a) * (1 - yes_b)
    kappa = None if expected == 1 else round((observed - expected) / (1 - expected), 6)
    return {"pairs": len(both), "agreement": round(observed, 6), "kappa": kappa}


async def _grade_all(
    endpoint: Endpoint, judged: Sequence[Judgment], questions: Mapping[str, str], text_of: Callable[[Judgment], str]
) -> list[int | str]:
    one_of: JsonObject = {"type": "string", "enum": list(GRADES)}

    async def verdict_of(judgment: Judgment) -> int | str:
        text = text_of(judgment)[:MOST_CHARACTERS]
        try:
            reply = await endpoint.complete(
                _PROMPT.format(question=questions[judgment.question_id], text=text), schema=one_of
            )
        except ModelError as error:
            return str(error)
        match = _FIRST.match(reply)
        return GRADES[match.group(1).lower()] if match else NONSENSE

    async with endpoint:
        return list(await asyncio.gather(*(verdict_of(judgment) for judgment in judged)))

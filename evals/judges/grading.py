"""An LLM grades what a person has graded, to see how far the two agree before an LLM is trusted with the rest."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

from evals.dataset import GRADES, Judgment
from evals.endpoint import Endpoint
from evals.judges.metrics import NONSENSE
from workbench.errors import ModelError

MOST_CHARACTERS = 6_000  # of a document, about 1,500 tokens: what small local models read well
_FIRST = re.compile(r"\W*(relevant|partly|not)\b", re.IGNORECASE)  # further on, "not" may mean anything
_PROMPT = """How well does the text answer the question? Reply with one word:
relevant - it answers the question by itself
partly - it answers a part of it
not - it does not answer it

Question: {question}

Text: {text}

Grade:"""


@dataclass(frozen=True)
class Graded:
    """The LLM's judgments of the same places; ``reasons`` says why, and how often, there is none."""

    judgments: tuple[Judgment, ...]
    reasons: Mapping[str, int]


def grade(
    endpoint: Endpoint, judged: Sequence[Judgment], questions: Mapping[str, str], text_of: Callable[[Judgment], str]
) -> Graded:
    """Grade what was judged, anew; ``questions`` by id, ``text_of`` gives what a judgment is about."""
    with ThreadPoolExecutor(1) as pool:
        given = pool.submit(asyncio.run, _grade_all(endpoint, judged, questions, text_of)).result()
    found = [replace(one, grade=value) for one, value in zip(judged, given, strict=True) if isinstance(value, int)]
    return Graded(tuple(found), dict(Counter(value for value in given if isinstance(value, str))))


def agreement(human: Sequence[Judgment], llm: Sequence[Judgment]) -> dict[str, Any]:
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
    async def one(judgment: Judgment) -> int | str:
        text = text_of(judgment)[:MOST_CHARACTERS]
        try:
            reply = await endpoint.complete(_PROMPT.format(question=questions[judgment.question_id], text=text))
        except ModelError as error:
            return str(error)
        found = _FIRST.match(reply)
        return GRADES[found.group(1).lower()] if found else NONSENSE

    async with endpoint:
        return list(await asyncio.gather(*(one(judgment) for judgment in judged)))

"""Questions written by an LLM, through ragas' prompts: one for each of some passages, with the answer it should get."""

from __future__ import annotations

import asyncio
import hashlib
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evals.judges.endpoint import Endpoint
from evals.judges.ragas_llm import judge_llm, ragas
from evals.judges.ragas_metrics import NONSENSE
from evals.judges.stopping import run_judging
from evals.test_set import Judgment, Question
from workbench.errors import ModelError
from workbench.types import Value

MIN_QUESTION_CHARS = 8  # characters of a question that asks anything


@dataclass(frozen=True, slots=True)
class PassageToAsk(Value):
    """A passage that a question is wanted for; ``document`` is what judgments call its document."""

    document: str
    text: str
    start: int
    end: int


@dataclass(frozen=True)
class WrittenQuestions:
    """Questions that the LLM wrote; ``reasons`` says why, and how often, a passage got no question."""

    questions: tuple[Question, ...]
    judgments: tuple[Judgment, ...]
    reasons: Mapping[str, int]


def write_questions(endpoint: Endpoint, passages: Sequence[PassageToAsk]) -> WrittenQuestions:
    """Ask the LLM for one question a passage; ends whatever it does, within the endpoint's limits."""
    written = run_judging(lambda: _write_all(endpoint, passages))
    questions: dict[str, Question] = {}
    judgments = []
    for passage, (text, answer, _) in zip(passages, written, strict=True):
        if not text:
            continue
        key = "llm_" + hashlib.sha256(f"{passage.document}|{passage.start}|{text}".encode()).hexdigest()[:12]
        metadata = {"written_by": endpoint.model}
        questions[key] = Question(key, text, answer, origin="llm", metadata=metadata)
        judgments.append(Judgment(key, passage.document, 2, passage.start, passage.end, passage.text))
    reasons = Counter(reason for _, _, reason in written if reason)
    return WrittenQuestions(tuple(questions.values()), tuple(judgments), dict(reasons))


async def _write_all(endpoint: Endpoint, passages: Sequence[PassageToAsk]) -> list[tuple[str, str, str]]:
    prompt, passage_input = _prompt()
    async with endpoint:
        llm = judge_llm(endpoint)

        async def question_of(passage: PassageToAsk) -> tuple[str, str, str]:
            try:
                written = await prompt.generate(llm=llm, data=passage_input(passage=passage.text))
            except ModelError as error:
                return "", "", str(error)
            except (ragas().RagasOutputParserException, ValueError, TypeError, KeyError, IndexError, AttributeError):
                return "", "", NONSENSE
            text = " ".join(written.question.split())
            return (text, written.answer.strip(), "") if len(text) >= MIN_QUESTION_CHARS else ("", "", NONSENSE)

        return list(await asyncio.gather(*(question_of(passage) for passage in passages)))


def _prompt() -> tuple[Any, Any]:
    """Return the prompt and the class of its input; made here, because their base classes are ragas'."""
    ragas()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from ragas.prompt import PydanticPrompt
    from pydantic import BaseModel, Field

    class PassageInput(BaseModel):
        passage: str = Field(description="A passage of a document")

    class Written(BaseModel):
        question: str = Field(description="A question that the passage answers by itself")
        answer: str = Field(description="The answer, in one or two sentences of the passage's content")

    class WriteQuestion(PydanticPrompt[PassageInput, Written]):
        name = "write_question"
        instruction = (
            "Write one question that a person who has not seen the passage might ask and that the passage answers. "
            "Do not mention the passage, and do not repeat its wording where other words say the same."
        )
        input_model = PassageInput
        output_model = Written
        examples = [  # noqa: RUF012 - ragas reads it from the class
            (
                PassageInput(passage="Herons stand still in shallow water until a fish comes within reach."),
                Written(question="How do herons hunt?", answer="They wait motionless in shallow water for fish."),
            )
        ]

    return WriteQuestion(), PassageInput

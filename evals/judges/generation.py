"""Made questions for a test set: by rules, or by an LLM if there is one; each is marked as what it is."""

from __future__ import annotations

import asyncio
import hashlib
import random
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evals.gateway import list_documents, resolve_scope
from evals.judges.endpoint import Endpoint
from evals.judges.ragas import INVALID_ANSWER_REASON, judge_llm, ragas, run_judging
from evals.test_set import Judgment, Question, StoredCorpus, TestSet
from evals.test_sets.exchange import ImportReport
from evals.test_sets.questions import synthesise
from evals.test_sets.store import TestSetStore
from workbench.errors import InvalidInput, ModelError
from workbench.types import Document, Value
from workbench.workbench import Workbench

MAX_DOCUMENTS = 500  # read at once; of a larger corpus a random, repeatable choice
MIN_PASSAGE_CHARS = 200  # characters of a passage that an LLM is asked to write a question for
SAMPLE_SEED = 7


def add_synthetic(wb: Workbench, store: TestSetStore, key: str, count: int) -> ImportReport:
    """Add up to ``count`` questions made by rule from English statements and headings.

    Where the documents give fewer, the report's ``problems`` say so.

    Raises:
        InvalidInput: a count below 1, or no documents to make questions from.
    """
    documents, keys = _load_documents(wb, store.load(key))
    questions, judgments = synthesise(documents, keys, count)
    added = store.add_questions(key, questions)
    if judgments:
        store.judge_all(key, judgments, judge="rule")
    problems: tuple[str, ...] = ()
    if len(questions) < count:
        problems = (
            f"{len(questions)} of {count} questions could be made: only statements in English that answer a question "
            "by themselves, and headings that ask one, are used.",
        )
    return ImportReport(len(added), len(judgments), problems)


def add_llm_questions(wb: Workbench, store: TestSetStore, key: str, count: int, endpoint: Endpoint) -> ImportReport:
    """Add up to ``count`` questions that an LLM writes, one for each of some passages; problems say what failed.

    Raises:
        InvalidInput: a count below 1, or no passage long enough.
    """
    if count < 1:
        raise InvalidInput(f"The number of questions cannot be {count}; use a whole number of at least 1.")
    test_set = store.load(key)
    index = _find_index_name(wb, test_set)
    documents, keys = _load_documents(wb, test_set)
    passages = [
        SourcePassage(name, passage.text, *passage.span)
        for document, name in zip(documents, keys, strict=True)
        for passage in wb.documents.passages(document.id, index=index)
        if len(passage.text) >= MIN_PASSAGE_CHARS
    ]
    if not passages:
        raise InvalidInput("No passage is long enough to ask about; bring documents in first.")
    chosen = random.Random(SAMPLE_SEED).sample(passages, min(count, len(passages)))
    written = write_questions(endpoint, chosen)
    added = store.add_questions(key, written.questions) if written.questions else []
    if written.judgments:
        store.judge_all(key, written.judgments, judge="rule")
    problems = tuple(f"{times} passages got no question: {reason}" for reason, times in written.reasons.items())
    return ImportReport(len(added), len(written.judgments), problems)


def _load_documents(wb: Workbench, test_set: TestSet) -> tuple[list[Document], list[str]]:
    """Return documents of the test set's scope with their texts, and what judgments call them.

    Raises:
        InvalidInput: there are none. ScopeError: a part of the scope has been deleted.
    """
    own = test_set.corpus if isinstance(test_set.corpus, StoredCorpus) else None
    listed = (
        wb.documents.list(source_id=own.source_id) if own else list_documents(wb, resolve_scope(wb, test_set.scope))
    )
    if not listed:
        where = "" if own or test_set.scope.is_everything else f" in the scope of this test set ({test_set.scope.text})"
        raise InvalidInput(f"There are no documents{where} to make questions from; bring some in first.")
    if len(listed) > MAX_DOCUMENTS:
        listed = random.Random(SAMPLE_SEED).sample(listed, MAX_DOCUMENTS)
    documents = [wb.documents.get(entry.id) for entry in listed]
    return documents, [str(document.path) if own else document.id for document in documents]


def _find_index_name(wb: Workbench, test_set: TestSet) -> str:
    from evals.gateway import index_corpus

    return index_corpus(wb, test_set).index.name


# Questions written by an LLM

MIN_QUESTION_CHARS = 8  # characters of a question that asks anything


@dataclass(frozen=True, slots=True)
class SourcePassage(Value):
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


def write_questions(endpoint: Endpoint, passages: Sequence[SourcePassage]) -> WrittenQuestions:
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


async def _write_all(endpoint: Endpoint, passages: Sequence[SourcePassage]) -> list[tuple[str, str, str]]:
    prompt, passage_input = _make_prompt()
    async with endpoint:
        llm = judge_llm(endpoint)

        async def question_of(passage: SourcePassage) -> tuple[str, str, str]:
            try:
                written = await prompt.generate(llm=llm, data=passage_input(passage=passage.text))
            except ModelError as error:
                return "", "", str(error)
            except (ragas().RagasOutputParserException, ValueError, TypeError, KeyError, IndexError, AttributeError):
                return "", "", INVALID_ANSWER_REASON
            text = " ".join(written.question.split())
            return (
                (text, written.answer.strip(), "")
                if len(text) >= MIN_QUESTION_CHARS
                else ("", "", INVALID_ANSWER_REASON)
            )

        return list(await asyncio.gather(*(question_of(passage) for passage in passages)))


def _make_prompt() -> tuple[Any, Any]:
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

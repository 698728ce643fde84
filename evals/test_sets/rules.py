"""Questions without an LLM: from English statements that have the form of an answer, and from headings that ask.

They repeat the documents' own words, which favours keyword search; their origin "synthetic" says so wherever they
are shown, and ``metadata["made_from"]`` names the form. A question that two documents give, or that says no word
which tells documents apart, is left out: fewer questions that one would ask are better than many.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from evals.test_set import Judgment, Question
from evals.test_sets.question_forms import ARTICLES, question_of_heading, questions_of
from workbench.errors import InvalidInput
from workbench.ingestion.chunking.blocks import Block, blocks_of, heading_text
from workbench.sentences import sentence_spans
from workbench.types import Document

LETTER_WORD = re.compile(r"[^\W\d_][\w'-]*")
ASKING = frozenset("what is are was were does do did how i can when where why who the a an of to in".split())  # noqa: SIM905
FEW, COMMON = 3, 0.1  # a question says a word that so many documents hold at most, or this share of them


@dataclass(frozen=True, slots=True)
class MadeQuestion:
    """A question and the stretch of the document it was made from."""

    kind: str
    text: str
    start: int
    end: int


def synthesise(documents: Sequence[Document], keys: Sequence[str], count: int) -> tuple[list[Question], list[Judgment]]:
    """Make up to ``count`` questions, spread over the documents and the forms; the same ones every time.

    ``keys`` are what judgments call the documents, whose ``text`` must be there.

    Raises:
        InvalidInput: a count below 1.
    """
    if count < 1:
        raise InvalidInput(f"The number of questions cannot be {count}; use a whole number of at least 1.")
    written = Counter(word for document in documents for word in LETTER_WORD.findall(document.text or ""))
    holding = Counter(word for document in documents for word in set(_words(document.text or "")))

    def is_common(word: str) -> bool:
        return word in ARTICLES or written[word] > written[word.capitalize()]

    rounds = [list(_questions_of(document, is_common)) for document in documents]
    times = Counter(text for made in rounds for text in {one.text.casefold() for one in made})
    rare = max(FEW, COMMON * len(documents))
    rounds = [
        [
            one
            for one in made
            if times[one.text.casefold()] == 1 and any(holding[w] <= rare for w in _subject_of(one.text))
        ]
        for made in rounds
    ]
    questions: dict[str, Question] = {}
    judgments = []
    for turn in range(max((len(candidates) for candidates in rounds), default=0)):
        for document, key, candidates in zip(documents, keys, rounds, strict=True):
            if turn >= len(candidates) or len(questions) >= count or candidates[turn].text.casefold() in questions:
                continue
            candidate = candidates[turn]
            question_id = "syn_" + hashlib.sha256(f"{key}|{candidate.text.casefold()}".encode()).hexdigest()[:12]
            metadata = {"made_from": candidate.kind}
            question = Question(question_id, candidate.text, origin="synthetic", metadata=metadata)
            questions[candidate.text.casefold()] = question
            quote = (document.text or "")[candidate.start : candidate.end]
            judgments.append(Judgment(question_id, key, 2, candidate.start, candidate.end, quote))
    return list(questions.values()), judgments


def _questions_of(document: Document, is_common: Callable[[str], bool]) -> Iterator[MadeQuestion]:
    """Yield a document's questions, one of each kind in turn."""
    text = document.text or ""
    blocks = blocks_of(text)
    kinds: dict[str, list[MadeQuestion]] = {}
    for question in (*_from_statements(text, blocks, is_common), *_from_headings(text, blocks)):
        kinds.setdefault(question.kind, []).append(question)
    for turn in range(max(map(len, kinds.values()), default=0)):
        yield from (of_kind[turn] for of_kind in kinds.values() if turn < len(of_kind))


def _from_statements(text: str, blocks: Sequence[Block], is_common: Callable[[str], bool]) -> Iterator[MadeQuestion]:
    for block in blocks:
        if block.kind not in ("text", "list"):
            continue
        for start, end in sentence_spans(text, block.start, block.end):
            for kind, question in questions_of(text[start:end], is_common):
                yield MadeQuestion(kind, question, start, end)


def _from_headings(text: str, blocks: Sequence[Block]) -> Iterator[MadeQuestion]:
    """Yield the headings that are questions, or name something to do."""
    for block, after in pairwise(blocks):
        if block.kind != "heading" or after.kind == "heading":
            continue
        question = question_of_heading(heading_text(text[block.start : block.end]).strip())
        if question is None:
            continue
        section = [
            other for other in blocks if other.start >= block.start and other.path[: len(block.path)] == block.path
        ]
        yield MadeQuestion("heading", question, block.start, max(other.end for other in section))


def _words(text: str) -> list[str]:
    return [word.casefold() for word in LETTER_WORD.findall(text)]


def _subject_of(question: str) -> list[str]:
    """Return the words of a question that say what it is about."""
    return [word for word in _words(question) if word not in ASKING]

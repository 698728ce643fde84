"""Questions without an LLM: from headings, definitions and distinctive sentences; good for a first look, no more.

They repeat the documents' own words, which favours keyword search; their origin "synthetic" says so wherever they
are shown, and ``metadata["made_from"]`` says what each was made from.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from evals.dataset import Judgment, Question
from workbench.errors import InvalidInput
from workbench.ingestion.chunking.blocks import Block, blocks_of, heading_text
from workbench.sentences import sentence_spans
from workbench.types import Document

DEFINITION = re.compile(
    r"(?:An?|The)?\s*(?P<term>[A-Z][\w-]*(?: [\w-]+){0,4}?) (?:is|are|means|refers to|denotes) (?:an?|the|any|how)\b"
)
PRONOUNS = frozenset("it this that these those they he she we you i there here one what which who".split())  # noqa: SIM905
SAYS_NOTHING = frozenset(
    """introduction overview summary conclusion background example examples usage notes note see also references links
    description contents details discussion abstract appendix faq further reading related""".split()  # noqa: SIM905
)
WORD = re.compile(r"[^\W\d_][\w'-]*")
SHORTEST, LONGEST = 8, 40  # words of a sentence a question is made from
TAKEN = 6  # words of a distinctive sentence that become the question
COMMON = 0.25  # a word in more than this share of the documents is not distinctive


@dataclass(frozen=True, slots=True)
class Made:
    """A question and the stretch of the document it was made from."""

    kind: str
    text: str
    start: int
    end: int


def synthesise(documents: Sequence[Document], keys: Sequence[str], count: int) -> tuple[list[Question], list[Judgment]]:
    """Make up to ``count`` questions, spread over the documents and over the three kinds; the same ones every time.

    ``keys`` are what judgments call the documents, whose ``text`` must be there.

    Raises:
        InvalidInput: a count below 1.
    """
    if count < 1:
        raise InvalidInput(f"The number of questions cannot be {count}; use a whole number of at least 1.")
    frequencies = Counter(word for document in documents for word in set(_words(document.text or "")))
    rounds = [list(_made(document, frequencies, len(documents))) for document in documents]
    questions: dict[str, Question] = {}
    judgments = []
    for turn in range(max((len(made) for made in rounds), default=0)):
        for document, key, made in zip(documents, keys, rounds, strict=True):
            if turn >= len(made) or len(questions) >= count or made[turn].text.casefold() in questions:
                continue
            one = made[turn]
            question_id = "syn_" + hashlib.sha256(f"{key}|{one.text.casefold()}".encode()).hexdigest()[:12]
            metadata = {"made_from": one.kind}
            question = Question(question_id, one.text, origin="synthetic", metadata=metadata)
            questions[one.text.casefold()] = question
            quote = (document.text or "")[one.start : one.end]
            judgments.append(Judgment(question_id, key, 2, one.start, one.end, quote))
    return list(questions.values()), judgments


def _made(document: Document, frequencies: Counter[str], documents: int) -> Iterator[Made]:
    """Yield a document's questions, one of each kind in turn."""
    text = document.text or ""
    blocks = blocks_of(text)
    sentences = [
        span
        for block in blocks
        if block.kind in ("text", "list")
        for span in sentence_spans(text, block.start, block.end)
    ]
    kinds = (
        list(_from_definitions(text, sentences)),
        list(_from_headings(document.title.strip(), text, blocks)),
        list(_from_distinctive(text, sentences, frequencies, documents)),
    )
    for turn in range(max(len(kind) for kind in kinds)):
        yield from (kind[turn] for kind in kinds if turn < len(kind))


def _from_definitions(text: str, sentences: Sequence[tuple[int, int]]) -> Iterator[Made]:
    for start, end in sentences:
        match = DEFINITION.match(text[start:end])
        if match and match["term"].split()[0].casefold() not in PRONOUNS and len(_words(text[start:end])) >= SHORTEST:
            plural = " are " in match.group()
            term = match["term"]
            known = term if term.isupper() or (len(term) > 1 and term[1].isupper()) else term[0].lower() + term[1:]
            yield Made("definition", f"What {'are' if plural else 'is'} {known}?", start, end)


def _from_headings(title: str, text: str, blocks: Sequence[Block]) -> Iterator[Made]:
    for block, after in pairwise(blocks):
        if block.kind != "heading" or after.kind == "heading":
            continue
        heading = heading_text(text[block.start : block.end]).strip()
        words = {word.casefold() for word in WORD.findall(heading)}
        if not words or words <= SAYS_NOTHING or heading.casefold() == title.casefold():
            continue
        section = [
            other for other in blocks if other.start >= block.start and other.path[: len(block.path)] == block.path
        ]
        asked = heading if heading.endswith("?") or not title else f"{title}: {heading}"
        yield Made("heading", asked, block.start, max(other.end for other in section))


def _from_distinctive(
    text: str, sentences: Sequence[tuple[int, int]], frequencies: Counter[str], documents: int
) -> Iterator[Made]:
    """Yield the rare words of sentences, in their order, the most distinctive sentence first."""
    rated = []
    for start, end in sentences:
        words = list(dict.fromkeys(_words(text[start:end])))
        if not SHORTEST <= len(words) <= LONGEST:
            continue
        rare = sorted(
            (word for word in words if len(word) > 3 and frequencies[word] <= max(2, COMMON * documents)),
            key=lambda word: (frequencies[word], word),
        )[:TAKEN]
        if len(rare) == TAKEN:
            weight = sum(math.log(1 + documents / frequencies[word]) for word in rare)
            rated.append((-weight, start, end, " ".join(word for word in words if word in rare)))
    for _, start, end, asked in sorted(rated):
        yield Made("sentence", asked, start, end)


def _words(text: str) -> list[str]:
    return [word.casefold() for word in WORD.findall(text)]

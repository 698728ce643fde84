"""Generated questions for a test set, by rules or by an LLM; each is marked by its origin."""

from __future__ import annotations

import asyncio
import hashlib
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from pydantic import BaseModel

from evals.gateway import index_corpus, list_documents, resolve_scope
from evals.judges.endpoint import INVALID_ANSWER_REASON, Endpoint, check_stop, run_judging
from evals.test_set import Judgment, Question, StoredCorpus, TestSet
from evals.test_sets.store import ImportReport, TestSetStore
from workbench.errors import InvalidInput, ModelError
from workbench.ingestion.chunking.blocks import Block, heading_text, parse_blocks
from workbench.text import sentence_spans
from workbench.types import Document, OnProgress, Progress, ShouldStop, Value
from workbench.workbench import Workbench

# Forms of statements that answer a question
# A form is taken only if the statement names its subject: no pronoun, no "the following", nothing that needs the
# sentence before it. Only forms whose questions people kept when they read them are in the table (docs/evaluation.md).

PARTICIPLE = r"\w+(?:ed|wn|lt|pt|en|ght|ung|ound|ade|ut|id|ept|eft|old|ost|ead|et|un)"
WORD_PATTERN = r"[\w`'’+#/-]+(?:\.[\w`'’+#/-]+)*"
SUBJECT_WORD = rf"(?!(?:is|are|was|were|has|and|or|that|which|who|not)\b){WORD_PATTERN}"  # another word of a subject
NAME = rf"(?:(?:The|the|An?|an?) )?{WORD_PATTERN}(?: {SUBJECT_WORD}){{0,5}}?"
NAMED_THING = (
    rf"(?=(?:The|An?) |\w+ ?[^,;:]*[A-Z0-9]){NAME}"  # "A map", "mTOR"; not the adjective of "Secondary measures"
)
ACTION = r"(?!be\b)[a-z]+(?: [^\s,;:()]+){2,12}?"
CASE = r"(?:an?|the|no|two|several|you) (?![^,]*\b(?:was|were|had|did)\b)[^,;:()]{12,70}?"
STATE = r"(?![^,;:]*\bnot\b)[^,;:]{4,60}?"
BE_VERB = r"(?P<be>is|are|was|were)"
DATE = r"(?:\w+ )?(?:\d{1,2},? )?\d{4}\b"
NUMBER = r"(?:two|three|four|five|six|seven|eight|nine|ten|\d+)"


def _alternatives(words: str) -> str:
    return "(?:" + "|".join(words.split()) + ")"


FACT_NOUNS = _alternatives(
    """role purpose aim goal number name population area capital height length depth cost price extent location
    principle concept importance difference advantage disadvantage drawback limit maximum minimum unit cause origin
    meaning formula default test"""
)
TASK_VERBS = _alternatives(
    """splits compares measures stores removes converts controls determines describes calculates computes counts
    collects creates generates selects reads sorts protects represents provides supports specifies defines"""
)
CREATION_VERBS = _alternatives(
    """invented founded written created developed designed discovered introduced proposed built painted composed
    established"""
)
INSTRUCTION_VERBS = _alternatives(
    """add build call change check choose combine compare configure connect convert copy create customize define delete
    deploy disable edit embed enable evaluate export filter find fix format generate get handle import improve include
    insert install limit link list load make manage merge migrate move override prevent publish read reduce remove
    rename render replace reset restore run save select send set share show sort split start stop store switch test
    transform translate turn update upload use validate write"""
)
QUESTION_WORDS = _alternatives("how what why when where who which can could does do is are should must")
MIN_HEADING_WORDS = 3  # minimum words of a heading


def _word_set(words: str) -> frozenset[str]:
    return frozenset(words.split())


REFERRING_WORDS = _word_set(
    """this that these those it its they them their he him his she her we us our i my me such above below following
    previous next same latter former here there another other others each one both so then either neither example also
    if when while because first second more most now still however thus therefore again too what all some many any every
    you're just present although though whereas whether unless until"""
)  # words that refer outside the sentence
PREPOSITIONS = _word_set(
    "in on at by for from with without after before as under during since to of like unlike despite through"
)
ARTICLES = _word_set("the a an")
VAGUE_NOUNS = _word_set(
    """chapter section article paper study review authors outcome outcomes evidence one two three four five six seven
    eight nine ten"""
)  # subjects that end with one of these are unclear outside their text
ABSTRACT_PART = re.compile(
    r"(?:BACKGROUND|CONTEXT|INTRODUCTION|OBJECTIVES?|AIMS?|PURPOSE|RATIONALE|DESCRIPTION|SUMMARY|DESIGN|SETTING|METHODS?"
    r"|RESULTS?|(?:PRINCIPAL )?FINDINGS?|DISCUSSION|INTERPRETATION|IMPORTANCE|SIGNIFICANCE|CONCLUSIONS?)\b:? (?=[A-Z])"
)  # section label in an abstract
GENERIC_YOU_VERBS = "call|omit|delete|build|change|set|remove|add|run|use|invoke"  # "you call" addresses every reader
READER_ADDRESS = re.compile(rf"\byou(?:r|rs|['’]\w+)?\b(?! (?:{GENERIC_YOU_VERBS})\b)")
MARKDOWN_MARKS = re.compile(r"!?\[([^\]]*)\](?:\([^)]*\)|\[[^\]]*\])?|(?:\*\*|__|(?<!\w)[*_](?=\w)|(?<=\w)[*_](?!\w))")
NON_PROSE = re.compile(r"[|{}<>\\=^]|https?:|\.\.\.|…|^\W|\n\s*\n")


# Name, regex of a statement, and the question with the regex's groups in braces.
QUESTION_FORMS = (
    ("definition", rf"(?P<x>An? {WORD_PATTERN}(?: {WORD_PATTERN}){{0,3}}?) is (?:an?|the) \w.{{24,}}", "What is {x}?"),
    ("definition", rf"(?P<x>[A-Z]{WORD_PATTERN}(?: [A-Z]{WORD_PATTERN}){{0,3}}) is an? \w.{{24,}}", "What is {x}?"),
    ("meaning", rf"(?P<x>{NAME}) (?:means|refers to|denotes|stands for) \w.{{12,}}", "What does {x} mean?"),
    ("name", rf"(?P<x>{NAME}) {BE_VERB} (?:also )?(?:called|known as) .{{2,}}", "What {be} {x} called?"),
    ("use", rf"(?P<x>{NAME}) (?P<be>is|are) used (?:to|for) \w.{{10,}}", "What {be} {x} used for?"),
    ("task", rf"(?P<x>{NAMED_THING}) {TASK_VERBS} .{{15,}}", "What does {x} do?"),
    ("task", rf"(?P<x>{NAME}) returns \w.{{10,}}", "What does {x} return?"),
    ("task", rf"(?P<x>{NAME}) (?:causes|leads to|results in) .{{10,}}", "What does {x} lead to?"),
    (
        "fact",
        rf"(?!The number\b.* w(?:as|ere)\b)(?P<x>The {FACT_NOUNS} of {NAME}) {BE_VERB} .{{2,}}",
        "What {be} {x}?",
    ),
    ("fact", rf"(?P<x>The default (?:value )?(?:of|for) {NAME}) is .{{1,}}", "What is {x}?"),
    ("fact", rf"(?P<x>{NAME}) defaults to .{{1,}}", "What does {x} default to?"),
    ("fact", rf"(?P<x>{NAME}) (?:consists of|is made up of|is composed of) .{{10,}}", "What does {x} consist of?"),
    ("fact", rf"(?P<x>{NAME}) depends on .{{10,}}", "What does {x} depend on?"),
    ("fact", rf"(?P<x>{NAME}) requires .{{10,}}", "What does {x} require?"),
    ("fact", rf"(?P<x>{NAME}) has {NUMBER} (?P<parts>[a-z]+s)\b.*", "How many {parts} does {x} have?"),
    ("fact", rf"(?P<x>{NAME}) {BE_VERB} located (?:in|on|at|near|between) .{{4,}}", "Where {be} {x} located?"),
    ("way", rf"To (?P<do>{ACTION}), .{{12,}}", "How do I {do}?"),
    ("way", rf"You can (?P<do>{ACTION}) (?:by|with|using|through|via) .{{6,}}", "How can I {do}?"),
    (
        "way",
        rf"(?P<x>{NAME}) can be (?P<done>{PARTICIPLE}) (?:by|with|using|through) .{{6,}}",
        "How can {x} be {done}?",
    ),
    ("case", rf"When (?P<case>{CASE}), .{{15,}}", "What happens when {case}?"),
    ("case", rf"If (?P<case>{CASE}), .{{15,}}", "What happens if {case}?"),
    ("reason", rf"(?P<x>{NAME}) {BE_VERB} (?P<state>{STATE}),? because .{{12,}}", "Why {be} {x} {state}?"),
    (
        "time",
        rf"(?P<x>{NAME}) (?P<be>was|were) (?P<done>{PARTICIPLE}(?: [^,;:]{{0,50}}?)?) (?:in|on|since) {DATE}.*",
        "When {be} {x} {done}?",
    ),
    (
        "time",
        rf"(?:In|On) {DATE}, (?P<x>{NAME}) (?P<be>was|were) (?P<done>{PARTICIPLE}(?: [^,;:]{{0,50}}?)?)[.,;].*",
        "When {be} {x} {done}?",
    ),
    ("time", rf"(?P<x>{NAME}) died (?:in|on) {DATE}.*", "When did {x} die?"),
    ("time", rf"(?P<x>{NAME}) (?:began|started) (?:in|on) {DATE}.*", "When did {x} begin?"),
    ("time", rf"(?P<x>{NAME}) ended (?:in|on) {DATE}.*", "When did {x} end?"),
    (
        "agent",
        rf"(?P<x>{NAME}) (?:was|were) (?:first )?(?P<did>{CREATION_VERBS})(?: in \d{{4}})? by [A-Z].*",
        "Who {did} {x}?",
    ),
)


def make_questions(sentence: str, is_common: Callable[[str], bool] = str.islower) -> Iterator[tuple[str, str]]:
    """Yield (pattern name, question) for each pattern that a sentence matches, if it names its subject.

    ``is_common`` returns whether the first word of a sentence is mostly lower-case elsewhere.
    """
    statement = ABSTRACT_PART.sub("", " ".join(MARKDOWN_MARKS.sub(r"\1", sentence).split()), count=1)
    if NON_PROSE.search(statement):
        return
    for name, pattern, question in QUESTION_FORMS:
        match = re.fullmatch(pattern, statement)
        if match and all(_stands_alone(part or "") for part in match.groupdict().values()):
            parts = {key: part or "" for key, part in match.groupdict().items()}
            if "x" in parts:
                if _is_vague_subject(parts["x"]):
                    continue
                first, blank, rest = parts["x"].partition(" ")
                if first == first.capitalize() and is_common(first.lower()):  # "the tide", but "HTML"
                    parts["x"] = first.lower() + blank + rest
            yield name, question.format(**parts)


def make_heading_question(heading: str) -> str | None:
    """Return a heading that is a question ("Why two?"), or the question for an instruction ("Add a page"), or None."""
    plain = " ".join(MARKDOWN_MARKS.sub(r"\1", heading).split())
    if len(plain.split()) < MIN_HEADING_WORDS or NON_PROSE.search(plain):
        return None
    if re.fullmatch(rf"{QUESTION_WORDS} .*\?", plain, re.IGNORECASE):
        return plain if _stands_alone(plain.partition(" ")[2]) else None
    deed = re.fullmatch(rf"(?:How to )?(?P<do>{INSTRUCTION_VERBS}) (?P<thing>[^?]+)", plain, re.IGNORECASE)
    if deed is None or not _stands_alone(plain) or _is_vague_subject(deed["thing"]):
        return None
    return f"How do I {deed['do'].lower()} {deed['thing']}?"


def _stands_alone(part: str) -> bool:
    """Return whether a part is clear without the previous sentence and does not address the reader."""
    return not READER_ADDRESS.search(part) and REFERRING_WORDS.isdisjoint(re.findall(r"[\w'’]+", part.lower()))


def _is_vague_subject(subject: str) -> bool:
    first, last = subject.lower().split()[0], subject.lower().split()[-1]
    return (
        len(subject) < 2
        or first in PREPOSITIONS
        or first.endswith("ing")
        or last.endswith("ly")
        or last in PREPOSITIONS | ARTICLES | VAGUE_NOUNS
    )


# Generating questions

LETTER_WORD = re.compile(r"[^\W\d_][\w'-]*")
STOP_WORDS = frozenset("what is are was were does do did how i can when where why who the a an of to in".split())  # noqa: SIM905
MAX_RARE_DOCUMENTS, MAX_RARE_SHARE = (
    3,
    0.1,
)  # a question needs a word that at most this many documents contain, or this share of them


@dataclass(frozen=True, slots=True)
class MadeQuestion:
    """A question and the span of the document it was generated from."""

    kind: str
    text: str
    start: int
    end: int


def synthesise(documents: Sequence[Document], keys: Sequence[str], count: int) -> tuple[list[Question], list[Judgment]]:
    """Generate up to ``count`` questions, spread over the documents and patterns; deterministic.

    ``keys`` are the documents' keys in judgments; their ``text`` must be loaded.

    Raises:
        InvalidInput: A count below 1.
    """
    if count < 1:
        raise InvalidInput(f"Invalid number of questions {count}; use a whole number of at least 1.")
    written = Counter(word for document in documents for word in LETTER_WORD.findall(document.text or ""))
    holding = Counter(word for document in documents for word in set(_split_words(document.text or "")))

    def is_common(word: str) -> bool:
        return word in ARTICLES or written[word] > written[word.capitalize()]

    rounds = [list(_interleave_questions(document, is_common)) for document in documents]
    times = Counter(text for made in rounds for text in {one.text.casefold() for one in made})
    rare = max(MAX_RARE_DOCUMENTS, MAX_RARE_SHARE * len(documents))
    rounds = [
        [
            one
            for one in made
            if times[one.text.casefold()] == 1
            and any(holding[w] <= rare for w in _split_words(one.text) if w not in STOP_WORDS)
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


def _interleave_questions(document: Document, is_common: Callable[[str], bool]) -> Iterator[MadeQuestion]:
    """Yield a document's questions, alternating between patterns."""
    text = document.text or ""
    blocks = parse_blocks(text)
    kinds: dict[str, list[MadeQuestion]] = {}
    for question in (*_make_statement_questions(text, blocks, is_common), *_make_heading_questions(text, blocks)):
        kinds.setdefault(question.kind, []).append(question)
    for turn in range(max(map(len, kinds.values()), default=0)):
        yield from (of_kind[turn] for of_kind in kinds.values() if turn < len(of_kind))


def _make_statement_questions(
    text: str, blocks: Sequence[Block], is_common: Callable[[str], bool]
) -> Iterator[MadeQuestion]:
    for block in blocks:
        if block.kind not in ("text", "list"):
            continue
        for start, end in sentence_spans(text, block.start, block.end):
            for kind, question in make_questions(text[start:end], is_common):
                yield MadeQuestion(kind, question, start, end)


def _make_heading_questions(text: str, blocks: Sequence[Block]) -> Iterator[MadeQuestion]:
    """Yield questions from headings that are questions or instructions."""
    for block, after in pairwise(blocks):
        if block.kind != "heading" or after.kind == "heading":
            continue
        question = make_heading_question(heading_text(text[block.start : block.end]).strip())
        if question is None:
            continue
        section = [
            other for other in blocks if other.start >= block.start and other.path[: len(block.path)] == block.path
        ]
        yield MadeQuestion("heading", question, block.start, max(other.end for other in section))


def _split_words(text: str) -> list[str]:
    return [word.casefold() for word in LETTER_WORD.findall(text)]


MAX_DOCUMENTS = 500  # documents read; from a larger corpus, a repeatable random sample
MIN_PASSAGE_CHARS = 200  # minimum length of a passage for a question by an LLM
SAMPLE_SEED = 7
BATCH = 8  # questions written at once by an LLM, and then stored


def add_synthetic(wb: Workbench, store: TestSetStore, key: str, count: int) -> ImportReport:
    """Add up to ``count`` questions generated by rules from English statements and headings.

    If the documents yield fewer, the report's ``problems`` gives the number.

    Raises:
        InvalidInput: A count below 1, or no documents.
    """
    documents, keys = _load_documents(wb, store.load(key))
    questions, judgments = synthesise(documents, keys, count)
    added = store.add_questions(key, questions)
    if judgments:
        store.judge_all(key, judgments, judge="rule")
    problems: tuple[str, ...] = ()
    if len(questions) < count:
        problems = (
            f"Generated {len(questions)} of {count} questions: only self-contained English statements, and headings "
            "that are questions or instructions, are used.",
        )
    return ImportReport(len(added), len(judgments), problems)


def add_llm_questions(
    wb: Workbench,
    store: TestSetStore,
    key: str,
    count: int,
    endpoint: Endpoint,
    on_progress: OnProgress = lambda _: None,
    should_stop: ShouldStop | None = None,
) -> ImportReport:
    """Add up to ``count`` questions written by an LLM, each for a passage without one; ``problems`` has the failures.

    Raises:
        InvalidInput: A count below 1, or no passage long enough.
        Cancelled: ``should_stop`` returned True; the questions of finished batches are kept.
    """
    if count < 1:
        raise InvalidInput(f"Invalid number of questions {count}; use a whole number of at least 1.")
    test_set = store.load(key)
    index = index_corpus(wb, test_set).index.name
    documents, keys = _load_documents(wb, test_set)
    written_for = {(one.document, one.start) for one in test_set.judgments if one.question_id.startswith(LLM_PREFIX)}
    passages = [
        SourcePassage(name, passage.text, *passage.span)
        for document, name in zip(documents, keys, strict=True)
        for passage in wb.documents.passages(document.id, index=index)
        if len(passage.text) >= MIN_PASSAGE_CHARS and (name, passage.span[0]) not in written_for
    ]
    if not passages:
        raise InvalidInput("No passage without a question is long enough for one; add documents first.")
    chosen = random.Random(SAMPLE_SEED).sample(passages, min(count, len(passages)))
    added, reasons = 0, Counter[str]()
    for start in range(0, len(chosen), BATCH):
        on_progress(Progress(start, len(chosen), "writing questions"))
        check_stop(should_stop)
        written = write_questions(endpoint, chosen[start : start + BATCH], should_stop)
        reasons.update(written.reasons)
        if written.questions:
            store.add_questions(key, written.questions)
            store.judge_all(key, written.judgments, judge="rule")
        added += len(written.questions)
    problems = tuple(f"{times} passages got no question: {reason}" for reason, times in reasons.items())
    return ImportReport(added, added, problems)


def _load_documents(wb: Workbench, test_set: TestSet) -> tuple[list[Document], list[str]]:
    """Return the documents in the test set's scope with their texts, and their keys in judgments.

    Raises:
        InvalidInput: There are none. ScopeError: A part of the scope has been deleted.
    """
    own = test_set.corpus if isinstance(test_set.corpus, StoredCorpus) else None
    listed = (
        wb.documents.list(source_id=own.source_id) if own else list_documents(wb, resolve_scope(wb, test_set.scope))
    )
    if not listed:
        where = "" if own or test_set.scope.is_everything else f" in the scope of this test set ({test_set.scope.text})"
        raise InvalidInput(f"There are no documents{where} to generate questions from; add some first.")
    if len(listed) > MAX_DOCUMENTS:
        listed = random.Random(SAMPLE_SEED).sample(listed, MAX_DOCUMENTS)
    documents = [wb.documents.get(entry.id) for entry in listed]
    return documents, [str(document.path) if own else document.id for document in documents]


# Questions written by an LLM

LLM_PREFIX = "llm_"  # of the ids of these questions
MIN_QUESTION_CHARS = 8  # minimum length of a question


@dataclass(frozen=True, slots=True)
class SourcePassage(Value):
    """A passage to write a question for; ``document`` is its document's key in judgments."""

    document: str
    text: str
    start: int
    end: int


@dataclass(frozen=True)
class WrittenQuestions:
    """Questions written by the LLM; ``reasons`` has the reasons for missing ones, with counts."""

    questions: tuple[Question, ...]
    judgments: tuple[Judgment, ...]
    reasons: Mapping[str, int]


def write_questions(
    endpoint: Endpoint, passages: Sequence[SourcePassage], should_stop: ShouldStop | None = None
) -> WrittenQuestions:
    """Ask the LLM for one question per passage, within the endpoint's limits."""
    written = run_judging(lambda: _write_all(endpoint, passages), should_stop)
    questions: dict[str, Question] = {}
    judgments = []
    for passage, (text, answer, _) in zip(passages, written, strict=True):
        if not text:
            continue
        key = LLM_PREFIX + hashlib.sha256(f"{passage.document}|{passage.start}|{text}".encode()).hexdigest()[:12]
        metadata = {"written_by": endpoint.model}
        questions[key] = Question(key, text, answer, origin="llm", metadata=metadata)
        judgments.append(Judgment(key, passage.document, 2, passage.start, passage.end, passage.text))
    reasons = Counter(reason for _, _, reason in written if reason)
    return WrittenQuestions(tuple(questions.values()), tuple(judgments), dict(reasons))


_QUESTION_PROMPT = """Write one question that a person who has not seen the passage might ask and that the passage \
answers by itself. Do not mention the passage, and do not repeat its wording if other words say the same. Answer it in \
one or two sentences of the passage's content.

Passage: {passage}

Answer with JSON only: {{"question": "", "answer": ""}}"""


class _Written(BaseModel):
    question: str
    answer: str


async def _write_all(endpoint: Endpoint, passages: Sequence[SourcePassage]) -> list[tuple[str, str, str]]:
    async def ask_for_question(passage: SourcePassage) -> tuple[str, str, str]:
        try:
            written = await endpoint.ask(_QUESTION_PROMPT.format(passage=passage.text), _Written)
        except ModelError as error:
            return "", "", str(error)
        text = " ".join(written.question.split())
        if len(text) < MIN_QUESTION_CHARS:
            return "", "", INVALID_ANSWER_REASON
        return text, written.answer.strip(), ""

    async with endpoint:
        return list(await asyncio.gather(*map(ask_for_question, passages)))

"""The evidence that results are about the question at all: below a threshold they are marked, and answers refused.

A passage is evidence when it is near in meaning, or when it holds most of what the question's words say:

    cosine >= near    or    coverage >= WHOLE    or    coverage >= COVERED and (cosine >= far or it holds a code)
    coverage = sum of idf over the question's words in the passage / sum of idf over all its words

Models place unrelated texts at different cosines, so ``near`` and ``far`` stand with the model's row in
``workbench.models.registry``; a model that has none, or that cannot read the question, is not asked: then the words
alone decide.

An answer has a second look, at its sentences: one whose cosine is at least the model's for a sentence is evidence,
because a long passage hides the one line that answers. A search has not: reading sentences takes a third of a second.

In the scripts that it cannot read a right passage holds fewer words as they were asked: Arabic writes articles and
prepositions into the word, and of Chinese every pair of characters counts as one. Of XQuAD's questions whose right
passage came first it holds COVERED_UNREAD for 89 % in Arabic and 87 % in Chinese, COVERED for 11 % and 19 %; asked of
other articles, 22 % and 1 % reach COVERED_UNREAD.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence

from llama_index.core.schema import NodeWithScore

from workbench.marking import FUNCTION_WORDS
from workbench.models.registry import EvidenceThresholds, find_thresholds
from workbench.retrieval.bm25 import idf
from workbench.retrieval.nodes import node_hit
from workbench.retrieval.query import Query, Words
from workbench.storage.database import Connection
from workbench.storage.passages import QueryTerm
from workbench.storage.postings import fetch_matched_terms
from workbench.storage.ranking import count_stop_words
from workbench.text import CONFIGURATIONS
from workbench.types import VECTOR, Evidence

MIN_COVERAGE = 0.6
FULL_COVERAGE = 0.8
MIN_COVERAGE_UNREADABLE = 0.25  # of a question that the model cannot read
MIN_PASSAGES = (
    1000  # passages a corpus counts as at least: in a few, one passage more or less makes a word rare or common
)
MAX_PASSAGES_CHECKED = 5  # passages: the answer is at the top, or the question is not answered
MIN_FUNCTION_WORDS = 2  # function words of a language that tell a question is in it
_WORD = re.compile(r"[^\W_]+")


def is_evidence(
    cosine: float | None,
    coverage: float,
    nearness: EvidenceThresholds | None,
    *,
    readable: bool = True,
    has_code: bool = False,
) -> bool:
    """Return whether a passage of that cosine (None: not known) and coverage is about the question.

    ``nearness`` is the model's; None if it has none. ``readable`` says whether the model can read the question,
    ``has_code`` whether the passage holds a word of it that has digits.
    """
    if not readable:
        return coverage >= MIN_COVERAGE_UNREADABLE
    if coverage >= FULL_COVERAGE or (coverage >= MIN_COVERAGE and has_code):
        return True
    if cosine is None or nearness is None:
        return coverage >= MIN_COVERAGE
    return cosine >= nearness.near or (coverage >= MIN_COVERAGE and cosine >= nearness.far)


def is_sentence_evidence(query: Query, cosines: Iterable[float | None]) -> bool:
    """Return whether a sentence of these cosines with the question (None: not known) is about it."""
    known = [cosine for cosine in cosines if cosine is not None]
    nearness = _get_nearness(query) if known else None
    return nearness is not None and max(known) >= nearness.sentence


def judge_evidence(query: Query, nodes: Sequence[NodeWithScore]) -> Evidence:
    """Return whether any of the first nodes is about the question, and if not, why that is believed."""
    hits = [node_hit(node) for node in nodes[:MAX_PASSAGES_CHECKED]]
    if not hits:
        return Evidence(False, "Nothing was found.")
    hits = [hit for hit in hits if hit.id > 0]  # of a text that is not stored nothing is known
    if not hits:
        return Evidence()
    request, text = query.request, query.text
    model, readable = request.index.embedding_model, query.can_read
    cosines = [hit.legs[VECTOR].score if readable and VECTOR in hit.legs else None for hit in hits]
    measured = [cosine for cosine in cosines if cosine is not None]
    nearness = _get_nearness(query) if measured else None
    if any(is_evidence(cosine, 0.0, nearness) for cosine in measured):
        return Evidence()  # most questions end here, at the cost of nothing
    with request.store.reading() as connection:
        words = query.read_words(connection)
        ids = [term.id for term in words.terms if term.id is not None]
        terms_of = fetch_matched_terms(connection, request.index.name, ids, [hit.id for hit in hits])
        coverages = [compute_coverage(text, words, terms_of.get(hit.id, ())) for hit in hits]
        codes = [_has_code(text, words, terms_of.get(hit.id, ())) for hit in hits]
        if any(
            is_evidence(cosine, covered, nearness, readable=readable, has_code=has_code)
            for cosine, covered, has_code in zip(cosines, coverages, codes, strict=True)
        ):
            return Evidence()
        foreign = _describe_foreign_language(connection, text, request.encoder.languages) if readable else ""
    covered = max(coverages) if any(_iter_content_terms(text, words)) else None
    meaning = ""
    if measured and nearness is not None:
        meaning = f"the nearest passage has a similarity of {max(measured):.2f} (close is {nearness.near:.2f})"
    reason = _format_reason(model, readable, meaning, covered)
    return Evidence(False, f"{reason} {foreign}".strip())


def compute_coverage(query: str, words: Words, term_ids: Collection[int]) -> float:
    """Return the share of the question's idf whose words are among ``held`` terms, 0..1; 0 without words.

    A word that several languages stem differently counts once, by its rarest form; English function words, which are
    words to the other languages of an index, do not count.
    """
    whole: dict[int, float] = {}
    shares: dict[int, float] = {}
    for term in _iter_content_terms(query, words):
        weight = idf(term.df, max(term.passages, MIN_PASSAGES))
        whole[term.position] = max(whole.get(term.position, 0.0), weight)
        if term.id is not None and term.id in term_ids:
            shares[term.position] = max(shares.get(term.position, 0.0), weight)
    total = sum(whole.values())
    return min(1.0, sum(shares.values()) / total) if total else 0.0


def _iter_content_terms(query: str, words: Words) -> Iterator[QueryTerm]:
    """Yield the terms of the question's words that are no English function words."""
    typed = _WORD.findall(query.lower())
    for term in words.terms:
        if not (0 < term.position <= len(typed) and typed[term.position - 1] in FUNCTION_WORDS):
            yield term


def _has_code(query: str, words: Words, term_ids: Collection[int]) -> bool:
    """Return whether a word of the question that has digits is among the terms."""
    typed = _WORD.findall(query.lower())
    positions = (term.position for term in words.terms if term.id in term_ids and 0 < term.position <= len(typed))
    return any(char.isdigit() for position in positions for char in typed[position - 1])


def _describe_foreign_language(connection: Connection, query: str, trained: Collection[str] | None) -> str:
    """Say that the question seems to be in a language that the model was not trained for; "" if it does not.

    Short questions give themselves away by their function words: two that are stop words in a language, and more than
    in any that the model knows.
    """
    native = {CONFIGURATIONS.get(code, code) for code in trained or ()}
    common = count_stop_words(connection, _WORD.findall(query.lower())) if native else {}
    language = max(common, key=lambda name: (common[name], name in native), default="")
    if not language or language in native or common[language] < MIN_FUNCTION_WORDS:
        return ""
    names = " and ".join(sorted(name.capitalize() for name in native))
    return f"The question seems to be in {language.capitalize()}, and the model was trained for {names}."


def _get_nearness(query: Query) -> EvidenceThresholds | None:
    """Return what is near to a question that the index's model has read."""
    return find_thresholds(query.request.index.embedding_model, alone=query.encoded.alone)


def _format_reason(model: str, readable: bool, meaning: str, covered: float | None) -> str:
    """Say why nothing is close: ``meaning`` in words, "" if the model was not asked.

    ``covered`` is None if the question has no words but the most common.
    """
    enough = MIN_COVERAGE if readable else MIN_COVERAGE_UNREADABLE
    words = "the question has no words that tell passages apart"
    if covered is not None:
        words = f"the first passages hold {covered:.0%} of what the question's words say ({enough:.0%} is enough)"
    if not readable:
        return f"Nothing close was found: the model {model!r} cannot read the question, and {words}."
    return f"Nothing close was found: {meaning}, and {words}." if meaning else f"Nothing close was found: {words}."

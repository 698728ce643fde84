"""Evidence that results are about the question: below a threshold they are marked, and answers are refused.

A passage is evidence if its similarity is high, or if it contains most of the question's words:

    cosine >= near  or  coverage >= FULL_COVERAGE
    or  coverage >= MIN_COVERAGE and (cosine >= far or it contains a code)
    coverage = sum of idf over the question's words in the passage / sum of idf over all its words

Cosines of unrelated texts differ between models, so ``near`` and ``far`` are in the model's row in
``workbench.models.registry``. For a model that is not built in they are measured on the index (see
``measure_thresholds``). If there are none, or the model cannot read the question, only the words are used.

For answers, sentences are checked too: a sentence that reaches the model's sentence threshold is evidence, because a
long passage can hide the one line that answers. Searches skip this, as it takes a third of a second.

In scripts that the model cannot read, relevant passages match fewer words: Arabic joins articles and
prepositions to words, and in Chinese every pair of characters counts as a word. For XQuAD questions with the relevant
passage at rank 1, coverage is at least MIN_COVERAGE_UNREADABLE for 89% (Arabic) and 87% (Chinese), and at least
MIN_COVERAGE for 11% and 19%; against other articles, 22% and 1% reach MIN_COVERAGE_UNREADABLE.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from math import inf

import numpy as np
from llama_index.core.schema import NodeWithScore

from workbench.marking import FUNCTION_WORDS
from workbench.models.encoder import Encoder, FloatArray
from workbench.models.registry import EvidenceThresholds, find_thresholds, move_thresholds
from workbench.retrieval.bm25 import idf
from workbench.retrieval.nodes import node_hit
from workbench.retrieval.query import Query, Words
from workbench.storage.database import Connection
from workbench.storage.passages import QueryTerm
from workbench.storage.postings import fetch_matched_terms
from workbench.storage.ranking import count_stop_words
from workbench.storage.store import PassageStore, fetch_nearness
from workbench.text import CONFIGURATIONS, sentence_spans
from workbench.types import VECTOR, Evidence

MIN_COVERAGE = 0.6
FULL_COVERAGE = 0.8
MIN_COVERAGE_UNREADABLE = 0.25  # if the model cannot read the question
MIN_PASSAGES = 1000  # minimum corpus size for idf: in a small corpus one passage makes a word rare or common
MAX_PASSAGES_CHECKED = 5  # the answer is at the top, or the question is not answered
MIN_FUNCTION_WORDS = 2  # function words that identify the language of a question
_WORD = re.compile(r"[^\W_]+")


def is_evidence(
    cosine: float | None,
    coverage: float,
    nearness: EvidenceThresholds | None,
    *,
    readable: bool = True,
    has_code: bool = False,
) -> bool:
    """Return whether a passage with this cosine (None if unknown) and coverage is about the question.

    ``nearness`` is the model's thresholds, or None. ``readable`` is true if the model can read the question;
    ``has_code`` is true if the passage contains a question word with digits.
    """
    if not readable:
        return coverage >= MIN_COVERAGE_UNREADABLE
    if coverage >= FULL_COVERAGE or (coverage >= MIN_COVERAGE and has_code):
        return True
    if cosine is None or nearness is None:
        return coverage >= MIN_COVERAGE
    return cosine >= nearness.near or (coverage >= MIN_COVERAGE and cosine >= nearness.far)


def is_sentence_evidence(query: Query, cosines: Iterable[float | None]) -> bool:
    """Return whether any sentence with these cosines (None if unknown) is about the question."""
    known = [cosine for cosine in cosines if cosine is not None]
    nearness = _get_nearness(query) if known else None
    return nearness is not None and max(known) >= nearness.sentence


def judge_evidence(query: Query, nodes: Sequence[NodeWithScore]) -> Evidence:
    """Return whether any of the first nodes is about the question, and the reason if none is."""
    hits = [node_hit(node) for node in nodes[:MAX_PASSAGES_CHECKED]]
    if not hits:
        return Evidence(False, "Nothing was found.")
    hits = [hit for hit in hits if hit.id > 0]  # nothing is known about a text that is not stored
    if not hits:
        return Evidence()
    request, text = query.request, query.text
    model, readable = request.index.embedding_model, query.can_read
    cosines = [hit.legs[VECTOR].score if readable and VECTOR in hit.legs else None for hit in hits]
    measured = [cosine for cosine in cosines if cosine is not None]
    nearness = _get_nearness(query) if measured else None
    if any(is_evidence(cosine, 0.0, nearness) for cosine in measured):
        return Evidence()  # most questions end here
    with request.store.reading() as connection:
        words = query.read_words(connection)
        matched = _match_words(connection, query, words, [hit.id for hit in hits])
        if any(
            is_evidence(cosine, covered, nearness, readable=readable, has_code=has_code)
            for cosine, (covered, has_code) in zip(cosines, matched, strict=True)
        ):
            return Evidence()
        foreign = _describe_foreign_language(connection, text, request.encoder.languages) if readable else ""
    covered = max(covered for covered, _ in matched) if any(_iter_content_terms(text, words)) else None
    meaning = ""
    if measured and nearness is not None:
        meaning = f"top similarity {_round_below(max(measured), nearness.near):.2f} (threshold {nearness.near:.2f})"
    reason = _format_reason(model, readable, meaning, covered)
    return Evidence(False, f"{reason} {foreign}".strip())


def find_refusal_threshold(query: Query, sentences: Iterable[float | None]) -> float:
    """Return the threshold of its index up to which an answered question has evidence; 1 if its words are enough.

    ``sentences`` are the cosines of the sentences that answer it. See ``Indexes.set_threshold``.
    """
    request, readable = query.request, query.can_read
    hits = [node_hit(node) for node in request.trace.found[:MAX_PASSAGES_CHECKED]]
    known = [hit for hit in hits if hit.id > 0]
    if not known:
        return 1.0 if hits else 0.0
    model = request.index.embedding_model
    by_words, offset = move_thresholds(model, inf), move_thresholds(model, 0.0).sentence
    cosines = [hit.legs[VECTOR].score if readable and VECTOR in hit.legs else None for hit in known]
    with request.store.reading() as connection:
        matched = _match_words(connection, query, query.read_words(connection), [hit.id for hit in known])
    for cosine, (covered, has_code) in zip(cosines, matched, strict=True):
        if is_evidence(cosine, covered, by_words, readable=readable, has_code=has_code):
            return 1.0
    similar = [one for one in cosines if one is not None]
    return min(1.0, max([0.0, *similar, *(one - offset for one in sentences if one is not None)]))


def _match_words(connection: Connection, query: Query, words: Words, ids: Sequence[int]) -> list[tuple[float, bool]]:
    """Return the coverage of each passage, and whether it contains a question word with digits."""
    terms_of = fetch_matched_terms(connection, query.request.index.name, words.weights, ids)
    terms = [terms_of.get(key, ()) for key in ids]
    return [(compute_coverage(query.text, words, own), _has_code(query.text, words, own)) for own in terms]


def compute_coverage(query: str, words: Words, term_ids: Collection[int]) -> float:
    """Return the share (0..1) of the question's idf that the terms in ``term_ids`` cover; 0 without words.

    A word that languages stem differently counts once, by its rarest form; English function words, which may be terms
    in other languages, do not count.
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
    typed = _WORD.findall(query.lower())
    for term in words.terms:
        if not (0 < term.position <= len(typed) and typed[term.position - 1] in FUNCTION_WORDS):
            yield term


def _has_code(query: str, words: Words, term_ids: Collection[int]) -> bool:
    typed = _WORD.findall(query.lower())
    positions = (term.position for term in words.terms if term.id in term_ids and 0 < term.position <= len(typed))
    return any(char.isdigit() for position in positions for char in typed[position - 1])


def _describe_foreign_language(connection: Connection, query: str, trained: Collection[str] | None) -> str:
    """Return a sentence if the question seems to be in a language that the model was not trained on, else "".

    Short questions are identified by function words: at least two stop words of a language, and more than
    of any language that the model knows.
    """
    native = {CONFIGURATIONS.get(code, code) for code in trained or ()}
    common = count_stop_words(connection, _WORD.findall(query.lower())) if native else {}
    language = max(common, key=lambda name: (common[name], name in native), default="")
    if not language or language in native or common[language] < MIN_FUNCTION_WORDS:
        return ""
    names = " and ".join(sorted(name.capitalize() for name in native))
    return f"The question seems to be in {language.capitalize()}, but the model was trained on {names}."


def _get_nearness(query: Query) -> EvidenceThresholds | None:
    """Return the thresholds set for the index, or those of the model, or those measured on the index."""
    request = query.request
    chosen = request.index.nearness
    if chosen and chosen.get("chosen"):
        return EvidenceThresholds(chosen["near"], chosen["far"], chosen["sentence"])
    known = find_thresholds(request.index.embedding_model, alone=query.encoded.alone)
    if known is not None:
        return known
    with request.store.reading() as connection:
        measured = fetch_nearness(connection, request.index.name)
    return EvidenceThresholds(measured["near"], measured["far"], measured["sentence"]) if measured else None


def _round_below(share: float, threshold: float) -> float:
    """Return a number with two digits; one below a threshold does not become equal to it."""
    return min(round(share, 2), round(threshold, 2) - 0.01) if share < threshold else round(share, 2)


def _format_reason(model: str, readable: bool, meaning: str, covered: float | None) -> str:
    """Return why no result is close; ``meaning`` is the clause on similarity, "" if the model was not used."""
    words = "the question has only very common words"
    if covered is not None:
        enough = MIN_COVERAGE if readable else MIN_COVERAGE_UNREADABLE
        enough = enough if covered < enough else FULL_COVERAGE  # of a passage that is too far for the lower one
        covered = _round_below(covered, enough)
        words = f"the top passages cover {covered:.0%} of the question's terms (threshold {enough:.0%})"
    if not readable:
        return f"Nothing close was found: the model {model!r} cannot read the question; {words}."
    return f"Nothing close was found: {meaning}; {words}." if meaning else f"Nothing close was found: {words}."


# Thresholds of a model that is not built in, measured on the passages of an index

# Questions on many subjects: with most corpora, the best passage for one of them is not about it.
UNRELATED_QUESTIONS = (
    "How long should a leg of lamb rest before it is carved?",
    "Which muscles bend the knee?",
    "Who won the football world cup in 1966?",
    "What is the capital of Mongolia?",
    "How do bees find their way back to the hive?",
    "When is a tenant allowed to withhold the rent?",
    "Why did the Hanseatic League decline?",
    "How is the violin tuned?",
    "What causes tides to be higher at full moon?",
    "How many players are in a volleyball team?",
    "Which vitamins are in spinach?",
    "How does a steam locomotive brake?",
    "What did Darwin observe on the Galapagos islands?",
    "How do I remove red wine from a carpet?",
    "When do swallows fly south?",
    "Which painters belonged to the Blue Rider?",
    "How is cement made?",
    "What is the difference between a crocodile and an alligator?",
    "How many strings does a harp have?",
    "Why do onions make people cry?",
    "Who composed the opera Carmen?",
    "How should roses be pruned in spring?",
    "Which treaty ended the Thirty Years' War?",
    "How high is Mount Kilimanjaro?",
)
MIN_CALIBRATION_PASSAGES = 10
OWN_PASSAGES = 50  # passages that are searched for by one of their own sentences
SEARCHED_PASSAGES = 5_000  # passages to compare with the unrelated questions
MIN_SENTENCE_CHARS, MAX_SENTENCE_CHARS = 30, 300
# Between the best cosine of an unrelated question (0) and that of a passage with its own sentence (1), medians of both.
# With minilm and multilingual on anthropic_docs and xquad_en, the thresholds measured by hand are at .30 to .50 and .44
# to .64 (docs/decisions/037-models-by-name.md).
NEAR_SHARE, SENTENCE_SHARE = 0.4, 0.6


def measure_thresholds(store: PassageStore, encoder: Encoder) -> EvidenceThresholds | None:
    """Return the cosines that count as evidence for a model, or None if the index has too few passages.

    ``far`` is the median, over unrelated questions, of the best cosine with a passage. The others are between it and
    the median cosine of passages with one of their own sentences, asked as a question.

    Raises:
        ModelError: The model failed.
    """
    asked: list[tuple[str, FloatArray]] = []
    for text, vector in store.sample_passages(OWN_PASSAGES):
        sentences = [text[start:end].strip() for start, end in sentence_spans(text)]
        fitting = [one for one in sentences if MIN_SENTENCE_CHARS <= len(one) <= MAX_SENTENCE_CHARS]
        if fitting:
            asked.append((fitting[len(fitting) // 2], vector))
    if len(asked) < MIN_CALIBRATION_PASSAGES:
        return None
    own = float(np.median([encoder.encode_query(sentence).vector @ vector for sentence, vector in asked]))
    unrelated = [encoder.encode_query(question).vector for question in UNRELATED_QUESTIONS]
    far = float(np.median(store.best_cosines(unrelated, SEARCHED_PASSAGES)))
    if own <= far:  # the model does not distinguish them
        return None
    return EvidenceThresholds(far + NEAR_SHARE * (own - far), far, far + SENTENCE_SHARE * (own - far))

"""Answers without an LLM: the sentences of the first passages that are nearest to the question, quoted and cited."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from workbench.marking import matched_spans, stem
from workbench.models.encoder import EncodedQuery, Encoder, FloatArray
from workbench.retrieval.answering.quotable import Quote, quotable
from workbench.retrieval.stages.late_interaction import beyond_chance, max_sim
from workbench.types import Passage

MAX_ANSWER_SENTENCES, MAX_ANSWER_WORDS = 5, 60  # of an answer
MOST_READ = 24  # sentences that are embedded, those with most of the question's words first: about a third of a second
CLOSE = 0.1  # a further sentence must have this share of the best one's score, their places apart, or it only dilutes
CLOSE_ROW = 0.5  # and a row of a table whose cells have no word of the question this one: its neighbours are as alike

# The parts of a sentence's score, each about 0..1. Of xquad_en's 1,190 reference answers .997 stand in the six passages
# and .92 in the sentences taken; the ranks around these weights are flat.
RARITY = 0.5  # the question's words in it, each by how few of the sentences have it
HEADED = 0.5  # a word of the question that only the title, headings or columns have, against one in the sentence
MEANING = 0.3  # the cosine of sentence and question
TOKENS = 2.4  # late interaction beyond chance, which seldom exceeds .4
BESIDE = 0.3  # the better of the scores of the sentences before and after it: an answer often stands beside the match
PLACE = 1.0  # its passage's score against the first passage's, to the power STEEP: an answer comes from few passages
STEEP = 3


def best_sentences(
    query: str,
    encoded: EncodedQuery | None,
    encoder: Encoder,
    passages: Sequence[Passage],
    headers: Mapping[int, str] | None = None,
) -> list[Quote]:
    """Return the best sentences, at most 5 with 60 words together, in the order of the passages and of reading.

    ``encoded`` None leaves meaning out: the words and the passages' order decide. ``headers`` as in ``quotable``.
    """
    every = list({quote.text: quote for quote in reversed(quotable(passages, headers))}.values())[::-1]
    every, common = _asked_rows(every, [_shared_words(query, quote.cells or quote.text) for quote in every])
    headed = [_shared_words(query, " ".join([passage.document_title, *passage.headings])) for passage in passages]
    above = [
        headed[quote.number - 1] | (set() if quote.cells is None else _shared_words(query, quote.text))
        for quote in every
    ]
    shares = _rarity_shares(common, above)
    likely = sorted(range(len(every)), key=lambda place: -shares[place])[:MOST_READ]
    chosen = sorted(likely, key=lambda place: (every[place].number, every[place].start))
    if not chosen:
        return []
    quotes = [every[place] for place in chosen]
    scores = RARITY * np.asarray([shares[place] for place in chosen])
    if encoded is not None:
        cosines, likeness = _likeness(encoded, encoder, quotes)
        quotes = [replace(quote, similarity=cosine) for quote, cosine in zip(quotes, cosines, strict=True)]
        scores = scores + likeness
    best = max(passage.score for passage in passages)
    places = [(passages[quote.number - 1].score / best) ** STEEP if best > 0 else 0.0 for quote in quotes]
    scores = scores + BESIDE * _beside(quotes, scores.tolist())
    placed = scores + PLACE * np.asarray(places)
    least = [CLOSE if every[place].cells is None or common[place] else CLOSE_ROW for place in chosen]
    return sorted(
        _within_limits(quotes, scores.tolist(), placed.tolist(), least), key=lambda quote: (quote.number, quote.start)
    )


def _asked_rows(every: Sequence[Quote], common: Sequence[set[str]]) -> tuple[list[Quote], list[set[str]]]:
    """Leave out the rows whose cells share no word with the question where another row of their passage does."""
    asked = {quote.number for quote, words in zip(every, common, strict=True) if quote.cells is not None and words}
    kept = [
        (quote, words)
        for quote, words in zip(every, common, strict=True)
        if quote.cells is None or words or quote.number not in asked
    ]
    return [quote for quote, _ in kept], [words for _, words in kept]


def _beside(quotes: Sequence[Quote], scores: Sequence[float]) -> FloatArray:
    """Return for each sentence the better score of those before and after it in its passage, 0 for a lone one.

    A row of a table stands alone: each tells of a thing of its own, and rows much alike would praise each other.
    """
    better = [0.0] * len(quotes)
    for place, (before, after) in enumerate(pairwise(quotes)):
        if before.number == after.number and before.cells is None and after.cells is None:
            better[place] = max(better[place], scores[place + 1])
            better[place + 1] = scores[place]
    return np.asarray(better, dtype=np.float32)


def _rarity_shares(common: Sequence[set[str]], headed: Sequence[set[str]]) -> list[float]:
    """Return which share of the question's words each sentence has, 0..1, a word counting by its rarity among them.

    Words that only its title, headings and names of columns have (``headed``) count HEADED times that: what a section
    or a table is about is not repeated in each of its sentences or rows.
    """
    holding = Counter(word for words in common for word in words)
    every = set().union(*common, *headed)
    weights = {word: math.log(1 + len(common) / (holding[word] + 0.5)) for word in sorted(every)}
    whole = sum(weights.values()) or 1.0
    return [
        (sum(weights[word] for word in words) + HEADED * sum(weights[word] for word in above - words)) / whole
        for words, above in zip(common, headed, strict=True)
    ]


def _likeness(encoded: EncodedQuery, encoder: Encoder, quotes: Sequence[Quote]) -> tuple[list[float], FloatArray]:
    """Return the sentences' cosines, and their likeness by meaning and, where the model has vectors of them, tokens."""
    texts = encoder.encode([quote.text for quote in quotes])
    cosines = texts.vectors @ encoded.vector
    likeness: FloatArray = np.float32(MEANING) * cosines
    if encoded.token_axes is not None and texts.token_bits is not None:
        tokens = beyond_chance(max_sim(encoded.token_axes, texts.token_bits), texts.token_bits)
        likeness = (likeness + np.float32(TOKENS) * tokens).astype(np.float32)
    return cosines.tolist(), likeness


def _within_limits(
    quotes: Sequence[Quote], own: Sequence[float], scores: Sequence[float], least: Sequence[float]
) -> Iterator[Quote]:
    """Yield the sentence of the best score, then the next ones that fit in and by themselves are close to the best.

    ``least`` is the share of the best one's own score that each must have.
    """
    order = sorted(range(len(quotes)), key=lambda place: -scores[place])
    sentences = words = 0
    for place in order:
        length = len(quotes[place].text.split())
        fits = sentences < MAX_ANSWER_SENTENCES and words + length <= MAX_ANSWER_WORDS
        if sentences and not (fits and own[place] >= least[place] * max(own)):
            continue
        sentences, words = sentences + 1, words + length
        yield replace(quotes[place], score=scores[place])


def quoted(quotes: Sequence[Quote]) -> str:
    """Return the sentences as one text, each with its mark."""
    return " ".join(f"{quote.shown or quote.text} [{quote.number}]" for quote in quotes)


def _shared_words(query: str, text: str) -> set[str]:
    """Return the stems of the question's words that stand in a text."""
    return {stem(text[start:end].lower()) for start, end in matched_spans(query, text)}

"""Answers without an LLM: the sentences of the first passages that are nearest to the question, quoted and cited."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from workbench.ingestion.sentences import sentence_spans
from workbench.marking import matched_spans, stem
from workbench.models.encoder import Encoder, FloatArray
from workbench.types import Passage

MOST_SENTENCES = 4
LONGEST = 700  # characters of a sentence: what is longer is a table or a listing
SHORTEST = 20  # and what is shorter says nothing by itself
WORDS = 0.4  # share of the words in common against the likeness in meaning
CLOSE = 0.6  # a further sentence must be this near to the best one's score, or it only dilutes the answer


@dataclass(frozen=True, slots=True)
class Quote:
    """A sentence of a shown passage (``number`` counts them from 1) with its span in the document."""

    number: int
    text: str
    start: int
    end: int
    score: float


def best_sentences(query: str, vector: FloatArray | None, encoder: Encoder, passages: Sequence[Passage]) -> list[Quote]:
    """Return the best sentences, in the order of the passages and of reading; ``vector`` None leaves meaning out.

    score = WORDS * (share of the question's words in the sentence) + (1 - WORDS) * cosine
    """
    quotes = list({quote.text: quote for quote in reversed(_sentences(passages))}.values())[::-1]
    if not quotes:
        return []
    meaning = [0.0] * len(quotes) if vector is None else (encoder.encode([q.text for q in quotes]).vectors @ vector)
    wanted = max(1, len(_words(query, query)))
    scores = [
        WORDS * min(1.0, len(_words(query, quote.text)) / wanted) + (1 - WORDS) * float(cosine)
        for quote, cosine in zip(quotes, meaning, strict=True)
    ]
    order = np.argsort(-np.asarray(scores), kind="stable")[:MOST_SENTENCES]
    floor = CLOSE * scores[order[0]]
    kept = sorted(place for place in order.tolist() if scores[place] >= floor)
    return [Quote(q.number, q.text, q.start, q.end, scores[place]) for place in kept for q in (quotes[place],)]


def quoted(quotes: Sequence[Quote]) -> str:
    """Return the sentences as one text, each with its mark."""
    return " ".join(f"{quote.text} [{quote.number}]" for quote in quotes)


def _sentences(passages: Sequence[Passage]) -> list[Quote]:
    found = []
    for number, passage in enumerate(passages, start=1):
        for start, end in sentence_spans(passage.text):
            text = " ".join(passage.text[start:end].split())
            if SHORTEST <= len(text) <= LONGEST and not text.startswith("#"):
                found.append(Quote(number, text, passage.start + start, passage.start + end, 0.0))
    return found


def _words(query: str, text: str) -> set[str]:
    """Return the stems of the question's words that stand in a text."""
    return {stem(text[start:end].lower()) for start, end in matched_spans(query, text)}

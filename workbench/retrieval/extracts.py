"""Answers without an LLM: the sentences of the first passages that are nearest to the question, quoted and cited."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from workbench.marking import matched_spans, stem
from workbench.models.encoder import Encoder, FloatArray
from workbench.sentences import sentence_spans
from workbench.types import Passage

MOST_SENTENCES = 4
MOST_READ = 24  # sentences that are embedded, those with most of the question's words first: about a third of a second
LONGEST = 500  # characters of a sentence: what is longer is a table or a listing
SHORTEST = 20  # and what is shorter says nothing by itself
WORDS = 0.4  # share of the words in common against the likeness in meaning
PROSE = 0.8  # share of letters and blanks in a sentence; source code and tables have less
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
    wanted = max(1, len(_words(query, query)))
    every = list({quote.text: quote for quote in reversed(_sentences(passages))}.values())[::-1]
    worded = {quote.text: min(1.0, len(_words(query, quote.text)) / wanted) for quote in every}
    quotes = sorted(every, key=lambda quote: -worded[quote.text])[:MOST_READ]
    if not quotes:
        return []
    meaning = [0.0] * len(quotes) if vector is None else (encoder.encode([q.text for q in quotes]).vectors @ vector)
    scores = [
        WORDS * worded[quote.text] + (1 - WORDS) * float(cosine) for quote, cosine in zip(quotes, meaning, strict=True)
    ]
    order = np.argsort(-np.asarray(scores), kind="stable")[:MOST_SENTENCES]
    floor = CLOSE * scores[order[0]]
    kept = [replace(quotes[place], score=scores[place]) for place in order.tolist() if scores[place] >= floor]
    return sorted(kept, key=lambda quote: (quote.number, quote.start))


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
    return [quote for quote in found if _is_prose(quote.text)] or found


def _is_prose(text: str) -> bool:
    return sum(char.isalpha() or char == " " for char in text) >= PROSE * len(text)


def _words(query: str, text: str) -> set[str]:
    """Return the stems of the question's words that stand in a text."""
    return {stem(text[start:end].lower()) for start, end in matched_spans(query, text)}

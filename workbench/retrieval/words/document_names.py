"""The documents that a question names: by the words of their titles and file names.

A question says "General Mills" and "FY2019" where a file is called GENERALMILLS_2019_10K: neighbouring words are also
read as one, and a fiscal year as its year.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from itertools import pairwise

from workbench.retrieval.names.names_said import SaidName
from workbench.retrieval.words.bm25 import idf
from workbench.storage.documents import NamedDocument

NAMED = (
    0.5  # a share from which on a question names a document; less is what any two texts on one subject have in common
)
LONGEST = 60  # words of a question whose neighbours are joined; a longer one is a text, not a question
_WORD = re.compile(r"[^\W_]+")
_POSSESSIVE = re.compile(r"['’]s\b", re.IGNORECASE)
_FISCAL = re.compile(r"fy(\d{2}|\d{4})", re.IGNORECASE)


def most_said(document: NamedDocument, frequencies: Mapping[str, int], passages: int) -> SaidName:
    """Return the name of a document of which a question says most, the title of equals.

    ``frequencies`` are of the terms of its names, in an index of so many ``passages``.
    """
    best = SaidName(document.id)
    for text, terms in document.names:
        share = said_share(terms, document.asked, frequencies, passages)
        if share > best.share:
            best = SaidName(document.id, text, share)
    return best


def said_share(terms: Collection[str], asked: Collection[str], frequencies: Mapping[str, int], passages: int) -> float:
    """Return the share 0..1 of the idf of a name's terms that is said."""
    weights = {term: idf(frequencies.get(term, 0), passages) for term in terms}
    total = sum(weights.values())
    return sum(weight for term, weight in weights.items() if term in asked) / total if total else 0.0


def strength(share: float) -> float:
    """Return how surely a document is meant, 0..1, by the share of its name that is said."""
    return max(0.0, (share - NAMED) / (1 - NAMED))


def spelt_as_names(query: str) -> str:
    """Return a question's words, its fiscal years as years, and each two neighbours as one word."""
    words = [_year(word) for word in _WORD.findall(_POSSESSIVE.sub("", query))]
    joined = [first + second for first, second in pairwise(words)] if len(words) <= LONGEST else []
    return " ".join([*words, *joined])


def _year(word: str) -> str:
    fiscal = _FISCAL.fullmatch(word)
    return word if fiscal is None else fiscal[1].rjust(4, "_").replace("__", "20")

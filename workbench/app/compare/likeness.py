"""The words of the hits that late interaction found like the question's: the underlines of the cards.

A similarity of stored token vectors is .45 to .75 for the same word and .3 to .45 for one of like meaning (measured
on the sample corpus); below that it is chance (workbench.retrieval.stages.late_interaction).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from workbench.app.compare.same_text import place_key
from workbench.errors import ModelError
from workbench.marking import FUNCTION_WORDS
from workbench.types import Comparison, Passage
from workbench.types.parameter import LATE
from workbench.types.results import Span

if TYPE_CHECKING:
    from workbench.retrieval.explain.explanation import Alignment
    from workbench.workbench import Workbench

FROM = (0.3, 0.42, 0.58)  # least similarity of the thin, the middle and the thick underline
MOST = 20  # hits of an index that are looked at, the highest in any column first: about a millisecond each

Likes = Mapping[str, Mapping[Span, int]]  # place in a document -> spans of the hit's text -> 1 to 3


def likeness(workbench: Workbench, comparison: Comparison) -> Likes:
    """Return the words to underline in the hits that late interaction judged; nothing where no column has any."""
    judged: dict[str, dict[str, Passage]] = {}
    for result in comparison.strategies.values():
        for hit in result:
            if LATE in hit.attribution:
                judged.setdefault(result.index, {}).setdefault(hit.passage_id, hit)
    likes: dict[str, dict[Span, int]] = {}
    for index, hits in judged.items():
        best_hits = sorted(hits.values(), key=lambda hit: hit.rank)[:MOST]
        try:
            aligned = workbench.explaining.alignments(comparison.query, best_hits, index)
        except ModelError:  # the search has said so already, and its order is shown without marks
            continue
        likes |= {place_key(hit): likes_of(hit, aligned.get(hit.passage_id, ())) for hit in best_hits}
    return likes


def likes_of(hit: Passage, alignment: Sequence[Alignment]) -> dict[Span, int]:
    """Return the spans of a hit's text to underline, each with its strength from 1 to 3."""
    strengths: dict[Span, int] = {}
    for likeness in alignment:
        strength = bisect_right(FROM, likeness.similarity)
        if likeness.start is None or likeness.end is None or not strength or not likeness.weight:
            continue
        if likeness.passage_token.lower() in FUNCTION_WORDS or not any(
            char.isalnum() for char in likeness.passage_token
        ):
            continue
        span = (likeness.start - hit.start, likeness.end - hit.start)
        strengths[span] = max(strength, strengths.get(span, 0))
    return strengths

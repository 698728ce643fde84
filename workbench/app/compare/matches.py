"""Hits of the same text, which the board highlights together and which share judgments.

A place is a document and a span in it, so it is also valid in an index made by another chunker.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING

from workbench.errors import ModelError
from workbench.marking import FUNCTION_WORDS
from workbench.types import LATE, Comparison, DocumentSpan, Passage, Span

if TYPE_CHECKING:
    from workbench.retrieval.explain import Alignment
    from workbench.workbench import Workbench

Joins = Mapping[tuple[str, str], str]  # (column, passage id) -> id of the text


def join_hits(comparison: Comparison) -> Joins:
    """Join hits of the same passage, and across indexes those that share at least half of the shorter text."""
    hits = {(name, hit.passage_id): hit for name, result in comparison.strategies.items() for hit in result}
    index_of = {name: result.index for name, result in comparison.strategies.items()}
    leader = {hit.passage_id: hit.passage_id for hit in hits.values()}
    if len(set(index_of.values())) > 1:
        by_document: dict[str, dict[str, tuple[str, Passage]]] = {}
        for (name, key), hit in hits.items():
            by_document.setdefault(hit.document_id, {})[key] = (index_of[name], hit)
        for passages in by_document.values():
            for (index, first), (other_index, second) in combinations(passages.values(), 2):
                if index != other_index and _is_same_text(_passage_place(first), _passage_place(second)):
                    _unite(leader, first.passage_id, second.passage_id)
    return {place: _find_leader(leader, hit.passage_id) for place, hit in hits.items()}


def find_same_places(comparison: Comparison, judged: Iterable[str]) -> dict[str, list[str]]:
    """Return, for each shown place, the other shown or judged places of the same text or of a copy folded under it.

    A judgment on a passage of one index thus applies to the same text in another index, as in the span metrics.
    """
    hits = {place_key(hit): hit for result in comparison.strategies.values() for hit in result}
    shown = {
        key: [_passage_place(hit), *((copy.document_id, copy.start, copy.end) for copy in hit.copies)]
        for key, hit in hits.items()
    }
    places = {key: [_parse_place_key(key)] for key in judged} | shown
    same = {
        key: [
            other
            for other, theirs in places.items()
            if other != key and any(_is_same_text(one, place) for one in mine for place in theirs)
        ]
        for key, mine in shown.items()
    }
    return {key: others for key, others in same.items() if others}


def place_key(passage: Passage) -> str:
    """Return the place of a passage as a string."""
    return format_place_key(*_passage_place(passage))


def format_place_key(document: str, start: int, end: int) -> str:
    """Return a place as a string."""
    return f"{document}:{start}-{end}"


def _parse_place_key(key: str) -> DocumentSpan:
    document, _, stretch = key.rpartition(":")
    start, _, end = stretch.partition("-")
    return document, int(start), int(end)


def _passage_place(passage: Passage) -> DocumentSpan:
    return passage.document_id, passage.start, passage.end


def _is_same_text(first: DocumentSpan, second: DocumentSpan) -> bool:
    """Return whether two spans share at least half of the shorter one."""
    shared = min(first[2], second[2]) - max(first[1], second[1])
    shorter = min(first[2] - first[1], second[2] - second[1])
    return first[0] == second[0] and shorter > 0 and 2 * shared >= shorter


def _find_leader(leader: Mapping[str, str], key: str) -> str:
    while leader[key] != key:
        key = leader[key]
    return key


def _unite(leader: dict[str, str], one: str, other: str) -> None:
    leader[_find_leader(leader, other)] = _find_leader(leader, one)


# Words to underline, found by late interaction

UNDERLINE_THRESHOLDS = (0.3, 0.42, 0.58)  # minimum cosine similarity of a thin, medium and thick underline
MAX_HITS_ALIGNED = 20  # hits aligned per index, best ranks first: about 1 ms each

Underlines = Mapping[str, Mapping[Span, int]]  # place -> span of the hit's text -> strength, 1 to 3


def find_similar_words(wb: Workbench, comparison: Comparison) -> Underlines:
    """Return the words to underline in hits scored by late interaction."""
    judged: dict[str, dict[str, Passage]] = {}
    for result in comparison.strategies.values():
        for hit in result:
            if LATE in hit.attribution:
                judged.setdefault(result.index, {}).setdefault(hit.passage_id, hit)
    likes: dict[str, dict[Span, int]] = {}
    for index, hits in judged.items():
        best_hits = sorted(hits.values(), key=lambda hit: hit.rank)[:MAX_HITS_ALIGNED]
        try:
            aligned = wb.explaining.alignments(comparison.query, best_hits, index)
        except ModelError:  # the search has reported it; its hits are shown without underlines
            continue
        likes |= {place_key(hit): find_underlines(hit, aligned.get(hit.passage_id, ())) for hit in best_hits}
    return likes


def find_underlines(hit: Passage, alignment: Sequence[Alignment]) -> dict[Span, int]:
    """Return the spans of a hit's text to underline, with their strength from 1 to 3."""
    strengths: dict[Span, int] = {}
    for likeness in alignment:
        strength = bisect_right(UNDERLINE_THRESHOLDS, likeness.similarity)
        if likeness.start is None or likeness.end is None or not strength or not likeness.weight:
            continue
        if likeness.passage_token.lower() in FUNCTION_WORDS or not any(
            char.isalnum() for char in likeness.passage_token
        ):
            continue
        span = (likeness.start - hit.start, likeness.end - hit.start)
        strengths[span] = max(strength, strengths.get(span, 0))
    return strengths

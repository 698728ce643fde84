"""Hits that are the same text: the board lights them together, and a judgment of one goes for the others.

A hit stands for its place, the document and the span in it, so that it is found again in an index cut differently.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING

from workbench.errors import ModelError
from workbench.marking import FUNCTION_WORDS
from workbench.types import Comparison, Passage
from workbench.types.parameter import LATE
from workbench.types.results import DocumentSpan, Span

if TYPE_CHECKING:
    from workbench.retrieval.explain.explanation import Alignment
    from workbench.workbench import Workbench

Joins = Mapping[tuple[str, str], str]  # column and passage id -> what the same text has in common


def joins(comparison: Comparison) -> Joins:
    """Join hits by passage; where the columns search different indexes, also by at least half of the shorter text."""
    hits = {(name, hit.passage_id): hit for name, result in comparison.strategies.items() for hit in result}
    index_of = {name: result.index for name, result in comparison.strategies.items()}
    leader = {hit.passage_id: hit.passage_id for hit in hits.values()}
    if len(set(index_of.values())) > 1:
        by_document: dict[str, dict[str, tuple[str, Passage]]] = {}
        for (name, key), hit in hits.items():
            by_document.setdefault(hit.document_id, {})[key] = (index_of[name], hit)
        for passages in by_document.values():
            for (index, first), (other_index, second) in combinations(passages.values(), 2):
                if index != other_index and _is_same_text(_place(first), _place(second)):
                    _unite(leader, first.passage_id, second.passage_id)
    return {place: _leader(leader, hit.passage_id) for place, hit in hits.items()}


def same_places(comparison: Comparison, judged: Iterable[str]) -> dict[str, list[str]]:
    """Return for each shown place the others, shown or judged, that are the same text, though cut differently.

    So a judgment made on one index's passage is found again on another's, as the span metrics find it by characters.
    """
    shown = {place_key(hit): _place(hit) for result in comparison.strategies.values() for hit in result}
    places = {key: _read_key(key) for key in judged} | shown
    same = {
        key: [other for other, place in places.items() if other != key and _is_same_text(mine, place)]
        for key, mine in shown.items()
    }
    return {key: others for key, others in same.items() if others}


def place_key(passage: Passage) -> str:
    """Return the place of a passage as one text."""
    return key_of(*_place(passage))


def key_of(document: str, start: int, end: int) -> str:
    """Return a place as one text."""
    return f"{document}:{start}-{end}"


def _read_key(key: str) -> DocumentSpan:
    document, _, stretch = key.rpartition(":")
    start, _, end = stretch.partition("-")
    return document, int(start), int(end)


def _place(passage: Passage) -> DocumentSpan:
    return passage.document_id, passage.start, passage.end


def _is_same_text(first: DocumentSpan, second: DocumentSpan) -> bool:
    """Tell whether each holds at least half of the shorter one."""
    shared = min(first[2], second[2]) - max(first[1], second[1])
    shorter = min(first[2] - first[1], second[2] - second[1])
    return first[0] == second[0] and shorter > 0 and 2 * shared >= shorter


def _leader(leader: Mapping[str, str], key: str) -> str:
    while leader[key] != key:
        key = leader[key]
    return key


def _unite(leader: dict[str, str], one: str, other: str) -> None:
    leader[_leader(leader, other)] = _leader(leader, one)


# --- The words of the hits that late interaction found like the question's: the underlines of the cards ---

FROM = (0.3, 0.42, 0.58)  # least similarity of the thin, the middle and the thick underline
MOST = 20  # hits of an index that are looked at, the highest in any column first: about a millisecond each

Likes = Mapping[str, Mapping[Span, int]]  # place in a document -> spans of the hit's text -> 1 to 3


def likeness(wb: Workbench, comparison: Comparison) -> Likes:
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
            aligned = wb.explaining.alignments(comparison.query, best_hits, index)
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

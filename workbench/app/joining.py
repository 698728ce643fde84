"""Which hits of different columns are the same text: what the board lights together and joins by a line."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations

from workbench.types import Comparison, Passage

Joins = Mapping[tuple[str, str], str]  # column and passage id -> what the same text has in common
Span = tuple[str, int, int]  # document, start, end


def joins(comparison: Comparison) -> Joins:
    """Join hits by passage; where the columns search different indexes, also by at least half of the shorter text."""
    hits = {(name, hit.passage_id): hit for name, result in comparison.strategies.items() for hit in result}
    index_of = {name: result.index for name, result in comparison.strategies.items()}
    leader = {hit.passage_id: hit.passage_id for hit in hits.values()}
    if len(set(index_of.values())) > 1:
        by_document: dict[str, dict[str, tuple[str, Passage]]] = {}
        for (name, key), hit in hits.items():
            by_document.setdefault(hit.document_id, {})[key] = (index_of[name], hit)
        for found in by_document.values():
            for (index, one), (other_index, other) in combinations(found.values(), 2):
                if index != other_index and same_text(span_of(one), span_of(other)):
                    _unite(leader, one.passage_id, other.passage_id)
    return {place: _leader(leader, hit.passage_id) for place, hit in hits.items()}


def span_of(passage: Passage) -> Span:
    """Return where a passage stands."""
    return passage.document_id, passage.start, passage.end


def same_text(one: Span, other: Span) -> bool:
    """Tell whether each holds at least half of the shorter one: what is said of one then goes for the other."""
    shared = min(one[2], other[2]) - max(one[1], other[1])
    shorter = min(one[2] - one[1], other[2] - other[1])
    return one[0] == other[0] and shorter > 0 and 2 * shared >= shorter


def _leader(leader: Mapping[str, str], key: str) -> str:
    while leader[key] != key:
        key = leader[key]
    return key


def _unite(leader: dict[str, str], one: str, other: str) -> None:
    leader[_leader(leader, other)] = _leader(leader, one)

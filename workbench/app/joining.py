"""Which hits of different columns are the same text: what the board lights together and joins by a line."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations

from workbench.types import Comparison, Passage

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
        for found in by_document.values():
            for (index, one), (other_index, other) in combinations(found.values(), 2):
                if index != other_index and overlap(one, other) >= 0.5:
                    _unite(leader, one.passage_id, other.passage_id)
    return {place: _leader(leader, hit.passage_id) for place, hit in hits.items()}


def overlap(one: Passage, other: Passage) -> float:
    """Return which share of the shorter passage the other one holds too; 0..1, both of one document."""
    shared = min(one.end, other.end) - max(one.start, other.start)
    shorter = min(one.end - one.start, other.end - other.start)
    return max(0, shared) / shorter if shorter > 0 else 0.0


def _leader(leader: Mapping[str, str], key: str) -> str:
    while leader[key] != key:
        key = leader[key]
    return key


def _unite(leader: dict[str, str], one: str, other: str) -> None:
    leader[_leader(leader, other)] = _leader(leader, one)

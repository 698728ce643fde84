"""The postings of an index: which passages have a term, how often, and how long the passages are.

They are stored in blocks of up to 128, so that a question's terms are read in a few pieces and scored by NumPy.
``schema.sql`` describes how blocks are made and maintained.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from workbench.storage.database import Connection, bind_integers, statement
from workbench.storage.passages import TermWeights

Ids = NDArray[np.int64]
Postings = NDArray[np.void]  # one dimension of POSTING

POSTING = np.dtype([("passage", ">u4"), ("frequency", ">u2"), ("length", ">u2")])
# Passages whose ids differ by no more than this are looked up as one run; a block of a term has 128 postings.
MAX_RUN_GAP = 64
# Ids per passage up to which passages are marked in a table of all ids to select postings: for 10,000 of a million
# passages and 100,000 postings this takes .3 ms instead of 5.3 for sorting.
MAX_IDS_PER_PASSAGE = 1000


def fetch_term_postings(connection: Connection, index: str, terms: Sequence[int]) -> dict[int, Postings]:
    return _read(connection, index, "postings_of_terms", {"term_ids": bind_integers(terms)})


def fetch_passage_postings(
    connection: Connection, index: str, terms: Sequence[int], ids: Ids | Sequence[int]
) -> dict[int, Postings]:
    """Return the postings of given terms in given passages by term id; terms without any are omitted."""
    wanted = np.unique(np.asarray(ids, dtype=np.int64))
    if not len(wanted) or not terms:
        return {}
    runs = split_runs(wanted)
    values = {
        "term_ids": bind_integers(terms),
        "firsts": bind_integers(first for first, _ in runs),
        "lasts": bind_integers(last for _, last in runs),
        "befores": bind_integers([-1, *(last for _, last in runs[:-1])]),
    }
    blocks = _read(connection, index, "postings_of_passages", values)
    held = {term: select_postings(postings, wanted) for term, postings in blocks.items()}
    return {term: postings for term, postings in held.items() if len(postings)}


def split_runs(ids: Ids) -> list[tuple[int, int]]:
    """Return the first and last id of each run of sorted ids, split at gaps of more than ``MAX_RUN_GAP``."""
    cuts = np.flatnonzero(np.diff(ids) > MAX_RUN_GAP)
    firsts, lasts = ids[np.concatenate([[0], cuts + 1])], ids[np.concatenate([cuts, [len(ids) - 1]])]
    return list(zip(firsts.tolist(), lasts.tolist(), strict=True))


def select_postings(postings: Postings, ids: Ids) -> Postings:
    passages = postings["passage"].astype(np.int64)
    laid_out = len(ids) and ids[-1] - ids[0] <= MAX_IDS_PER_PASSAGE * len(ids)
    return postings[np.isin(passages, ids, kind="table" if laid_out else None)]


def _read(connection: Connection, index: str, name: str, parameters: Mapping[str, object]) -> dict[int, Postings]:
    rows = connection.execute(statement(name, index), parameters, binary=True).fetchall()
    return {row["term_id"]: np.frombuffer(row["entries"], POSTING) for row in rows}


# BM25 over postings

TermScores = NDArray[np.float64]

# Postings that are read and scored without trying to skip any. At 100,000 passages and questions of 180,000 postings
# the leg took 5.1 ms with 100,000 (median; 9.7 at the 95th percentile), 9.4 (14) with 250,000, and 7.1 (15) with none.
MAX_POSTINGS_AT_ONCE = 100_000
# Looking up one posting by its passage takes as long as reading this many in sequence.
LOOKUP_COST = 200
MIN_IDS_PER_POSTING = 8  # ids per posting from which scores are summed by sorting instead of by position


@dataclass(frozen=True, slots=True)
class ScoredPassages:
    """The ``ids`` of n passages, ascending, and their ``scores``, all above 0."""

    ids: Ids
    scores: TermScores

    def best(self, limit: int) -> dict[int, float]:
        """Return the best ``limit`` scores by id; ties are ordered by id."""
        chosen = np.flatnonzero(self.scores >= self.bar(limit))
        order = chosen[np.argsort(-self.scores[chosen], kind="stable")][:limit]
        return dict(zip(self.ids[order].tolist(), self.scores[order].tolist(), strict=True))

    def look_up(self, ids: Sequence[int]) -> dict[int, float]:
        """Return the scores of given passages, in their order; those without one are omitted."""
        found = self.within(np.unique(np.asarray(ids, np.int64)))
        scores = dict(zip(found.ids.tolist(), found.scores.tolist(), strict=True))
        return {key: scores[key] for key in ids if key in scores}

    def within(self, ids: Ids) -> ScoredPassages:
        """Return the scores of given passages (sorted ids)."""
        if not len(self.ids):
            return self
        places = np.searchsorted(self.ids, ids)
        kept = places[np.take(self.ids, places, mode="clip") == ids]
        return ScoredPassages(self.ids[kept], self.scores[kept])

    def above(self, score: float) -> ScoredPassages:
        kept = self.scores >= score
        return ScoredPassages(self.ids[kept], self.scores[kept])

    def plus(self, postings: Mapping[int, Postings], terms: TermWeights) -> ScoredPassages:
        """Add the contributions of further terms, including passages that contain only these terms."""
        more = _list_contributions(postings, terms)
        return _sum_scores(np.concatenate([self.ids, more[0]]), np.concatenate([self.scores, more[1]]))

    def bar(self, limit: int) -> float:
        """Return the score at rank ``limit``; 0 if there are fewer passages."""
        if len(self.scores) < limit:
            return 0.0
        return float(np.partition(self.scores, len(self.scores) - limit)[len(self.scores) - limit])


@dataclass(frozen=True, slots=True)
class LegRanking:
    """The passages that a leg retrieves."""

    scores: dict[int, float]  # by internal passage id, best first, in the leg's own unit
    others: dict[int, float] = field(default_factory=dict)  # the other leg's scores of these passages, if requested
    known: ScoredPassages | None = None  # scores of all passages by the terms that the leg has read completely
    unread: tuple[int, ...] = ()  # the other terms
    documents: dict[int, str] = field(default_factory=dict[int, str])  # of the passages, if the leg reads them


def rank_everything(
    connection: Connection,
    index: str,
    terms: TermWeights,
    limit: int,
    at_once: int = MAX_POSTINGS_AT_ONCE,
    within: Ids | None = None,
) -> LegRanking:
    """Return the ``limit`` best passages with their scores, restricted to ``within`` if given.

    If there are at most ``at_once`` postings, all are read. Otherwise MaxScore (Turtle & Flood, "Query evaluation:
    strategies and optimizations", 1995) skips postings that cannot matter: the heaviest terms are read until the
    remaining ones together cannot reach the best scores so far; the rest are looked up only for passages that can still
    reach them.
    """
    rest, counts = list(sort_by_weight(terms)), terms.postings
    together = np.cumsum([counts[term] for term in rest])
    first = rest[: max(1, int(np.searchsorted(together, at_once, side="right")))]
    found, rest = score_postings(_fetch_all(connection, index, first, terms.entries, within), terms), rest[len(first) :]
    while rest:
        bar = found.bar(limit) * (1 - 1e-9)
        at_most = sum(terms.weight(term) for term in rest)
        hopeful = found.above(bar - at_most)
        if at_most < bar and LOOKUP_COST * len(hopeful.ids) * len(rest) < sum(counts[term] for term in rest):
            hopeful = hopeful.plus(fetch_passage_postings(connection, index, rest, hopeful.ids), terms)
            return LegRanking(hopeful.best(limit), known=found, unread=tuple(rest))
        found, rest = found.plus(_fetch_all(connection, index, rest[:1], terms.entries, within), terms), rest[1:]
    return LegRanking(found.best(limit), known=found)


def rank_listed(
    connection: Connection, index: str, terms: TermWeights, ids: Ids, limit: int, at_once: int = MAX_POSTINGS_AT_ONCE
) -> LegRanking:
    """Return the ``limit`` best of the given passages (sorted ids) with their scores.

    If the passages form few runs, they are looked up; otherwise postings are skipped as in ``rank_everything``.
    """
    if _in_few_runs(ids, terms.postings):
        found = score_postings(fetch_passage_postings(connection, index, terms.ids, ids), terms)
        return LegRanking(found.best(limit), known=found)
    return rank_everything(connection, index, terms, limit, at_once, within=ids)


def score_passages(connection: Connection, index: str, terms: TermWeights, ids: Sequence[int]) -> dict[int, float]:
    """Return the scores of given passages; those without any of the terms are omitted."""
    found = score_postings(
        fetch_listed_postings(connection, index, terms.postings, np.unique(np.asarray(ids, np.int64)), terms.entries),
        terms,
    )
    return dict(zip(found.ids.tolist(), found.scores.tolist(), strict=True))


def score_others(
    connection: Connection, index: str, terms: TermWeights, ranking: LegRanking, ids: Sequence[int]
) -> dict[int, float]:
    """Return the same as ``score_passages``, reading only the terms that ``ranking`` has not read."""
    if ranking.known is None:
        return score_passages(connection, index, terms, ids)
    if not ranking.unread:
        return ranking.known.look_up(ids)
    wanted = np.unique(np.asarray(ids, np.int64))
    counts = {term: terms.postings[term] for term in ranking.unread}
    unread = fetch_listed_postings(connection, index, counts, wanted, {})
    return ranking.known.within(wanted).plus(unread, terms).look_up(ids)


def score_postings(postings: Mapping[int, Postings], terms: TermWeights) -> ScoredPassages:
    return _sum_scores(*_list_contributions(postings, terms))


def compute_contributions(postings: Postings, terms: TermWeights, term: int) -> TermScores:
    """Return a term's contribution to each of its passages: weight * tf / (tf + a + c * length)."""
    frequencies = postings["frequency"].astype(np.float64)
    return terms.weight(term) * frequencies / (frequencies + terms.a + terms.c * postings["length"])


def sort_by_weight(terms: TermWeights) -> tuple[int, ...]:
    return tuple(sorted(set(terms.ids), key=lambda term: (-terms.weight(term), term)))


def fetch_listed_postings(
    connection: Connection, index: str, counts: Mapping[int, int], ids: Ids, entries: Mapping[int, bytes]
) -> dict[int, Postings]:
    """Return the postings of given passages by term id: looked up if they form few runs, otherwise selected from all.

    Args:
        counts: The number of postings of each term, by id.
        ids: The passages, sorted.
        entries: Postings that have been read, by term id.
    """
    if not entries.keys() >= counts.keys() and _in_few_runs(ids, counts):
        return fetch_passage_postings(connection, index, list(counts), ids)
    return _fetch_all(connection, index, list(counts), entries, ids)


def _in_few_runs(ids: Ids, counts: Mapping[int, int]) -> bool:
    """Return whether looking up passages run by run is cheaper than reading all postings of the terms."""
    return not len(ids) or LOOKUP_COST * len(split_runs(ids)) * len(counts) < sum(counts.values())


def _fetch_all(
    connection: Connection, index: str, ids: Sequence[int], entries: Mapping[int, bytes], within: Ids | None
) -> dict[int, Postings]:
    """Return all postings of the terms ``ids``, or those of the passages ``within``; ``entries`` may have some."""
    postings = {term: np.frombuffer(entries[term], POSTING) for term in ids if term in entries}
    missing = [term for term in ids if term not in postings]
    if missing:
        postings |= fetch_term_postings(connection, index, missing)
    if within is None:
        return postings
    return {term: select_postings(of_term, within) for term, of_term in postings.items()}


def _list_contributions(postings: Mapping[int, Postings], terms: TermWeights) -> tuple[Ids, TermScores]:
    """Return the passages of the postings and each posting's contribution, heaviest term first."""
    read = [term for term in sort_by_weight(terms) if term in postings]
    ids = [postings[term]["passage"].astype(np.int64) for term in read]
    given = [compute_contributions(postings[term], terms, term) for term in read]
    return np.concatenate([np.empty(0, np.int64), *ids]), np.concatenate([np.empty(0), *given])


def _sum_scores(ids: Ids, values: TermScores) -> ScoredPassages:
    if not len(ids):
        return ScoredPassages(ids, values)
    lowest = int(ids.min())
    if int(ids.max()) - lowest > MIN_IDS_PER_POSTING * len(ids):
        passages, places = np.unique(ids, return_inverse=True)
        return ScoredPassages(passages, _sum_by_place(places, values))
    sums = _sum_by_place(ids - lowest, values)
    held = np.flatnonzero(sums)
    return ScoredPassages(held + lowest, sums[held])


def _sum_by_place(places: Ids, values: TermScores) -> TermScores:
    return np.bincount(places, values).astype(np.float64, copy=False)


# Scores of given passages, whether or not the leg would retrieve them


def fetch_term_contributions(
    connection: Connection, index: str, terms: TermWeights, passage: int
) -> list[tuple[int, int, float]]:
    """Return (term id, frequency, contribution to the BM25 score) for one passage, largest first."""
    postings = fetch_passage_postings(connection, index, terms.ids, [passage])
    given = [
        (term, int(of["frequency"][0]), float(compute_contributions(of, terms, term)[0]))
        for term, of in postings.items()
    ]
    return sorted(given, key=lambda share: (-share[2], share[0]))


def fetch_matched_terms(
    connection: Connection, index: str, terms: TermWeights, ids: Sequence[int]
) -> dict[int, set[int]]:
    """Return the terms (ids) that each given passage has; passages without any are omitted."""
    terms_of: dict[int, set[int]] = {}
    for term, postings in fetch_listed_postings(
        connection, index, terms.postings, np.unique(np.asarray(ids, np.int64)), terms.entries
    ).items():
        for passage in postings["passage"].tolist():
            terms_of.setdefault(passage, set()).add(term)
    return terms_of

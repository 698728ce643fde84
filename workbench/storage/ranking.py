"""Rankings of the vector and keyword legs over a scope, each reading as little as possible."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from workbench.storage.database import Connection, Database, Row, bind_integers, clean_parameters, fetch_one, statement
from workbench.storage.graph import EXACT_UP_TO
from workbench.storage.passages import (
    SOURCE_PREDICATES,
    QueryTerm,
    ScopeTotals,
    TermWeights,
    bind_vector,
    choose_scope_predicate,
    fetch_rows,
    scope_parameters,
)
from workbench.storage.postings import (
    MAX_POSTINGS_AT_ONCE,
    Ids,
    LegRanking,
    ScoredPassages,
    fetch_listed_postings,
    fetch_term_postings,
    rank_everything,
    rank_listed,
    score_postings,
)
from workbench.text import find_spellings, split_code
from workbench.types import DocumentSpan, Index, ResolvedScope, Span

# Ranking depth in a large scope, as a multiple of the limit, and its growth if that is too little
DEPTH_FACTOR, DEPTH_GROWTH = 2, 4


def count_scope(connection: Connection, index: str, scope: ResolvedScope) -> int:
    """Return the number of passages in a scope, counted only up to ``EXACT_UP_TO`` + 1."""
    parameters = {**scope_parameters(scope), "cap": EXACT_UP_TO + 1, "index": index}
    rows = fetch_rows(connection, index, "count_in_scope", parameters, scope=choose_scope_predicate(scope))
    return min(int(rows[0]["n"]), EXACT_UP_TO + 1)


def filter_documents(database: Database, scope: ResolvedScope, ids: Sequence[str]) -> list[str]:
    if scope.is_empty or not ids:
        return []
    if scope.is_everything:
        return list(ids)
    query = statement("documents_within", scope=choose_scope_predicate(scope))
    return [row["document_id"] for row in database.rows(query, {"ids": list(ids), **scope_parameters(scope)})]


def filter_passages(connection: Connection, index: str, scope: ResolvedScope, ids: Sequence[int]) -> set[int]:
    if scope.is_empty:
        return set()
    parameters = {"ids": bind_integers(ids), **scope_parameters(scope)}
    return {
        row["id"]
        for row in fetch_rows(connection, index, "ids_in_scope", parameters, scope=choose_scope_predicate(scope))
    }


def fetch_scope_ids(connection: Connection, index: str, scope: ResolvedScope) -> Ids:
    """Return the sorted ids of the passages in a scope of at most ``EXACT_UP_TO``."""
    if scope.is_empty:
        return np.empty(0, np.int64)
    parameters = scope_parameters(scope)
    row = fetch_rows(connection, index, "ids_of_scope", parameters, scope=choose_scope_predicate(scope))[0]
    return np.sort(np.frombuffer(row["ids"] or b"", ">i8").astype(np.int64))


def nearest(
    connection: Connection,
    index: str,
    vector: NDArray[np.float32],
    scope: ResolvedScope,
    limit: int,
    size: int,
    given: Collection[int] = (),
) -> LegRanking:
    """Return the passages in scope nearest to a vector by cosine, and the cosines of ``given`` passages as ``others``.

    ``size`` is the result of ``count_scope``. Up to ``EXACT_UP_TO`` every distance is computed.
    """
    if scope.is_empty:
        return LegRanking({})
    parameters = {"vector": bind_vector(vector), "limit": limit, "index": index, "given": bind_integers(given)}
    parameters |= scope_parameters(scope)
    predicate = choose_scope_predicate(scope)

    def read(nearest: str) -> list[Row]:
        parts: dict[str, str | int] = {"nearest": nearest, "scope": predicate}
        parts |= {"limit": limit} if nearest == "vector_everything" else {}
        return fetch_rows(connection, index, "nearest_and_given", parameters, **parts)

    by_graph = "vector_everything" if scope.is_everything else "vector_filtered"
    rows = read("vector_exact" if size <= EXACT_UP_TO else by_graph)
    if size > EXACT_UP_TO and not scope.is_everything and sum(row["is_near"] for row in rows) < limit:
        rows = read("vector_exact")  # the graph walk ended outside the scope
    near = sorted((-row["score"], row["id"]) for row in rows if row["is_near"])
    return LegRanking(
        {key: -negated for negated, key in near},
        {row["id"]: row["score"] for row in rows if not row["is_near"]},
        documents={row["id"]: row["document_id"] for row in rows},
    )


def rank_by_terms(
    connection: Connection,
    index: str,
    terms: TermWeights,
    scope: ResolvedScope,
    limit: int,
    size: int,
    at_once: int = MAX_POSTINGS_AT_ONCE,
) -> LegRanking:
    """Return the passages in scope with the highest BM25 scores.

    ``size`` is the result of ``count_scope``; ``at_once`` as in ``rank_everything``.
    """
    if scope.is_empty or not terms.ids:
        return LegRanking({}, known=ScoredPassages(np.empty(0, np.int64), np.empty(0)))
    if scope.is_everything:
        return rank_everything(connection, index, terms, limit, at_once)
    if size <= EXACT_UP_TO:
        ids = fetch_scope_ids(connection, index, scope)
        return rank_listed(connection, index, terms, ids, limit, at_once)
    return _best_of_many(connection, index, terms, scope, limit, at_once)


def _best_of_many(
    connection: Connection, index: str, terms: TermWeights, scope: ResolvedScope, limit: int, at_once: int
) -> LegRanking:
    """Rank all passages deep enough to get ``limit`` from a large scope, which is cheaper than listing the scope."""
    depth = DEPTH_FACTOR * limit
    while True:
        ranking = rank_everything(connection, index, terms, depth, at_once)
        inside = filter_passages(connection, index, scope, list(ranking.scores))
        kept = {key: score for key, score in ranking.scores.items() if key in inside}
        if len(kept) >= limit or len(ranking.scores) < depth:
            return replace(ranking, scores=dict(islice(kept.items(), limit)))
        depth *= DEPTH_GROWTH


# The lexicon: terms of an index and of a scope

Version = tuple[int, int, int]
SAMPLE_SIZES = (200, 5_000, 10**9)  # passages of a term to check against a large scope, step by step up to all


@dataclass(frozen=True, slots=True)
class KnownTerm:
    term: str
    id: int
    df: int  # passages in scope with the term
    postings: int  # passages of the whole index with the term


@dataclass(frozen=True, slots=True)
class QuestionTerms:
    """The statistics of a scope and the terms of a question in each of its languages."""

    totals: ScopeTotals
    terms: tuple[QueryTerm, ...]
    name_terms: frozenset[str]  # terms of the text in which names of documents are looked for


def fetch_query_terms(
    connection: Connection,
    index: str,
    query: str,
    scope: ResolvedScope,
    size: int,
    *,
    names: str = "",
    at_once: int = 0,
    absent: Collection[str] = (),
) -> QuestionTerms:
    """Return the statistics of a scope and the query's terms in each of its languages.

    A term that occurs only outside the scope is unknown. A name with signs (1.3.2) that does not occur in the scope is
    left out, and its parts are terms, as they would be in an index of the scope alone.

    Args:
        size: The result of ``count_scope``.
        names: The text in which names of documents are looked for.
        at_once: Number of postings up to which those of the rarest terms are read as well.
        absent: Names with signs that are known to be outside the scope.
    """
    predicate = choose_scope_predicate(scope)
    statistics = "statistics_of_sources" if predicate in SOURCE_PREDICATES else "statistics_of_documents"
    wanted = statement("query_terms", index, statistics=statistics, scope=predicate)
    values = {"index": index, "query": query, "absent": list(absent), **scope_parameters(scope)}
    spellings = find_spellings(query)
    values |= {"spellings": list(spellings), "places": [place for place, _ in spellings.values()]}
    values |= {"lengths": [length for _, length in spellings.values()], "names": names, "at_once": at_once}
    row = fetch_one(connection.execute(wanted, clean_parameters(values), binary=True))
    totals = ScopeTotals(
        row["all_passages"], row["average_length"], tuple(row["languages"]), (row["counts"], row["changed"])
    )
    columns = (row[name] or () for name in ("terms", "ids", "dfs", "positions", "passages", "replaces"))
    found = list(zip(*columns, strict=True))
    postings = {key: int(df) for _, key, df, *_ in found if key is not None}
    entries = {key: read for key, read in zip(sorted(postings), row["entries"], strict=True) if read is not None}
    counts = count_terms(connection, index, postings, scope, size, entries)
    inside = {term for term, key, *_ in found if key in counts}
    outside = [name for name in row["names"] or () if name not in inside]
    if outside:
        absent = [*absent, *outside]
        return fetch_query_terms(connection, index, query, scope, size, names=names, at_once=at_once, absent=absent)
    words = {position for term, _, _, position, *_ in found if term not in row["signed"]}
    terms = tuple(
        QueryTerm(
            term,
            key if key in counts else None,
            counts.get(key, 0),
            int(position or 0),
            passages,
            postings.get(key, 0),
            entries.get(key),
            replaces,
        )
        for term, key, _, position, passages, replaces in found
        if key in counts or position not in words or term not in row["signed"]
    )
    parts = _find_parts(connection, index, terms, scope, size)
    return QuestionTerms(totals, (*terms, *parts), frozenset(row["name_terms"]))


MAX_SPLIT_CODES = 20  # unknown codes of a question that are split; each is a query of its own


def _find_parts(
    connection: Connection, index: str, terms: Sequence[QueryTerm], scope: ResolvedScope, size: int
) -> list[QueryTerm]:
    """Return the terms of unknown words' letters and numbers (5 and mm for 5mm), if the scope has all of a word."""
    found: list[QueryTerm] = []
    for unknown in islice((term for term in terms if term.id is None and split_code(term.term)), MAX_SPLIT_CODES):
        parts = split_code(unknown.term)
        read = fetch_query_terms(connection, index, "\n".join(parts), scope, size).terms
        known = [replace(part, position=unknown.position) for part in read if part.id is not None]
        is_complete = len({part.position for part in read if part.id is not None}) == len(set(parts))
        found += known if is_complete else []
    return found


def fetch_lexicon_version(connection: Connection, index: str) -> Version:
    """Return a value that changes whenever terms may have been added to an index."""
    row = fetch_one(connection.execute(statement("lexicon_version", index), {"index": index}))
    return int(row["newest"]), int(row["passages"]), int(row["terms"])


def fetch_lexicon_terms(connection: Connection, index: str) -> list[str]:
    return list(fetch_one(connection.execute(statement("lexicon_all", index)))["terms"])


def fetch_known_terms(
    connection: Connection, index: str, terms: Collection[str], scope: ResolvedScope, size: int
) -> dict[str, KnownTerm]:
    """Return the lexicon entries of given terms that occur in a scope; ``size`` as in ``count_terms``."""
    if not terms:
        return {}
    rows = connection.execute(statement("terms_by_name", index), {"terms": clean_parameters(list(terms))}).fetchall()
    counts = count_terms(connection, index, {row["id"]: row["df"] for row in rows}, scope, size)
    return {
        row["term"]: KnownTerm(row["term"], row["id"], counts[row["id"]], row["df"])
        for row in rows
        if row["id"] in counts
    }


def fetch_variant_terms(connection: Connection, index: str, variants: Sequence[str]) -> set[str]:
    """Return the lexicon's terms for any of a word's spellings."""
    values = {"index": index, "variants": clean_parameters(" ".join(variants))}
    return {row["term"] for row in connection.execute(statement("terms_of_variants", index), values).fetchall()}


def fetch_word_terms(connection: Connection, words: Sequence[tuple[str, str]]) -> dict[tuple[str, str], set[str]]:
    """Return the terms of (word, language) pairs, as the keyword index makes them."""
    terms: dict[tuple[str, str], set[str]] = {}
    values = {"words": clean_parameters([word for word, _ in words]), "languages": [language for _, language in words]}
    for row in connection.execute(statement("terms_of_words"), values).fetchall():
        terms.setdefault((row["word"], row["language"]), set()).add(row["term"])
    return terms


def count_stop_words(connection: Connection, words: Sequence[str]) -> dict[str, int]:
    """Return the number of stop words among the words, by language (Postgres' names); others are omitted."""
    rows = connection.execute(statement("stop_words"), {"words": clean_parameters(list(words))}).fetchall()
    return {row["language"]: row["words"] for row in rows}


def count_terms(
    connection: Connection,
    index: str,
    terms: Mapping[int, int],
    scope: ResolvedScope,
    size: int,
    entries: Mapping[int, bytes] = MappingProxyType({}),
) -> dict[int, int]:
    """Return how many passages in a scope have each of the given terms, by id; missing terms are omitted.

    Args:
        terms: Number of passages of the whole index by term id.
        size: The result of ``count_scope``. For more than ``EXACT_UP_TO`` passages, the numbers are estimates.
        entries: Postings that have been read, by term id.
    """
    if scope.is_everything:
        return dict(terms)
    if scope.is_empty or not terms:
        return {}
    if size <= EXACT_UP_TO:
        ids = fetch_scope_ids(connection, index, scope)
        listed = fetch_listed_postings(connection, index, terms, ids, entries)
        return {term: len(postings) for term, postings in listed.items() if len(postings)}
    return _estimate_terms(connection, index, list(terms), scope)


def _estimate_terms(connection: Connection, index: str, terms: Sequence[int], scope: ResolvedScope) -> dict[int, int]:
    """Return the estimated counts of terms in a large scope, from a sample of each term's passages."""
    counts: dict[int, int] = {}
    left = {
        term: postings["passage"].astype(np.int64)
        for term, postings in fetch_term_postings(connection, index, terms).items()
    }
    for most in SAMPLE_SIZES:
        looked = {term: passages[:: -(-len(passages) // most)] for term, passages in left.items()}
        if not looked:
            break
        inside = filter_passages(connection, index, scope, np.unique(np.concatenate(list(looked.values()))).tolist())
        for term, passages in looked.items():
            held = len(inside.intersection(passages.tolist()))
            if held:
                counts[term] = max(1, round(len(left[term]) * held / len(passages)))
        left = {term: passages for term, passages in left.items() if term not in counts and len(passages) > most}
    return counts


# Exact score and rank of one passage, for explanations

ScoreAndRank = tuple[float, int]  # score and rank, from 1


def fetch_bm25_rank(
    connection: Connection, index: str, terms: TermWeights, scope: ResolvedScope, passage: int
) -> ScoreAndRank | None:
    """Return a passage's BM25 score and its rank among all passages in the scope; None if it has none of the terms."""
    found = score_postings(fetch_term_postings(connection, index, terms.ids), terms)
    place = int(np.searchsorted(found.ids, passage))
    if place == len(found.ids) or found.ids[place] != passage:
        return None
    score = found.scores[place]
    ahead = found.ids[(found.scores > score) | ((found.scores == score) & (found.ids < passage))]
    others = len(ahead) if scope.is_everything else len(filter_passages(connection, index, scope, ahead.tolist()))
    return float(score), 1 + others


# Context of passages: neighbours, sections, pages and terms


@dataclass(frozen=True, slots=True)
class PassageTerm:
    id: int
    term: str
    df: int  # passages in scope with the term
    postings: int  # passages of the whole index with the term
    share: float  # sum of its shares of the passages' terms
    passages: int


def fetch_neighbour_spans(
    connection: Connection, index: Index, passages: Sequence[tuple[str, int]], reach: int
) -> list[Span | None]:
    """Return, for each (document, ordinal), the span from ``reach`` passages before it to ``reach`` after it."""
    return _read_spans(connection, "spans_around", index.name, _make_ordinals(passages, reach), len(passages))


def fetch_section_spans(
    connection: Connection, index: Index, passages: Sequence[tuple[str, int]], reach: int
) -> list[Span | None]:
    """Return, for each (document, ordinal), the span of its section: the neighbours with the same heading.

    It extends at most ``reach`` passages in both directions; None for a passage without a heading.
    """
    return _read_spans(connection, "spans_of_sections", index.name, _make_ordinals(passages, reach), len(passages))


def fetch_page_spans(connection: Connection, places: Sequence[DocumentSpan]) -> list[Span | None]:
    return _read_spans(connection, "spans_of_pages", None, _stretches(places), len(places))


def fetch_document_slices(connection: Connection, index: str, places: Sequence[DocumentSpan]) -> list[str | None]:
    """Return the text of given spans of documents; None if the index contains another version of the document."""
    rows = connection.execute(statement("document_slices"), {"index": index} | _stretches(places)).fetchall()
    texts = {int(row["place"]): str(row["text"]) for row in rows}
    return [texts.get(place) for place in range(1, len(places) + 1)]


def fetch_passage_terms(
    connection: Connection, index: str, ids: Sequence[int], scope: ResolvedScope, size: int
) -> list[PassageTerm]:
    """Return every term of the given passages in a scope; ``size`` as in ``count_terms``."""
    rows = connection.execute(statement("terms_of_passages", index), {"ids": list(ids)}).fetchall()
    counts = count_terms(connection, index, {row["id"]: row["df"] for row in rows}, scope, size)
    return [
        PassageTerm(row["id"], row["term"], counts[row["id"]], row["df"], float(row["share"]), int(row["passages"]))
        for row in rows
        if row["id"] in counts
    ]


def _make_ordinals(passages: Sequence[tuple[str, int]], reach: int) -> dict[str, object]:
    documents, ordinals = [document for document, _ in passages], [ordinal for _, ordinal in passages]
    return {"document_ids": documents, "ordinals": ordinals, "reach": reach}


def _stretches(places: Sequence[DocumentSpan]) -> dict[str, object]:
    documents, starts, ends = zip(*places, strict=True) if places else ((), (), ())
    return {"document_ids": list(documents), "starts": list(starts), "ends": list(ends)}


def _read_spans(
    connection: Connection, name: str, index: str | None, parameters: dict[str, object], places: int
) -> list[Span | None]:
    """Return the span for each given position; None if the database has none."""
    rows = connection.execute(statement(name, index), parameters).fetchall()
    spans = {int(row["place"]): (int(row["first"]), int(row["last"])) for row in rows}
    return [spans.get(place) for place in range(1, places + 1)]

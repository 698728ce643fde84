"""The keyword leg skips postings that cannot matter, and ranks exactly as if it had read all of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from keyword_index import brought

from tests.conftest import cloned_database
from workbench import Settings, Workbench
from workbench.ingestion.incoming import text_item
from workbench.retrieval.bm25 import weigh_terms
from workbench.storage import postings as term_ranking
from workbench.storage.passages import TermWeights
from workbench.storage.postings import score_others
from workbench.storage.ranking import EXACT_UP_TO, count_terms, fetch_query_terms, filter_passages, rank_by_terms
from workbench.storage.store import PassageStore
from workbench.types import ResolvedScope

WORDS = [
    f"{first}{last}"
    for first in ("kar", "lum", "pod", "sti", "vex")
    for last in ("dan", "fil", "gor", "mup", "ni", "rus", "tek", "zol")
]
QUESTIONS = (
    "kardan vexmup",
    "lumfil podgor stidan kardan karfil kargor",
    "kardan karfil",
    "vexmup vexgor vexfil kardan",
    " ".join(WORDS),
)


@pytest.fixture(scope="module")
def wb(server_url: str, template_database: str, test_home: Path) -> Iterator[Workbench]:
    """Two sources of documents whose word frequencies are as in a real language; the tests only read them."""
    rng = np.random.default_rng(5)
    commonness = 1 / np.arange(1, len(WORDS) + 1)
    with cloned_database(server_url, template_database) as url:
        chosen = Settings(home=test_home, database_url=url, embedding_model="hash", _env_file=None)  # pyright: ignore
        with Workbench.open(settings=chosen) as workbench:
            for source, documents in (("Large", 160), ("Small", 40)):
                texts = {
                    f"{source}{number}.txt": " ".join(
                        rng.choice(WORDS, rng.integers(5, 40), p=commonness / commonness.sum())
                    )
                    for number in range(documents)
                }
                items = [text_item(name, text, title=name) for name, text in texts.items()]
                workbench.documents.ingest_items(workbench.sources.create(source).id, items)
            yield workbench


@pytest.fixture
def store(wb: Workbench) -> PassageStore:
    return wb.corpus.store(wb.corpus.index(None))


def _everything_read(
    wb: Workbench, store: PassageStore, question: str, terms: TermWeights, scope: ResolvedScope
) -> list[tuple[int, float]]:
    """(passage, score) by the formula, from the passages' texts alone, best first."""
    scores: dict[int, float] = {}
    with store.reading() as connection:
        asked = fetch_query_terms(connection, store.index.name, question, ResolvedScope(), 0).terms
        known = {term.term: term.id for term in asked if term.id is not None}
        for term, passage, frequency, length, _ in brought(wb):
            if term in known:
                share = terms.weight(known[term]) * frequency / (frequency + terms.a + terms.c * length)
                scores[passage] = scores.get(passage, 0.0) + share
        inside = filter_passages(connection, store.index.name, scope, list(scores))
    return sorted(((key, scores[key]) for key in inside), key=lambda pair: (-round(pair[1], 9), pair[0]))


@pytest.mark.parametrize("held", [0, 40, EXACT_UP_TO + 1], ids=["everything", "few", "many"])
@pytest.mark.parametrize("question", QUESTIONS, ids=["two", "six", "common", "rare", "long"])
def test_the_bar_leaves_out_nothing_that_belongs_among_the_best(
    wb: Workbench, store: PassageStore, question: str, held: int
) -> None:
    small = next(source for source in wb.sources.list() if source.title == "Small")
    scope = ResolvedScope(source_ids=(small.id,)) if held else ResolvedScope()
    with store.reading() as connection:
        asked = fetch_query_terms(connection, store.index.name, question, ResolvedScope(), 0)
        weights = weigh_terms(asked.terms, asked.totals)
        everything = _everything_read(wb, store, question, weights, scope)
        for limit, at_once in ((1, 0), (3, 0), (20, 0), (20, 100), (20, 250_000), (500, 0)):
            ranking = rank_by_terms(connection, store.index.name, weights, scope, limit, held, at_once=at_once)
            expected = everything[:limit]
            assert [round(score, 9) for score in ranking.scores.values()] == [round(score, 9) for _, score in expected]
            assert [key for key, _ in expected] == sorted(
                ranking.scores, key=lambda key: (-round(ranking.scores[key], 9), key)
            )
            assert len(ranking.scores) > 0
            others = list(dict(everything[::7]))
            scored = score_others(connection, store.index.name, weights, ranking, [*others, 10**9])
            assert list(scored) == others
            assert [round(score, 9) for score in scored.values()] == [round(s, 9) for _, s in everything[::7]]


def test_what_cannot_reach_the_bar_is_not_read(store: PassageStore, monkeypatch: pytest.MonkeyPatch) -> None:
    with store.reading() as connection:
        words = fetch_query_terms(connection, store.index.name, "vexzol kardan", ResolvedScope(), 0)
        weights = weigh_terms(words.terms, words.totals)
        whole = rank_by_terms(connection, store.index.name, weights, ResolvedScope(), 1, 0)
        read = term_ranking.fetch_term_postings
        asked: list[list[int]] = []

        def watched(*arguments: Any) -> Any:
            asked.append(list(arguments[2]))
            return read(*arguments)

        monkeypatch.setattr(term_ranking, "fetch_term_postings", watched)
        monkeypatch.setattr(term_ranking, "LOOKUP_COST", 1)
        found = rank_by_terms(connection, store.index.name, weights, ResolvedScope(), 1, 0, at_once=0)
    [common] = [term.id for term in words.terms if term.term == "kardan"]
    assert found.scores == whole.scores
    assert found.unread
    assert asked
    assert not any(common in ids for ids in asked)
    with store.reading() as connection:
        everything = rank_by_terms(connection, store.index.name, weights, ResolvedScope(), 500, 0).scores
        assert score_others(connection, store.index.name, weights, found, list(everything)) == everything


@pytest.mark.parametrize("size", [40, EXACT_UP_TO + 1], ids=["few", "many"])
def test_terms_and_lengths_are_counted_within_the_scope(wb: Workbench, store: PassageStore, size: int) -> None:
    small = next(source for source in wb.sources.list() if source.title == "Small")
    scope = ResolvedScope(source_ids=(small.id,))
    postings = brought(wb)
    with store.reading() as connection:
        rows = connection.execute(
            "SELECT id, length(text) AS n FROM data_main WHERE source_id = %s", (small.id,)
        ).fetchall()
        inside = {row["id"] for row in rows}
        lexicon = connection.execute("SELECT id, term, df FROM lexicon_main").fetchall()
        held = [entry for entry in postings if entry[1] in inside]
        expected = Counter(entry[0] for entry in held)
        counts = count_terms(connection, store.index.name, {row["id"]: row["df"] for row in lexicon}, scope, size)
        assert {row["term"]: counts[row["id"]] for row in lexicon if row["id"] in counts} == expected
        asked = fetch_query_terms(connection, store.index.name, " ".join(expected), scope, size)
    totals = asked.totals
    assert {term.term: term.df for term in asked.terms} == {term.term: expected[term.term] for term in asked.terms}
    lengths = {entry[1]: entry[3] for entry in held}
    assert (totals.passages, totals.average_length) == (len(inside), sum(lengths.values()) / len(inside))

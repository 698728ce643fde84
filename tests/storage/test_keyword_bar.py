"""The keyword leg reads few of the postings and ranks exactly as if it had read them all."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from workbench import Workbench
from workbench.retrieval.words.bm25 import weigh
from workbench.storage.lexicon import query_terms
from workbench.storage.ranking import EXACT_UP_TO, best_by_terms, in_scope
from workbench.storage.rows import TermWeights
from workbench.storage.statements import statement
from workbench.storage.vector_store import PassageStore
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


@pytest.fixture
def store(wb: Workbench, folder: Callable[..., Path]) -> PassageStore:
    """Two sources of documents whose words are common and rare as in a language."""
    rng = np.random.default_rng(5)
    commonness = 1 / np.arange(1, len(WORDS) + 1)
    for source, documents in (("Large", 160), ("Small", 40)):
        texts = {
            f"{source}{number}.txt": " ".join(rng.choice(WORDS, rng.integers(5, 40), p=commonness / commonness.sum()))
            for number in range(documents)
        }
        wb.ingest(folder(texts, source), source=source)
    return wb.corpus.store(wb.corpus.index(None))


def _everything_read(store: PassageStore, terms: TermWeights, scope: ResolvedScope, limit: int) -> list[float]:
    parameters = {**terms.parameters(), "limit": 1000}
    with store.reading() as connection:
        rows = connection.execute(statement("bench_bm25", store.index.name), parameters).fetchall()
        inside = in_scope(connection, store.index.name, scope, [row["id"] for row in rows])
    return [row["score"] for row in rows if row["id"] in inside][:limit]


@pytest.mark.parametrize("held", [0, 40, EXACT_UP_TO + 1], ids=["everything", "few", "many"])
@pytest.mark.parametrize("question", QUESTIONS, ids=["two", "six", "common", "rare", "long"])
def test_the_bar_leaves_out_nothing_that_belongs_among_the_best(
    wb: Workbench, store: PassageStore, question: str, held: int
) -> None:
    small = next(source for source in wb.sources.list() if source.title == "Small")
    scope = ResolvedScope(source_ids=(small.id,)) if held else ResolvedScope()
    with store.reading() as connection:
        totals, terms = query_terms(connection, store.index.name, question)
        weights = weigh(terms, totals)
        for limit, brief in ((1, 0), (3, 0), (20, 0), (20, 12_000), (500, 0)):
            ranking = best_by_terms(connection, store.index.name, weights, scope, limit, held, brief=brief)
            expected = _everything_read(store, weights, scope, limit)
            assert list(ranking.scores.values()) == pytest.approx(expected, rel=1e-12)
            assert len(ranking.scores) > 0

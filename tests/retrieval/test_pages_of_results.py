"""Pages of results: every limit is a prefix of one ranking, so that pages neither repeat nor miss a passage."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests.conftest import cloned_database
from workbench import Scope, Workbench
from workbench.ingestion.incoming import text_item
from workbench.retrieval.options import Ask
from workbench.retrieval.parameters import MAX_DEPTH
from workbench.retrieval.strategies import STRATEGIES
from workbench.settings import Settings

WORDS = "harbour lantern orchard glacier compass meadow anvil ferry violin zebra payment refund ledger".split()  # noqa: SIM905
QUESTION = "the refund of an invoice at the harbour"
DOCUMENTS = 330
STRATEGY_NAMES = [name for name, row in STRATEGIES.items() if not row.needs_reranker]


@pytest.fixture(scope="module")
def crowded(server_url: str, template_database: str, test_home: Path, llm_url: str) -> Iterator[Workbench]:
    """Documents in two sources of a project and a global one; a third of them have nearly the same text."""
    dice = random.Random(5)
    with cloned_database(server_url, template_database) as url:
        llm = {"llm_base_url": llm_url, "llm_model": "good"}
        chosen = Settings(home=test_home, database_url=url, embedding_model="hash", _env_file=None, **llm)  # pyright: ignore
        with Workbench.open(settings=chosen) as wb:
            wb.projects.create("Shop", id="shop")
            sources = [
                wb.sources.create("Own", project="shop").id,
                wb.sources.create("Common").id,
                wb.sources.create("More", project="shop").id,
            ]
            for place, source in enumerate(sources):
                items = [text_item(f"{n}", written(dice, n), title=f"Note {n}") for n in range(place, DOCUMENTS, 3)]
                wb.documents.ingest_items(source, items)
            with psycopg.connect(url, autocommit=True) as connection:
                connection.execute("VACUUM ANALYZE")  # else the server may change its plan between two pages
            yield wb


def written(dice: random.Random, number: int) -> str:
    """Return a document of three parts, or one of the many that differ only in a number."""
    if number % 3 == 0:
        return f"A refund was paid for invoice {number}."
    parts = [" ".join(dice.choices(WORDS, k=30)) for _ in range(3)]
    return "\n\n".join(f"## Part {n}\n\n{part}." for n, part in enumerate(parts))


@pytest.mark.parametrize("name", STRATEGY_NAMES)
@pytest.mark.parametrize("scope", [Scope(), Scope(project="shop"), Scope(kind="project", project="shop")])
def test_every_limit_is_the_first_part_of_one_ranking(crowded: Workbench, name: str, scope: Scope) -> None:
    if name == "scoped" and scope == Scope():
        return
    whole = ranking(crowded, name, scope, MAX_DEPTH)
    assert len({key for key, _ in whole}) == len(whole)
    for limit in (1, 10, 49, 51, 101):
        assert ranking(crowded, name, scope, limit) == whole[:limit], limit


@pytest.mark.parametrize("name", [name for name in STRATEGY_NAMES if name not in ("window", "auto-merge", "fuzzy")])
def test_two_hundred_are_found_if_there_are_as_many(crowded: Workbench, name: str) -> None:
    scope = Scope(project="shop")
    found = crowded.search_service.search(QUESTION, Ask(name, MAX_DEPTH, scope))
    if name != "keyword":  # not every passage has one of the words
        assert (len(found), found.under_filled) == (MAX_DEPTH, False)
    scores = [round(hit.score, 4) for hit in found]
    assert scores == sorted(scores, reverse=True)
    if name != "vector":
        for hit in found:
            assert sum(leg.contribution for leg in hit.attribution.values()) == pytest.approx(hit.score, abs=1e-6)


@pytest.mark.parametrize("name", ["rerank", "hybrid", "window"])
def test_every_limit_of_documents_is_the_first_part_of_one_ranking(crowded: Workbench, name: str) -> None:
    def documents(limit: int) -> list[tuple[str, float, int]]:
        result = crowded.document_search.search(QUESTION, Ask(name, limit))
        return [(hit.document_id, hit.score, len(hit.passages)) for hit in result.documents]

    whole = documents(100)
    assert len({key for key, _, _ in whole}) == len(whole) == 100
    for limit in (1, 5, 20, 30, 55):
        assert documents(limit) == whole[:limit], limit


def ranking(wb: Workbench, name: str, scope: Scope, limit: int) -> list[tuple[str, float]]:
    """Return passage ids and scores of a search."""
    result = wb.search_service.search(QUESTION, Ask(name, limit, scope))
    return [(hit.passage_id, round(hit.score, 9)) for hit in result]

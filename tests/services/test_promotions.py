"""The winner of a comparison can become the default of a scope, which can be undone."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from workbench import Scope, Workbench
from workbench.errors import ConfigurationError, Conflict, InvalidInput, NotFound, ScopeError
from workbench.types import Progress

PROJECT, FOLDER = Scope(project="Alpha"), Scope(project="Alpha", folder="API")


@pytest.fixture
def places(wb: Workbench, folder: Callable[..., Path]) -> Workbench:
    """A project with a folder and a source in it, and a global source."""
    wb.projects.create("Alpha")
    wb.projects.create_folder("Alpha", "API")
    wb.ingest(folder({"a.md": "The login needs a token."}, "inside"), source="Inside", project="Alpha", folder="API")
    wb.ingest(folder({"b.md": "A token opens the gate."}, "outside"), source="Outside")
    return wb


def serves(wb: Workbench, scope: Scope | None = None) -> str:
    """Return the strategy of a search that names none."""
    return wb.search("token", scope=scope).strategy


def test_the_most_specific_scope_wins(places: Workbench) -> None:
    assert serves(places) == "rerank"
    places.promotions.promote("vector")
    places.promotions.promote("keyword", scope=PROJECT)
    places.promotions.promote("hybrid", scope=FOLDER)
    assert (serves(places), serves(places, PROJECT), serves(places, FOLDER)) == ("vector", "keyword", "hybrid")
    assert serves(places, Scope(sources=("Outside",))) == "vector"
    assert serves(places, Scope(sources=("Inside",))) == "hybrid"  # it is in the folder
    places.promotions.promote("mmr", scope=Scope(sources=("Inside",)))
    assert serves(places, Scope(sources=("Inside",))) == "mmr"
    assert places.search("token", "rerank", scope=FOLDER).strategy == "rerank"


def test_parameters_and_index_come_along_and_can_be_overridden(places: Workbench) -> None:
    places.indexes.create("second", chunker="sentence")
    places.indexes.build("second")
    places.promotions.promote("hybrid@second", parameters={"vector_weight": 0.0})
    result = places.search("token")
    assert result.index == "second"
    assert all(hit.attribution["vector"].contribution == 0 for hit in result)
    changed = places.search("token", parameters={"vector_weight": 1.0}, index="main")
    assert changed.index == "main" and all(hit.attribution["vector"].contribution > 0 for hit in changed[:1])
    assert places.query_engine().retrieve("token")[0].node.metadata["_legs"]["vector"].contribution == 0
    assert places.query_engine("rerank").retrieve("token")[0].score == places.search("token", "rerank")[0].score


def test_versions_are_kept_and_undone_one_by_one(places: Workbench) -> None:
    first = places.promotions.promote("vector", scope=PROJECT, note="won on the sample")
    second = places.promotions.promote("keyword", scope=PROJECT)
    assert (first.version, second.version) == (1, 2)
    assert [(item.version, item.serves) for item in places.promotions.history(PROJECT)] == [(2, True), (1, False)]
    assert places.promotions.undo(PROJECT).strategy == "vector"  # pyright: ignore[reportOptionalMemberAccess]
    assert serves(places, PROJECT) == "vector"
    assert places.promotions.undo(PROJECT) is None and serves(places, PROJECT) == "rerank"
    with pytest.raises(Conflict, match="Nothing is promoted"):
        places.promotions.undo(PROJECT)
    assert places.promotions.promote("mmr", scope=PROJECT).version == 3
    assert [item.note for item in places.promotions.history(PROJECT)] == ["", "", "won on the sample"]
    assert [item.scope_title for item in places.promotions.current()] == ["Alpha"]


def test_a_deleted_place_takes_its_promotions_along_and_a_dropped_index_is_forgotten(places: Workbench) -> None:
    places.indexes.create("second", chunker="sentence")
    places.indexes.build("second")
    places.promotions.promote("keyword@second", scope=FOLDER)
    places.indexes.delete("second")
    assert (serves(places, FOLDER), places.search("token", scope=FOLDER).index) == ("keyword", "main")
    places.projects.delete("Alpha")
    assert places.promotions.current() == []


def test_a_strategy_that_insists_on_a_scope_serves_a_place_but_not_everywhere(places: Workbench) -> None:
    with pytest.raises(InvalidInput, match="'scoped' needs a scope; promote it for a project, a folder or a source"):
        places.promotions.promote("scoped")
    places.promotions.promote("scoped", scope=PROJECT)
    assert (serves(places), serves(places, PROJECT)) == ("rerank", "scoped")


def test_what_cannot_serve_is_not_promoted(places: Workbench) -> None:
    with pytest.raises(InvalidInput, match="There is no strategy 'best'"):
        places.promotions.promote("best")
    with pytest.raises(InvalidInput, match="Invalid vector_weight 7"):
        places.promotions.promote("hybrid", parameters={"vector_weight": 7})
    with pytest.raises(NotFound, match="Index not found: none"):
        places.promotions.promote("hybrid@none")
    with pytest.raises(ConfigurationError, match="needs an LLM"):
        places.promotions.promote("hyde")
    places.indexes.create("half", chunker="sentence")
    with pytest.raises(Conflict, match="finish building it"):
        places.promotions.promote("hybrid", index="half")
    assert places.promotions.history() == []


@pytest.mark.parametrize(
    "scope", [Scope(tags=("x",)), Scope(kind="global"), Scope(sources=("Inside", "Outside")), Scope(documents=("d",))]
)
def test_only_a_place_has_promotions(places: Workbench, scope: Scope) -> None:
    with pytest.raises(ScopeError, match="everywhere, for a project, a folder or one source"):
        places.promotions.promote("vector", scope=scope)


def test_what_comes_in_is_found_by_the_index_that_serves(places: Workbench, folder: Callable[..., Path]) -> None:
    places.indexes.create("second", chunker="sentence")
    places.indexes.create("idle", chunker="token")
    for name in ("second", "idle"):
        places.indexes.build(name)
    places.promotions.promote("keyword@second", scope=PROJECT)
    told: list[Progress] = []
    quince = folder({"c.md": "A quince asks for no token."}, "later")
    places.ingest(quince, source="Later", project="Alpha", on_progress=told.append)
    assert told[-1].message.startswith("index second: ") and told[-1].done == told[-1].total == 1
    found = places.search("quince", scope=PROJECT)
    assert (found.index, found[0].text, found.degraded) == ("second", "A quince asks for no token.", ())
    assert (places.indexes.count_missing("main"), places.indexes.count_missing("idle")) == (0, 1)
    places.documents.create(text="A medlar asks for a token, too.", title="Medlar", source="Later")
    assert places.search("medlar", scope=PROJECT)[0].document_title == "Medlar"
    places.promotions.undo(PROJECT)
    places.ingest(folder({"d.md": "A sloe."}, "last"), source="Later", project="Alpha")
    assert (places.indexes.count_missing("main"), places.indexes.count_missing("second")) == (0, 1)


def test_an_ingest_does_not_fail_because_the_model_of_a_promoted_index_is_gone(
    places: Workbench, folder: Callable[..., Path]
) -> None:
    places.indexes.create("second", chunker="sentence")
    places.indexes.build("second")
    places.promotions.promote("keyword@second")
    places.corpus.database.rows(sql.SQL("UPDATE indexes SET embedding_model = 'nowhere:gone' WHERE name = 'second'"))
    assert places.ingest(folder({"c.md": "A quince."}, "later"), source="Later").added == 1
    assert "second lacks 1 document; run 'workbench indexes build second'" in places.search("token").degraded


def test_a_proposal_that_two_people_accept_at_the_same_moment_is_promoted_once(
    places: Workbench, database_url: str
) -> None:
    proposal = places.promotions.propose("vector", "Finds paraphrases")
    waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
    with psycopg.connect(database_url) as holder, psycopg.connect(database_url, autocommit=True) as observer:
        holder.execute("SELECT pg_advisory_xact_lock(hashtext('workbench promotions'))")
        with ThreadPoolExecutor(2) as people:
            accepted = [people.submit(places.promotions.accept, proposal.id) for _ in range(2)]
            while observer.execute(waiting).fetchone() != (2,):  # both have read the open proposal
                time.sleep(0.02)
            holder.rollback()
            errors = [one.exception() for one in accepted]
    assert [type(error) for error in errors if error] == [NotFound]
    assert [one.strategy for one in places.promotions.history()] == ["vector"]
    assert places.promotions.proposals() == []


def test_a_proposal_that_cannot_be_promoted_stays_open(places: Workbench) -> None:
    places.indexes.create("other", embedding_model="hash")
    proposal = places.promotions.propose("vector@other", "Smaller")
    with pytest.raises(Conflict, match="finish building it first"):
        places.promotions.accept(proposal.id)
    assert [one.id for one in places.promotions.proposals()] == [proposal.id]

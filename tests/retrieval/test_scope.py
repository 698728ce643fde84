"""Scopes: names become ids, unknown ones are errors, and no document outside is ever returned."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from pathlib import Path

import pytest

from workbench import Scope, Workbench
from workbench.errors import ScopeError
from workbench.retrieval.strategies import STRATEGIES
from workbench.storage import ranking

SAME = "The login endpoint answers with a token."
HOSTILE = ["' OR '1'='1", 'a"b', "100%", "%s", "a\x00b", "src_'; DROP TABLE sources; --", "\\", "🐈"]


@pytest.fixture
def places(wb: Workbench, folder: Callable[..., Path]) -> Workbench:
    """The same words in a global source, in two projects and in a folder."""
    for title in ("One", "Two"):
        project = wb.projects.create(title)
        wb.projects.create_folder(project.id, "API")
    wb.ingest(folder({"g.md": SAME}, "g"), source="Global", tags=["python", "rest"])
    wb.ingest(folder({"p.md": SAME}, "p"), source="First", project="One", folder="API", tags=["python"])
    wb.ingest(folder({"q.md": SAME}, "q"), source="Second", project="Two")
    return wb


def found(wb: Workbench, scope: Scope, strategy: str = "rerank") -> set[str | None]:
    return {hit.path for hit in wb.search("login endpoint", scope=scope, strategy=strategy)}


@pytest.mark.parametrize("strategy", [name for name, row in STRATEGIES.items() if not row.needs and name != "scoped"])
def test_a_project_sees_itself_and_a_search_of_all_with_a_project_never_another(
    places: Workbench, strategy: str
) -> None:
    assert found(places, Scope(kind="project", project="One"), strategy) == {"p.md"}
    assert found(places, Scope(project="One"), strategy) == {"p.md", "g.md"}
    assert found(places, Scope(kind="global"), strategy) == {"g.md"}


def test_folder_tag_and_source_narrow(places: Workbench) -> None:
    assert found(places, Scope(project="One", kind="project", folder="API")) == {"p.md"}
    assert found(places, Scope(tags=("python",))) == {"p.md", "g.md"}
    assert found(places, Scope(sources=("Second",))) == {"q.md"}
    assert found(places, Scope(sources=())) == set()


def test_one_text_is_one_name_not_its_letters(places: Workbench) -> None:
    assert Scope(tags="python", sources="First") == Scope(tags=("python",), sources=("First",))  # pyright: ignore
    assert found(places, Scope(tags="rest")) == {"g.md"}  # pyright: ignore[reportArgumentType]
    source = places.sources.create("Tagged", tags="reading")  # pyright: ignore[reportArgumentType]
    assert source.tags == ("reading",)
    assert list(places.compare("login", "keyword").strategies) == ["keyword"]


def test_of_two_equal_passages_the_projects_own_comes_first(places: Workbench) -> None:
    hits = places.search("login endpoint", scope=Scope(project="One"), strategy="hybrid")
    assert [hit.path for hit in hits] == ["p.md", "g.md"]


def test_among_equals_more_wanted_tags_come_first(places: Workbench) -> None:
    hits = places.search("login endpoint", scope=Scope(tags=("python", "rest")), strategy="vector")
    assert hits[0].path == "g.md"


def test_an_unknown_tag_finds_nothing_and_suggests_the_nearest(places: Workbench) -> None:
    result = places.search("login endpoint", scope=Scope(tags=("pyton",)))
    assert len(result) == 0
    assert "'python'" in result.scope.notes[0]


@pytest.mark.parametrize(
    ("scope", "sentence"),
    [
        (Scope(project="Three"), r"Valid projects: 'One' \(proj_\w+\), 'Two' \(proj_\w+\)\."),
        (Scope(project="One", folder="UI"), "Folders of this project: 'API'"),
        (Scope(sources=("Nowhere",)), "Source not found: Nowhere"),
        (Scope(kind="project"), "needs a project"),
        (Scope(folder="API"), "give the project too"),
        (Scope(kind="global", project="One"), "has no project"),
        (Scope(since=date(2026, 2, 1), until=date(2026, 1, 1)), "ends"),
        (Scope(since="yesterday"), "Invalid value for since 'yesterday': use a date"),  # pyright: ignore[reportArgumentType]
        (Scope(languages=("klingon",)), "There is no language 'klingon'; use one of"),
        ("First", "use Scope"),
    ],
)
def test_what_does_not_exist_or_contradicts_itself_is_one_sentence(
    places: Workbench, scope: Scope, sentence: str
) -> None:
    with pytest.raises(ScopeError, match=sentence):
        places.search("login", scope=scope)


@pytest.mark.parametrize("strategy", ["vector", "keyword", "hybrid", "rerank", "llamaindex-hybrid"])
def test_a_language_narrows_by_its_code_and_by_its_name(
    wb: Workbench, folder: Callable[..., Path], strategy: str
) -> None:
    german = "Der Turm steht in der alten Stadt und ist dreihundert Meter hoch, sagen die Leute am Markt. " * 2
    english = "The tower stands in the old town and is three hundred metres high, say the people there. " * 2
    wb.ingest(folder({"de.md": german, "en.md": english, "zh.md": "这座塔高三百米，位于老城中心。turm tower" * 3}))

    def paths(*languages: str) -> set[str | None]:
        return {hit.path for hit in wb.search("turm tower", strategy, scope=Scope(languages=languages))}

    assert paths() == {"de.md", "en.md", "zh.md"}
    assert paths("de") == paths("German") == {"de.md"}
    assert paths("de", "en") == {"de.md", "en.md"}
    assert paths("zh") == paths("cjk") == {"zh.md"}
    assert paths("fr") == set()


@pytest.mark.parametrize("value", HOSTILE)
def test_hostile_values_neither_leak_nor_fail(places: Workbench, value: str) -> None:
    assert found(places, Scope(tags=(value,))) == set()
    assert found(places, Scope(document_types=(value,))) == set()
    assert found(places, Scope(documents=(value,)), "llamaindex-hybrid") == set()
    with pytest.raises(ScopeError):
        places.search("login", scope=Scope(project=value))
    with pytest.raises(ScopeError):
        places.search("login", scope=Scope(sources=(value,)))
    with pytest.raises(ScopeError):
        places.search("login", scope=Scope(languages=(value,)))


@pytest.mark.parametrize("exact_up_to", [10_000, 5], ids=["every distance computed", "the graph walked"])
def test_a_scope_of_one_percent_returns_as_many_as_requested(
    wb: Workbench, folder: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, exact_up_to: int
) -> None:
    monkeypatch.setattr(ranking, "EXACT_UP_TO", exact_up_to)
    many = {f"m{i}.txt": f"The login endpoint number {i} answers quickly." for i in range(990)}
    few = {f"f{i}.txt": f"Notes of day {i}: something about gardens and a login." for i in range(10)}
    wb.ingest(folder(many, "many"), source="Many")
    wb.ingest(folder(few, "few"), source="Few")
    for strategy in ("vector", "hybrid", "rerank"):
        result = wb.search("login endpoint", scope=Scope(sources=("Few",)), strategy=strategy, limit=10)
        assert {hit.path[0] for hit in result} == {"f"}
        assert len(result) == 10
        assert not result.under_filled


@pytest.mark.parametrize("strategy", ["vector", "keyword", "rerank", "llamaindex-hybrid"])
def test_metadata_narrows_by_name_and_value(wb: Workbench, strategy: str) -> None:
    for title, metadata in {
        "Ann": {"author": "Ann Reyes", "status": "final", "reviewers": ["Ben", "Cy"]},
        "Ben": {"author": "Ben Okafor", "status": "final", "year": 2026},
        "Cy": {"author": "Ann Reyes", "status": "draft"},
        "None": {},
    }.items():
        wb.documents.create(text=f"{SAME} By {title}.", title=title, metadata=metadata)

    def titles(*wanted: str) -> set[str]:
        return {hit.document_title for hit in wb.search("login endpoint", strategy, scope=Scope(metadata=wanted))}

    assert titles("status=final") == {"Ann", "Ben"}
    assert titles("status=FINAL", "author=ann reyes") == {"Ann"}  # every name, regardless of case of the value
    assert titles("author=Ann Reyes", "author=Ben Okafor") == {"Ann", "Ben", "Cy"}  # one of the values
    assert titles("reviewers=Cy") == {"Ann"} and titles("year=2026") == {"Ben"}
    assert titles("status=lost") == set() and titles("colour=red") == set()
    counted = wb.sources.metadata_values()
    assert (counted["status=final"], counted["author=Ann Reyes"], counted["reviewers=Cy"]) == (2, 2, 1)
    with pytest.raises(ScopeError, match=r"Invalid metadata 'status': use NAME=VALUE"):
        titles("status")

"""Invariants of every strategy, for any question and scope: hypothesis over one small corpus in a real Postgres.

Scopes are checked against a model of the corpus written down here, not against the code that resolves them.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.conftest import cloned_database
from workbench import Scope, SearchResult, Workbench
from workbench.errors import InvalidInput, ScopeError
from workbench.retrieval.strategies import STRATEGIES
from workbench.settings import Settings
from workbench.storage.passages import fetch_documents_in_scope

# The connection pool's threads draw from `random`; inside a strategy's draw hypothesis would take that for ours.
pytestmark = pytest.mark.filterwarnings("ignore:Do not use the `random` module")

ODD_TAGS = ("it's", "100%", "a,b", "日本", '"quoted"')
WORDS = ["zebra", "violin", "harbour", "lantern", "orchard", "glacier", "compass", "meadow", "anvil", "ferry"]
NAMES = [name for name, strategy in STRATEGIES.items() if not strategy.needs]
CALM = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
SOMEWHERE = st.sampled_from(["Alpha", "Beta"])


@dataclass(frozen=True)
class Place:
    """A source as recorded by this file."""

    title: str
    project: str | None
    folder: str | None
    tags: tuple[str, ...]


PLACES = (
    Place("Open", None, None, ("x",)),
    Place("Bare", None, None, ()),
    Place('O\'Neil "%s"', None, None, ODD_TAGS[:3]),
    Place("Alpha notes", "Alpha", None, ("x", ODD_TAGS[3])),
    Place("Alpha API", "Alpha", "API", ("y",)),
    Place("Alpha %", "Alpha", "100% 'x'", (ODD_TAGS[4],)),
    Place("Beta notes", "Beta", None, ("x", "y")),
)
BY_TITLE = {place.title: place for place in PLACES}
WRITTEN = date(2026, 1, 1)  # represents the date of a file, which is later than every date of this test
FORMS = {"md": "markdown", "txt": "text", "py": "code"}


@dataclass(frozen=True)
class Library:
    """The corpus and the facts about its documents: id -> (place, type, date)."""

    wb: Workbench
    documents: dict[str, tuple[Place, str, date | None]]


@pytest.fixture(scope="module")
def library(
    server_url: str, template_database: str, test_home: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Library]:
    """Seven sources in two projects, folders and outside, with documents of three types, some with dates."""
    dice = random.Random(11)
    with cloned_database(server_url, template_database) as url:
        chosen = Settings(home=test_home, database_url=url, embedding_model="hash", _env_file=None)  # pyright: ignore
        with Workbench.open(settings=chosen) as wb:
            for project, folders in (("Alpha", ("API", "100% 'x'")), ("Beta", ())):
                wb.projects.create(project)
                for folder in folders:
                    wb.projects.create_folder(project, folder)
            for number, place in enumerate(PLACES):
                root = tmp_path_factory.mktemp("place")
                for count, form in enumerate(["md", "md", "txt", "py"]):
                    (root / f"d{number}_{count}.{form}").write_text(written(dice, form, 2000 + number, count))
                source = wb.sources.create(place.title, project=place.project, folder=place.folder, tags=place.tags)
                wb.ingest(root, source=source.id)
            wb.indexes.create("small", chunker="hierarchical", options={"size": 32, "parent": 128})
            wb.indexes.build("small")
            yield Library(wb, known(wb))


def written(dice: random.Random, form: str, year: int, count: int) -> str:
    """Return a document of random words; the first Markdown file of a source has a date."""
    body = "\n\n".join(" ".join(dice.choices(WORDS, k=25)) + "." for _ in range(4))
    if form == "py":
        return f"def {dice.choice(WORDS)}():\n    return '{' '.join(dice.choices(WORDS, k=12))}'\n"
    head = f"---\ndate: {year}-06-01\n---\n" if form == "md" and count == 0 else ""
    return f"{head}# {dice.choice(WORDS).title()}\n\n{body}\n"


def known(wb: Workbench) -> dict[str, tuple[Place, str, date | None]]:
    """Return the facts about each document, from this file's own table."""
    results = {}
    for source in wb.sources.list():
        for document in wb.documents.list(source_id=source.id):
            name = str(document.path)
            dated = date(2000 + int(name[1]), 6, 1) if name.endswith("_0.md") else WRITTEN
            results[document.id] = (BY_TITLE[source.title], FORMS[name.rsplit(".", 1)[1]], dated)
    assert len(results) == 4 * len(PLACES)
    return results


TAGS = st.lists(st.sampled_from(["x", "y", "none", *ODD_TAGS, "x' OR '1'='1"]), max_size=2).map(tuple)
TITLES = st.lists(st.sampled_from(list(BY_TITLE)), max_size=3).map(tuple)
DAYS = st.dates(date(1999, 1, 1), date(2008, 1, 1))


@st.composite
def scopes(draw: st.DrawFn) -> Scope:
    """Any scope that does not contradict itself."""
    kind = draw(st.sampled_from(["all", "global", "project"]))
    project = None if kind == "global" else draw(SOMEWHERE if kind == "project" else st.none() | SOMEWHERE)
    folder = draw(st.sampled_from([None, None, "API", "100% 'x'"])) if project == "Alpha" else None
    since, until = draw(st.none() | DAYS), draw(st.none() | DAYS)
    if since and until and since > until:
        since, until = until, since
    return Scope(
        kind=kind,
        project=project,
        folder=folder,
        tags=draw(st.just(()) | TAGS),
        sources=draw(st.none() | TITLES),
        document_types=draw(st.just(()) | st.lists(st.sampled_from([*FORMS.values(), "pdf"]), max_size=2).map(tuple)),
        languages=draw(st.just(()) | st.lists(st.sampled_from(["en", "english", "de", "cjk"]), max_size=2).map(tuple)),
        since=since,
        until=until,
    )


def holds(scope: Scope, place: Place, form: str, dated: date | None) -> bool:
    """Return whether a document is in a scope, as Scope's description defines it."""
    return (
        (scope.kind != "global" or place.project is None)
        and (scope.kind != "project" or place.project == scope.project)
        and (scope.project is None or place.project in (None, scope.project))
        and (scope.folder is None or (place.folder, place.project) == (scope.folder, scope.project))
        and (not scope.tags or bool(set(scope.tags) & set(place.tags)))
        and (scope.sources is None or place.title in scope.sources)
        and (not scope.document_types or form in scope.document_types)
        and (not scope.languages or bool({"en", "english"} & set(scope.languages)))
        and (scope.since is None or (dated is not None and dated >= scope.since))
        and (scope.until is None or (dated is not None and dated <= scope.until))
    )


def names_a_title_outside(scope: Scope) -> bool:
    """Return whether a scope names a source outside its kind or project, whose title is unknown to it."""
    places = [BY_TITLE[title] for title in scope.sources or ()]
    if scope.kind == "all":
        return any(scope.project is not None and place.project not in (None, scope.project) for place in places)
    return any(place.project != scope.project for place in places)


QUERIES = st.lists(
    st.sampled_from([*WORDS, "vioilns", "'", "100%", "%s", "\x00", '"', "日本", "🎻"]), min_size=1, max_size=5
)


def search(
    library: Library, words: list[str], strategy: str, scope: Scope, index: str, limit: int
) -> SearchResult | None:
    """Search; None if the strategy requires a scope, or if the question is only NUL characters."""
    try:
        return library.wb.search(" ".join(words), strategy, limit, scope, index=index)
    except ScopeError:
        assert (STRATEGIES[strategy].needs_scope and scope == Scope()) or names_a_title_outside(scope)
    except InvalidInput:
        assert not "".join(words).replace("\x00", "").strip()
    return None


@settings(CALM, max_examples=250)
@given(QUERIES, st.sampled_from(NAMES), scopes(), st.sampled_from(["main", "small"]), st.integers(1, 30))
def test_a_strategy_finds_all_that_it_may_and_nothing_outside_its_scope(
    library: Library, words: list[str], strategy: str, scope: Scope, index: str, limit: int
) -> None:
    result = search(library, words, strategy, scope, index, limit)
    if result is None:
        return
    allowed = {key for key, described in library.documents.items() if holds(scope, *described)}
    assert {hit.document_id for hit in result} <= allowed
    assert len(result) <= limit and result.under_filled == (len(result) < limit)
    if strategy in ("vector", "hybrid", "rerank", "mmr"):  # these rank every passage there is
        passages = sum(len(library.wb.documents.passages(key, index=index)) for key in sorted(allowed))
        assert len(result) == min(limit, passages)


@settings(CALM, max_examples=150)
@given(QUERIES, st.sampled_from(NAMES), scopes(), st.sampled_from(["main", "small"]), st.integers(1, 30))
def test_scores_fall_contributions_add_up_and_spans_are_exact(
    library: Library, words: list[str], strategy: str, scope: Scope, index: str, limit: int
) -> None:
    result = search(library, words, strategy, scope, index, limit) or ()
    scores = [round(hit.score, 4) for hit in result]
    assert [hit.rank for hit in result] == list(range(1, len(scores) + 1))
    assert all(0 <= score <= 1 for score in scores)
    if strategy != "llamaindex-hybrid":  # the framework's own order is not a fusion
        assert scores == sorted(scores, reverse=True)
    for hit in result:
        assert sum(leg.contribution for leg in hit.attribution.values()) == pytest.approx(hit.score, abs=1e-6)
        assert (library.wb.documents.get(hit.document_id).text or "")[hit.start : hit.end] == hit.text


@settings(CALM, max_examples=100)
@given(QUERIES, st.sampled_from(NAMES), scopes(), st.sampled_from(["main", "small"]))
def test_the_same_question_has_the_same_answer(
    library: Library, words: list[str], strategy: str, scope: Scope, index: str
) -> None:
    first, second = (search(library, words, strategy, scope, index, 12) or () for _ in range(2))
    assert [(hit.passage_id, hit.score) for hit in first] == [(hit.passage_id, hit.score) for hit in second]


@settings(CALM, max_examples=500)
@given(scopes())
def test_a_scope_resolves_to_exactly_the_documents_it_describes(library: Library, scope: Scope) -> None:
    if names_a_title_outside(scope):
        with pytest.raises(ScopeError, match="Source not found"):
            library.wb.requests.resolve(scope)
        return
    resolved = library.wb.requests.resolve(scope)
    store = library.wb.corpus.store(library.wb.corpus.index("main"))
    expected = {key for key, described in library.documents.items() if holds(scope, *described)}
    if resolved.is_empty:
        assert not expected
        return
    with store.reading() as connection:
        assert set(fetch_documents_in_scope(connection, store.index.name, resolved)) == expected


@pytest.mark.parametrize("name", ["no'; DROP TABLE documents --", "%", "\x00", "API", "🎻"])
def test_an_unknown_name_is_an_error_never_everything(library: Library, name: str) -> None:
    for scope in (Scope(project=name), Scope(project="Alpha", folder=name + "?"), Scope(sources=(name,))):
        with pytest.raises(ScopeError):
            library.wb.search("zebra", scope=scope)

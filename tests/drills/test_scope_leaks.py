"""Random questions in random scopes, through every face: nothing of a document outside the scope is in any answer.

Four places hold the same words, and each has words of its own in every field: titles, texts, headings, metadata, file
and source titles, folders, tags and addresses. A word of a place outside the scope must occur nowhere in an answer,
unless the question said it: documents write their words with a capital and questions in small letters, so that a name
that is taken from a document shows.
"""

from __future__ import annotations

import json
import random
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import httpx
import pytest
from mcp.types import PromptReference, ResourceTemplateReference
from pydantic import SecretStr

from mcp_app.server import create_server
from tests.conftest import cloned_database
from tests.mcp_app.agent import Agent
from tests.mcp_app.processes import TOKEN, over_http
from workbench import Scope, Workbench
from workbench.cli import main
from workbench.ingestion.incoming import text_item
from workbench.retrieval.options import Ask
from workbench.retrieval.strategies import STRATEGIES
from workbench.settings import Settings

SHARED = ["layoffs", "refund", "ledger", "invoice", "harbour", "employees", "quarter"]
FIELDS = ["title", "word", "heading", "company", "source", "folder", "tag", "address", "file", "code"]
NAMES = [name for name, row in STRATEGIES.items() if not row.needs]
LETTERS = "bcdfghklmnprstvz"
DOCUMENTS = 4  # of a place
NAMES_WITH_SIGNS = ["1.3.2", "C++", "PPR-9087"]  # only the bank has them, the others have their parts


@dataclass(frozen=True)
class Place:
    """A source with its location, and a unique word for each field."""

    name: str
    project: str | None
    has_folder: bool
    words: dict[str, str]
    source_id: list[str] = field(default_factory=list)

    @property
    def own_words(self) -> list[str]:
        """The words of all fields that the place has."""
        return list(self.words.values())


@dataclass(frozen=True)
class World:
    """A corpus with all interfaces to it."""

    wb: Workbench
    agent: Agent
    web: httpx.Client
    places: dict[str, Place]

    def outside(self, *inside: str) -> list[str]:
        """Return the words of all places but the given ones."""
        return [word for name, place in self.places.items() if name not in inside for word in place.own_words]


@pytest.fixture
def world(server_url: str, template_database: str, test_home: Any, tmp_path: Any) -> Iterator[World]:
    """Two projects, a folder and a global source, in a separate server."""
    dice = random.Random(41)
    places = {
        "bank": Place("bank", "bank", True, invented(dice)),
        "shop": Place("shop", "shop", False, invented(dice)),
        "shop folder": Place("shop folder", "shop", True, invented(dice)),
        "global": Place("global", None, False, invented(dice)),
    }
    values: dict[str, Any] = {"home": test_home, "embedding_model": "hash", "file_roots": str(tmp_path)}
    with cloned_database(server_url, template_database) as url:
        settings = Settings(database_url=url, _env_file=None, **values)  # pyright: ignore
        with Workbench.open(settings=settings) as wb:
            for project in ("bank", "shop"):
                wb.projects.create(project.title(), id=project)
            for place in places.values():
                fill(wb, place)
            wb.indexes.create("partial", chunker="sentence")
            wb.indexes.build("partial")
            wb.documents.create(
                text="A later one.", title=f"Later {places['bank'].words['title']}", source=source(places["bank"])
            )
            with over_http(settings, WORKBENCH_MCP_TOKEN=TOKEN) as base:
                headers = {"Authorization": f"Bearer {TOKEN}"}
                with httpx.Client(base_url=base, headers=headers, timeout=120) as web:
                    yield World(wb, Agent(create_server(wb)), web, places)


def invented(dice: random.Random) -> dict[str, str]:
    """Return a word for each field that exists in no language."""
    return {
        name: "".join(dice.choice(LETTERS) + dice.choice("aeiou") for _ in range(4)).title() + "x" for name in FIELDS
    }


def source(place: Place) -> str:
    """Return the id of a place's source."""
    return place.source_id[0]


def fill(wb: Workbench, place: Place) -> None:
    """Create a place's source with its documents."""
    words = place.words
    parts = f"Release {', '.join(NAMES_WITH_SIGNS)}" if place.name == "bank" else "Release 1 for C, 3 PPR of 2, 9087"
    if place.has_folder:
        wb.projects.create_folder(str(place.project), words["folder"])
    made = wb.sources.create(
        f"Reports {words['source']}",
        project=place.project,
        folder=words["folder"] if place.has_folder else None,
        tags=[words["tag"], "money"],
    )
    place.source_id.append(made.id)
    items = [
        text_item(
            f"{words['file']}-{number}.md",
            f"# {SHARED[number].title()} in {words['title']}\n\n## {words['heading']} {number}\n\nThe {words['word']} "
            f"{' '.join(SHARED)} {number}. {parts if number else ''}\n\n```python\n{words['code']} = {number}\n```\n",
            title=f"{SHARED[number].title()} in {words['title']}",
            url=f"https://example.org/{words['address']}/{number}",
            metadata={"company": f"{words['company']} Corp", "year": 2019},
        )
        for number in range(DOCUMENTS)
    ]
    wb.documents.ingest_items(made.id, items)


def question(dice: random.Random, world: World) -> str:
    """Return a question in lower case: shared words and words of any place, some misspelled."""
    said = dice.sample(SHARED, dice.randint(1, 3))
    for place in dice.sample(list(world.places.values()), 2):
        word = dice.choice(place.own_words).lower()
        said.append(slip(dice, word) if dice.random() < 0.5 else word)
    if dice.random() < 0.4:
        place = dice.choice(list(world.places.values()))
        said.append(f"{dice.choice(SHARED[:DOCUMENTS])} in {place.words['title']}".lower())
    if dice.random() < 0.4:
        said.append(dice.choice(NAMES_WITH_SIGNS))
    dice.shuffle(said)
    return " ".join(said)


def slip(dice: random.Random, word: str) -> str:
    """Return a word with two neighbouring letters transposed."""
    at = dice.randrange(1, len(word) - 2)
    return word[:at] + word[at + 1] + word[at] + word[at + 2 :]


def check(world: World, told: str, asked: str, *inside: str) -> None:
    """Fail if an answer contains a word of a place outside the scope, unless the question contains it verbatim."""
    for word in world.outside(*inside):
        assert word not in told, f"{word!r} leaks into {told[:2000]}"
        if word.lower() not in asked:
            assert word.lower() not in told.lower(), f"{word!r} leaks into {told[:2000]}"


def any_place(dice: random.Random, world: World) -> Place:
    return dice.choice(list(world.places.values()))


def in_project(dice: random.Random, world: World, asked: str) -> None:
    """Search one project, or a folder of it."""
    folder = dice.choice(["", "", world.places["shop folder"].words["folder"], "Unknown"])
    told = call(world, "rag_search_project_knowledge", query=asked, project_id="shop", folder_name=folder)
    check(world, told, asked, "shop", "shop folder")


def in_global(dice: random.Random, world: World, asked: str) -> None:
    """Search global sources by their own tags, by tags of others, and by nearly equal tags."""
    tag = any_place(dice, world).words["tag"]
    tags = dice.choice([[], ["money"], [tag.lower()], [slip(dice, tag.lower())]])
    told = call(world, "rag_search_global_knowledge", query=asked, tags=tags)
    check(world, told, f"{asked} {tags}", "global")


def in_any(dice: random.Random, world: World, asked: str) -> None:
    """Search a project, global sources or a source, over MCP or HTTP."""
    scope, project, inside = dice.choice(
        [
            ("all", "shop", ("shop", "shop folder", "global")),
            ("global", "", ("global",)),
            ("project", "bank", ("bank",)),
        ]
    )
    given = {"query": asked, "scope": scope, "project_id": project, "names": dice.choice(["prefer", "only", "ignore"])}
    given |= {"return_mode": dice.choice(["pages", "chunks"]), "match_count": dice.choice([1, 5, 50])}
    given |= {"offset": dice.choice([0, 0, 3])}
    if dice.random() < 0.3:
        given["source_id"] = source(any_place(dice, world))
    if dice.random() < 0.3:
        given["metadata"] = [dice.choice(["year=2019", f"company={any_place(dice, world).words['company']} Corp"])]
    if dice.random() < 0.5:
        told = call(world, "rag_search_knowledge_base", **given)
    else:
        told = world.web.post("/api/rag/query", json=given).text
    check(world, told, asked, *inside)


def in_source(dice: random.Random, world: World, asked: str) -> None:
    """Search one source by its id or title with the tools that accept one."""
    place = any_place(dice, world)
    key = dice.choice([source(place), f"Reports {place.words['source']}"])
    tool, more = dice.choice(
        [
            ("search_knowledge_base", {"search_type": dice.choice(["vector", "hybrid", "rerank"])}),
            ("search_knowledge_base", {"similarity_threshold": dice.choice([0.0, 0.9])}),
            ("rag_search_code_examples", {"language": dice.choice(["", "python", "sql"])}),
            ("rag_search_knowledge_base", {"return_mode": "chunks", "metadata": ["year=2019"]}),
        ]
    )
    key = source(place) if tool == "search_knowledge_base" else key
    check(world, call(world, tool, query=asked, source_id=key, **more), asked, place.name)


def in_lists(dice: random.Random, world: World, asked: str) -> None:
    """List a project's sources and folders, over MCP and HTTP, and a source's pages; complete what depends on these."""
    for told in (
        call(world, "rag_get_available_sources", scope="project", project_id="shop"),
        call(world, "rag_list_project_folders", project_id="shop"),
        world.web.get("/api/rag/sources", params={"scope": "project", "project_id": "shop"}).text,
        world.web.get("/api/projects/shop/folders").text,
    ):
        check(world, told, "", "shop", "shop folder")
    check(world, call(world, "rag_get_available_sources", scope="global"), "", "global")
    check(world, call(world, "rag_get_available_sources", project_id="bank"), "", "bank", "global")
    place = any_place(dice, world)
    check(world, call(world, "rag_list_pages_for_source", source_id=source(place)), "", place.name)
    outsiders = {document.id for document in world.wb.documents.list(source_id=source(world.places["bank"]))}
    for name in ("source_id", "document_id", "tags", "folder_name"):
        told = completed(world, name, dice.choice(["", "r", asked[:2]]))
        check(world, told, "", "shop", "shop folder", "global")
        assert outsiders.isdisjoint(told.split()) and source(world.places["bank"]) not in told


def in_python(dice: random.Random, world: World, asked: str) -> None:
    """Search, compare, explain and answer in Python; a second index lacks a document of the bank."""
    inside, scope = dice.choice(
        [
            (("shop", "shop folder"), Scope(kind="project", project="shop")),
            (("global",), Scope(kind="global")),
            (("global",), Scope(kind="global", tags=(slip(dice, any_place(dice, world).words["tag"].lower()),))),
            (("shop",), Scope(sources=(source(world.places["shop"]),))),
        ]
    )
    ask = Ask(dice.choice(NAMES), dice.choice([3, 10, 200]), scope, dice.choice([None, "partial"]))
    tags = " ".join(scope.tags)
    result, why = world.wb.explaining.explain_hits(asked, ask)
    told = json.dumps(
        [result.to_dict(), [one.to_dict() for one in why], list(result.notes)], ensure_ascii=False, default=str
    )
    check(world, told, f"{asked} {tags}", *inside)
    outsider = dice.choice(world.wb.documents.list(source_id=source(world.places["bank"])))
    told = json.dumps(world.wb.explaining.explain(asked, ask, document_id=outsider.id).to_dict(), default=str)
    check(world, told, f"{asked} {tags}", *inside)
    told = json.dumps(world.wb.document_search.search(asked, Ask(scope=scope)).to_dict(), default=str)
    check(world, told, f"{asked} {tags}", *inside)
    told = json.dumps(world.wb.compare(asked, ["hybrid", "fuzzy"], scope=scope).to_dict(), default=str)
    check(world, told, f"{asked} {tags}", *inside)
    told = json.dumps(world.wb.answers.ask(asked, Ask(scope=scope)).answer().to_dict(), default=str)
    check(world, told, f"{asked} {tags}", *inside)


FACES = [in_project, in_project, in_global, in_any, in_any, in_source, in_lists, in_python]


def call(world: World, tool: str, **arguments: Any) -> str:
    """Return the text of a tool's answer, whether it succeeded or not."""
    result = world.agent.talk(lambda client: client.call_tool(tool, arguments))
    return "\n".join(block.text for block in result.content) + json.dumps(
        result.structured_content or {}, ensure_ascii=False
    )


def completed(world: World, name: str, typed: str) -> str:
    """Return the completions of an argument if a project is given."""
    argument, known = {"name": name, "value": typed}, {"project_id": "shop"}
    prompts = world.agent.talk(lambda client: client.list_prompts()).prompts
    names = [prompt.name for prompt in prompts if any(one.name == name for one in prompt.arguments or ())]
    templates = world.agent.talk(lambda client: client.list_resource_templates()).resource_templates
    places = [ResourceTemplateReference(type="ref/resource", uri=one.uri_template) for one in templates]
    places = [place for place in places if f"{{{name}}}" in place.uri]
    reference = PromptReference(type="ref/prompt", name=names[0]) if names else places[0]
    done = world.agent.talk(lambda client: client.complete(reference, argument, context_arguments=known))
    return " ".join(done.completion.values)


def test_nothing_outside_the_scope_is_in_any_answer(world: World, drill_seconds: float) -> None:
    until, seed = time.monotonic() + drill_seconds, 0
    while time.monotonic() < until or seed < 2 * len(FACES):
        dice = random.Random(seed)
        face: Callable[[random.Random, World, str], None] = FACES[seed % len(FACES)]
        asked = question(dice, world)
        try:
            face(dice, world, asked)
        except AssertionError as error:
            raise AssertionError(f"seed {seed}, {face.__name__}, {asked!r}: {error}") from error
        seed += 1


def test_the_command_line_shows_nothing_outside_the_scope(
    world: World, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = world.wb.settings
    monkeypatch.setenv("WORKBENCH_HOME", str(settings.home))
    assert settings.database_url is not None
    monkeypatch.setenv("WORKBENCH_DATABASE_URL", settings.database_url.get_secret_value())
    monkeypatch.setenv("WORKBENCH_EMBEDDING_MODEL", "hash")
    outsider = next(iter(world.wb.documents.list(source_id=source(world.places["bank"])))).id
    for seed in range(3):
        asked = question(random.Random(1000 + seed), world)
        for more in (["--explain"], ["--strategy", "fuzzy"], ["--expect", outsider], ["--tag", "mony"]):
            capsys.readouterr()
            assert main(["search", asked, "--scope", "project", "--project", "shop", "--json", *more]) == 0
            printed = capsys.readouterr()
            assert json.loads(printed.out)
            check(world, printed.out + printed.err, asked, "shop", "shop folder")


def test_the_words_of_the_places_are_found_where_they_belong(world: World) -> None:
    """The check can fail: each place's words do occur in answers within its own scope."""
    shop = world.places["shop"]
    told = call(
        world, "rag_search_project_knowledge", query=f"layoffs in {shop.words['title']}".lower(), project_id="shop"
    )
    assert re.search(shop.words["title"], told) and f'"preferring":["Layoffs in {shop.words["title"]}' in told.replace(
        '": [', '":['
    )
    with pytest.raises(AssertionError):
        check(world, told, "", "bank")


def test_answers_in_a_scope_are_the_same_as_without_everything_else(
    world: World, server_url: str, template_database: str, drill_seconds: float
) -> None:
    """Scores, ranks, corrections and notes: documents outside the scope change none of them."""
    inside = [place for place in world.places.values() if place.project == "shop"]
    differing: list[str] = []
    with (
        cloned_database(server_url, template_database) as url,
        Workbench.open(settings=world.wb.settings.model_copy(update={"database_url": SecretStr(url)})) as alone,
    ):
        alone.projects.create("Shop", id="shop")
        for place in inside:
            fill(alone, replace(place, source_id=[]))
        until, seed = time.monotonic() + drill_seconds, 0
        while time.monotonic() < until or seed < len(NAMES):
            dice = random.Random(2000 + seed)
            asked, strategy = question(dice, world), NAMES[seed % len(NAMES)]
            ask = Ask(strategy, dice.choice([3, 10]), Scope(kind="project", project="shop"))
            ours, theirs = (without_ids(wb, asked, ask) for wb in (world.wb, alone))
            if ours != theirs:
                at = next((n for n, pair in enumerate(zip(ours, theirs, strict=False)) if pair[0] != pair[1]), 0)
                shown = f"{ours[at - 150 : at + 100]!r}\nalone {theirs[at - 150 : at + 100]!r}"
                differing.append(f"seed {seed}, {strategy}, {asked!r}:\namong others {shown}")
            seed += 1
    assert not differing, "\n".join(differing)


def without_ids(wb: Workbench, asked: str, ask: Ask) -> str:
    """Return a search with its ids numbered in order, and without times."""
    result = wb.search_service.search(asked, ask)
    told = json.dumps([result.to_dict(), list(result.notes)], default=str)
    told = re.sub(r'"(timings_ms|[a-z_]+_at)": (\{[^}]*\}|"[^"]*")', '""', told)
    told = re.sub(r"(\d\.\d{6})\d+(e-\d+)?", r"\1", told)
    told = re.sub(r'"(source_ids|preferred_source_ids)": \[[^]]*\]', "", told)
    ids = dict.fromkeys(re.findall(r"\b(?:doc|src|psg|fld)_[0-9a-f]+\b", told))
    for number, key in enumerate(ids):
        told = told.replace(key, f"id {number}")
    return told

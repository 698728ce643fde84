"""Resources, lists of them, and prompts for agents."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp.shared.subscriptions import ResourcesListChanged, ResourceUpdated
from mcp.types import ResourceListChangedNotification, ResourceUpdatedNotification

from mcp_app.paging import tokens
from mcp_app.server import create_server
from mcp_app.subscriptions import diff_snapshots, read_source_ids, take_snapshot
from tests.mcp_app.agent import MODES, Agent
from workbench import Workbench
from workbench.ingestion.incoming import text_item


def read(agent: Agent, uri: str) -> str:
    return agent.talk(lambda client: client.read_resource(uri)).contents[0].text


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", ["lines", "hex", "thai", "emoji"])
def test_a_long_document_is_read_in_pages_within_the_budget(agent: Agent, wb: Workbench, mode: str, kind: str) -> None:
    agent, dice = Agent(agent.server, mode), random.Random(5)
    alphabet = {"hex": "0123456789abcdef", "thai": "กขคงจฉชซญดตถ", "emoji": "😀😁😂😃😄😅"}.get(kind, "")
    lines = "".join(f"Line {number}.\n" for number in range(4000)).rstrip("\n")
    text = "".join(dice.choices(alphabet, k=40_000)) if alphabet else lines
    document = wb.documents.create(text=text, title="Long").document.id
    parts, following = list[str](), f"document://{document}"
    while following:
        page = read(agent, following)
        assert tokens(page) <= 8_000
        part, _, note = page.partition("\n\n[Page ")
        parts.append(part)
        following = note.partition("Next: ")[2].removesuffix("]")
    assert "".join(parts) == text


def test_a_source_lists_its_documents_in_pages(agent: Agent, wb: Workbench) -> None:
    source = wb.sources.create("Many").id
    wb.documents.ingest_items(source, [text_item(f"{n}", f"Text {n}.", title=f"T{n}") for n in range(51)])
    first = json.loads(read(agent, f"source://{source}"))
    assert (first["source"]["title"], first["total_count"], len(first["documents"])) == ("Many", 51, 50)
    second = json.loads(read(agent, first["next"]))
    assert (len(second["documents"]), second["next"]) == (1, None)


def test_a_page_of_documents_with_long_titles_is_within_the_budget(agent: Agent, wb: Workbench) -> None:
    source = wb.sources.create("Long titles").id
    items = [text_item(f"{n}" + "ก" * 300, f"Text {n}.", title=f"{n} " + "😀" * 300) for n in range(50)]
    wb.documents.ingest_items(source, items)
    page = read(agent, f"source://{source}")
    assert tokens(page) <= 8_000
    assert len(json.loads(page)["documents"]) == 50


@pytest.mark.parametrize("uri", ["document://doc_none", "source://src_none", "document://doc_none/0", "source://x/y"])
def test_what_does_not_exist_is_an_error_that_names_it(agent: Agent, uri: str) -> None:
    with pytest.raises(MCPError, match=r"not found: (doc_none|src_none)|Invalid page"):
        read(agent, uri)


def test_the_templates_and_the_tag_catalogue_are_offered(agent: Agent) -> None:
    templates = agent.talk(lambda client: client.list_resource_templates()).resource_templates
    assert {"source://{source_id}", "document://{document_id}"} <= {item.uri_template for item in templates}
    catalogue = json.loads(read(agent, "tags://catalogue"))
    assert catalogue["catalogue"]["UI"] == ["tailwind", "radix-ui", "design-system"]


def test_the_prompt_teaches_the_decision_tree(agent: Agent) -> None:
    arguments = {"question": "How do refunds work?", "project_id": "proj_9"}
    text = agent.talk(lambda client: client.get_prompt("search_strategy", arguments)).messages[0].content.text
    assert 'rag_search_project_knowledge(query, project_id="proj_9")' in text
    assert "None: rag_search_global_knowledge(query)" in text
    assert "How do refunds work?" in text


def test_a_prompt_takes_the_completed_folder_and_tags(agent: Agent) -> None:
    arguments = {"project_id": "proj_1", "folder_name": "API", "tags": "rag, go"}
    text = agent.talk(lambda client: client.get_prompt("search_strategy", arguments)).messages[0].content.text
    assert 'folder_name="API"' in text
    assert 'tags=["rag", "go"]' in text


def test_an_unknown_prompt_is_refused_with_a_sentence_and_no_traceback(
    agent: Agent, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(MCPError, match=r"Unknown prompt: nope\. Use 'search_strategy'"):
        agent.talk(lambda client: client.get_prompt("nope"))
    assert "Traceback" not in caplog.text


def test_a_listener_hears_of_new_sources_and_changed_documents(agent: Agent, wb: Workbench) -> None:
    source = wb.sources.create("Papers").id
    document = wb.documents.create(text="Words.", title="T", source=source).document.id
    wanted = [f"source://{source}", f"document://{document}"]

    async def script(client: Client) -> set[Any]:
        heard: set[Any] = set()
        async with client.listen(resources_list_changed=True, resource_subscriptions=wanted) as events:
            changing = asyncio.create_task(changes(wb, document, heard))
            async for event in events:
                heard.add(event)
                if len(heard) == 3:
                    break
            changing.cancel()
        return heard

    assert agent.talk(script) == {ResourcesListChanged(), *(ResourceUpdated(uri=uri) for uri in wanted)}


async def changes(wb: Workbench, document: str, heard: set[Any]) -> None:
    """Change the corpus repeatedly, as another process would, until all notifications have arrived."""
    number = 0
    while len(heard) < 3:
        number += 1
        await asyncio.to_thread(wb.sources.create, f"New {number}")
        await asyncio.to_thread(wb.documents.update, document, text=f"Other words {number}.")
        await asyncio.sleep(0.5)


@pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")  # it is the earlier one
def test_clients_of_the_earlier_protocol_are_notified_of_their_subscriptions(wb: Workbench) -> None:
    document = wb.documents.create(text="Words.", title="T").document.id
    told = asyncio.Event()

    async def hear(message: Any) -> None:
        if isinstance(message, ResourceUpdatedNotification) and str(message.params.uri) == f"document://{document}":
            told.set()

    async def script() -> None:
        async with Client(create_server(wb, toolsets=["all"]), mode="legacy", message_handler=hear) as client:
            await client.subscribe_resource(f"document://{document}")
            changing = asyncio.create_task(changes(wb, document, set()))
            async with asyncio.timeout(60):
                await told.wait()
            changing.cancel()
            await client.unsubscribe_resource(f"document://{document}")

    asyncio.run(script())
    assert told.is_set()


@pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")
def test_clients_of_the_earlier_protocol_are_notified_of_sources_that_come_and_go(wb: Workbench) -> None:
    told = [asyncio.Event(), asyncio.Event()]

    async def hear(message: Any) -> None:
        if isinstance(message, ResourceListChangedNotification):
            told[told[0].is_set()].set()

    async def script() -> None:
        server = create_server(wb, toolsets=["all"])
        async with Client(server, mode="legacy", message_handler=hear) as client:
            assert client.server_capabilities.resources is not None
            assert client.server_capabilities.resources.list_changed is True
            source = await change_until_notified(told[0], lambda number: wb.sources.create(f"New {number}"))
            before = {str(resource.uri) for resource in (await client.list_resources()).resources}
            assert f"source://{source.id}" in before
            await change_until_notified(told[1], lambda number: wb.sources.create(f"Further {number}"))
        assert server.changes.listeners == 0  # the connection is closed

    asyncio.run(script())


async def change_until_notified(told: asyncio.Event, change: Callable[[int], Any]) -> Any:
    """Change the corpus repeatedly until a notification arrives; returns the first change's result."""
    first = await asyncio.to_thread(change, 0)
    for number in range(1, 60):
        with suppress(TimeoutError):
            await asyncio.wait_for(told.wait(), 1)
            return first
        await asyncio.to_thread(change, number)
    raise AssertionError("the change was not heard")


def test_a_source_that_changed_while_only_lists_were_followed_is_reported_once_it_is_read(wb: Workbench) -> None:
    kept, gone = wb.sources.create("Kept").id, wb.sources.create("Gone").id
    first = take_snapshot(wb, None)
    listed = read_source_ids(wb, first)
    assert diff_snapshots(first, listed) == []
    wb.documents.create(text="Words.", source=kept)
    wb.sources.delete(gone)
    again = read_source_ids(wb, listed)
    assert diff_snapshots(listed, again) == [ResourcesListChanged(), ResourceUpdated(uri=f"source://{gone}")]
    told = diff_snapshots(again, take_snapshot(wb, again))
    assert ResourceUpdated(uri=f"source://{kept}") in told
    unread = read_source_ids(wb, None)
    assert [
        event for event in diff_snapshots(unread, take_snapshot(wb, unread)) if "source" in getattr(event, "uri", "")
    ] == []


@pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")
def test_a_client_of_the_earlier_protocol_that_leaves_a_resource_is_no_longer_notified(wb: Workbench) -> None:
    document = wb.documents.create(text="Words.", title="T").document.id
    uri = f"document://{document}"

    async def script() -> tuple[int, int, int]:
        server = create_server(wb, toolsets=["all"])
        async with Client(server, mode="legacy") as client:
            while not (before := server.changes.listeners):  # its handshake ends with a notification
                await asyncio.sleep(0)
            await client.subscribe_resource(uri)
            await client.subscribe_resource(uri)
            followed = server.changes.listeners
            await client.unsubscribe_resource(uri)
            return before, followed, server.changes.listeners

    assert asyncio.run(script()) == (1, 2, 1)  # the first follows the list


def test_sources_are_listed_as_resources(agent: Agent, wb: Workbench) -> None:
    source = wb.sources.create("Papers").id
    resources = agent.talk(lambda client: client.list_resources()).resources
    assert {"tags://catalogue", f"source://{source}"} <= {str(resource.uri) for resource in resources}


@pytest.mark.parametrize("mode", MODES)
def test_every_source_is_reached_by_cursor_also_while_others_come_and_go(
    agent: Agent, wb: Workbench, mode: str
) -> None:
    made = [wb.sources.create(f"Source {number}").id for number in range(250)]

    async def script(client: Client) -> list[list[str]]:
        pages = [await client.list_resources()]
        wb.sources.create("Further")
        wb.sources.delete(str(pages[0].resources[-1].uri).removeprefix("source://"))
        while pages[-1].next_cursor is not None:
            pages.append(await client.list_resources(cursor=pages[-1].next_cursor))
        return [[str(resource.uri) for resource in page.resources] for page in pages]

    first, *others = Agent(agent.server, mode).talk(script)
    assert first[0] == "tags://catalogue"
    assert [len(page) for page in (first, *others)] == [101, 100, 50]
    assert [*first[1:], *others[0], *others[1]] == [f"source://{source}" for source in reversed(made)]
    with pytest.raises(MCPError, match="Invalid cursor"):
        Agent(agent.server, mode).talk(lambda client: client.list_resources(cursor="nonsense"))


def test_the_instructions_name_only_tools_that_are_offered(agent: Agent) -> None:
    told = agent.server.instructions or ""
    assert "rag_search_project_knowledge" in told
    for line in told.splitlines():
        if line.startswith("- "):
            assert any(name in line for name in agent.server.tools)

"""A call that is cancelled or takes too long stops its work; others report progress on request."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from mcp_app.server import create_server
from mcp_app.tool import Call, Tool, make_schema
from tests.mcp_app.agent import MODES, Agent
from workbench import Workbench
from workbench.opening import Opening
from workbench.settings import Settings


class Endless:
    """Work of a tool that continues until it is asked to stop, like the ingest of a very long book."""

    def __init__(self) -> None:
        self.began, self.ended = threading.Event(), threading.Event()
        self.tool = Tool(
            name="endless", title="Endless", description="Works on.", arguments=(), run=self.run, output=make_schema()
        )

    def run(self, call: Call) -> dict[str, Any]:
        self.began.set()
        if call.stop.wait(60):
            self.ended.set()
        return {}


@pytest.mark.parametrize("mode", MODES)
def test_a_cancelled_call_stops_its_work(wb: Workbench, mode: str) -> None:
    work = Endless()
    server = create_server(wb, toolsets=["all"])
    server.tools["endless"] = work.tool

    async def script(client: Any) -> bool:
        call = asyncio.create_task(client.call_tool("endless", {}))
        assert await asyncio.to_thread(work.began.wait, 60)
        call.cancel()
        return await asyncio.to_thread(work.ended.wait, 30)

    assert Agent(server, mode).talk(script)


def test_a_call_that_takes_too_long_is_stopped_with_a_sentence(make_settings: Callable[..., Settings]) -> None:
    work = Endless()
    with Workbench.open(settings=make_settings(mcp_call_seconds=2.0)) as workbench:
        server = create_server(workbench, toolsets=["all"])
        server.tools["endless"] = work.tool
        found = Agent(server).failure("endless")
    assert found["error"] == "endless was stopped after 2 seconds"
    assert work.ended.wait(30)


def test_a_call_that_is_stopped_while_the_model_loads_is_not_told_to_request_less(
    make_settings: Callable[..., Settings],
) -> None:
    work, loaded = Endless(), threading.Event()
    settings = make_settings(mcp_call_seconds=2.0)

    def load(workbench: object) -> None:
        loaded.wait(60)

    opening = Opening(lambda: Workbench.open(settings=settings), load)
    try:
        server = create_server(opening, toolsets=["all"])
        server.tools["endless"] = work.tool
        assert "the model is still loading" in Agent(server).failure("endless")["suggestion"]
        loaded.set()
        while not opening.is_warm:
            time.sleep(0.05)
        assert "Request less" in Agent(server).failure("endless")["suggestion"]
    finally:
        loaded.set()
        opening.close()


@pytest.mark.parametrize("mode", MODES)
def test_a_client_that_asks_receives_the_progress_of_an_upload(agent: Agent, mode: str) -> None:
    told: list[tuple[float, str | None]] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        told.append((progress, message))

    text = "\n\n".join(f"# Part {number}\n\n" + f"Words of part {number}. " * 30 for number in range(80))
    arguments = {"action": "create", "content": text}
    Agent(agent.server, mode).talk(
        lambda client: client.call_tool("manage_document", arguments, progress_callback=hear)
    )
    steps = [step for step, _ in told]
    assert len(steps) > 1
    assert steps == sorted(set(steps))
    assert any("passages embedded" in (message or "") for _, message in told)


def test_an_unforeseen_failure_is_a_sentence_without_a_trace(wb: Workbench) -> None:
    def broken(call: Call) -> Any:
        raise ZeroDivisionError(str(call.wb))

    server = create_server(wb, toolsets=["all"])
    server.tools["broken"] = Tool(title="Broken", description="Fails.", arguments=(), output=make_schema())(broken)
    found = Agent(server).failure("broken")
    assert found["error"] == "broken failed unexpectedly (ZeroDivisionError)"
    assert "Traceback" not in str(found)

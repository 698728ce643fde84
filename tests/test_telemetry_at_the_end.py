"""The exit of a process whose collector never answers takes at most four seconds, whatever is left to send."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from mcp import Client
from urllib3 import PoolManager, Retry

from tests.mcp_app.processes import environment, over_stdio, serving
from tests.otlp_collector import never_answering
from workbench import Workbench
from workbench.telemetry import EXPORT_FAILED

LONGEST = 4.0  # s, as docs/operating.md says
SPANS = """
import time
from workbench.telemetry import SEARCH, export, measure
export()
for _ in range(5000):
    with measure(SEARCH, "hybrid"):
        pass
print(time.time())
"""


@pytest.mark.parametrize("dripping", [False, True], ids=["silent", "dripping"])
def test_a_process_with_many_spans_ends_though_its_collector_never_answers(dripping: bool) -> None:
    with never_answering(dripping=dripping) as collector:
        told = {**os.environ, **collector.environment}
        process = subprocess.run([sys.executable, "-c", SPANS], env=told, capture_output=True, text=True, timeout=120)
        assert time.time() - float(process.stdout) < LONGEST
    assert [line for line in process.stderr.splitlines() if line != EXPORT_FAILED] == []


def test_a_command_ends_though_its_collector_never_answers(wb: Workbench, folder: Callable[..., Path]) -> None:
    wb.ingest([folder({"cats.md": "# Cats\n\nPurring is how a cat shows contentment."})])
    command = [sys.executable, "-m", "workbench.cli", "search", "cats", "--json"]
    with never_answering() as collector:
        told = environment(wb.settings, **collector.environment)
        process = subprocess.Popen(command, env=told, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        lines = iter(process.stdout.readline, "}\n")
        assert any("cats.md" in line for line in lines)
        answered = time.monotonic()
        assert process.wait(60) == 0
        assert time.monotonic() - answered < LONGEST
    process.stdout.close()


def test_a_worker_ends_though_its_collector_never_answers(wb: Workbench, folder: Callable[..., Path]) -> None:
    with never_answering() as collector:
        told = environment(wb.settings, **collector.environment)
        command = [sys.executable, "-m", "workbench.cli", "worker"]
        job = wb.jobs.enqueue_ingest([folder({"cats.md": "# Cats"})])
        worker = subprocess.Popen(command, env=told, stderr=subprocess.DEVNULL)
        assert wb.jobs.wait(job.id, timeout=60).status == "completed"
        asked = time.monotonic()
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(60) == 0
        assert time.monotonic() - asked < LONGEST + 1  # a job gets a moment to come to a whole document


def test_a_server_of_tools_ends_with_its_client_though_its_collector_never_answers(
    wb: Workbench, folder: Callable[..., Path]
) -> None:
    wb.ingest([folder({"cats.md": "# Cats\n\nPurring is how a cat shows contentment."})])

    async def script(told: dict[str, str]) -> float:
        async with Client(over_stdio(wb.settings, **told)) as client:
            assert not (await client.call_tool("search_knowledge_base", {"query": "cats"})).is_error
            left = time.monotonic()
        return time.monotonic() - left

    with never_answering() as collector:
        assert asyncio.run(script(collector.environment)) < 2.0  # then the client would kill it


def test_the_app_ends_though_its_collector_never_answers(wb: Workbench, folder: Callable[..., Path]) -> None:
    wb.ingest([folder({"cats.md": "# Cats\n\nPurring is how a cat shows contentment."})])
    patient = PoolManager(retries=Retry(total=None, connect=60, backoff_factor=0.2, backoff_max=1))
    with never_answering() as collector:
        with serving(wb.settings, **collector.environment) as address:
            assert b"contentment" in patient.request("POST", f"{address}/api/rag/query", json={"query": "cats"}).data
            told_to_end = time.monotonic()
        assert time.monotonic() - told_to_end < LONGEST + 1  # connections that are open get a moment to close

"""The main paths with the real model: files are ingested, and every interface searches, answers and explains."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from streamlit.testing.v1 import AppTest

import workbench.app
from tests.ingestion.files import pdf
from tests.mcp_app.processes import environment, over_stdio
from workbench import Workbench
from workbench.app.state.shared import OPENING
from workbench.retrieval.strategies import STRATEGIES

QUESTION = "How fast can big cats run?"  # no word of it that tells is in the passage that answers it
ANSWER = "Cheetahs sprint at seventy miles an hour."
FILES: dict[str, str | bytes] = {
    "cheetahs.md": f"# Cheetahs\n\n{ANSWER} They tire within half a minute.",
    "bread.md": "# Bread\n\nKnead the dough, let it rise for an hour and bake it until the crust is brown.",
    "tides.txt": "The tide gauge records the height of the sea twice a day, at high and at low water.",
    "trains.html": "<title>Trains</title><p>The night train leaves at ten and carries coal.</p>",
    "ledger.pdf": pdf([["The ledger lists what the harbour was paid for berths in the year 1874."]]),
}


@pytest.fixture
def animals(minilm_wb: Workbench, folder: Callable[..., Path]) -> Workbench:
    """Files of several formats, embedded by the real model."""
    report = minilm_wb.ingest(folder(FILES), source="Mixed")
    assert (report.added, len(report.failures)) == (len(FILES), 0)
    return minilm_wb


def test_python_finds_answers_explains_and_promotes_by_meaning(animals: Workbench) -> None:
    for name, strategy in STRATEGIES.items():
        if not strategy.needs and not strategy.needs_scope and name != "keyword":
            assert animals.search(QUESTION, name)[0].document_title == "Cheetahs", name
    answer = animals.ask(QUESTION)
    assert ANSWER in answer.text and answer.citations[0].document_title == "Cheetahs"
    hit = animals.search(QUESTION)[0]
    why = animals.explain(QUESTION, passage_id=hit.passage_id)
    assert (why.rank, why.legs["vector"].rank) == (1, 1) and why.alignment
    animals.promotions.promote("vector")
    assert animals.search(QUESTION).strategy == "vector"
    assert animals.ask("Who wrote the opera Tosca?").kind == "refused"


def test_a_terminal_finds_by_meaning(animals: Workbench) -> None:
    command = [sys.executable, "-m", "workbench.cli", "search", QUESTION, "--json"]
    done = subprocess.run(command, env=environment(animals.settings), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["results"][0]["document_title"] == "Cheetahs"


def test_an_agent_finds_by_meaning_reads_and_asks_why(animals: Workbench) -> None:
    async def script() -> list[Any]:
        async with Client(over_stdio(animals.settings)) as client:
            answers: list[Any] = []
            for tool, arguments in (
                ("search_knowledge_base", {"query": QUESTION}),
                ("rag_search_global_knowledge", {"query": QUESTION}),
                ("search", {"query": QUESTION}),
            ):
                answers.append((await client.call_tool(tool, arguments)).structured_content["results"][0])
            page = answers[1]["page_id"]
            text = await client.call_tool("rag_read_full_page", {"page_id": page})
            why = await client.call_tool("explain", {"query": QUESTION, "page_id": page})
            return [*answers, text.structured_content["content"], why.structured_content]

    passage, page, connected, text, why = asyncio.run(script())
    assert passage["document_title"] == page["title"] == connected["title"] == "Cheetahs"
    assert ANSWER in text and (why["rank"], why["legs"]["vector"]["rank"]) == (1, 1)


def test_the_app_finds_by_meaning(animals: Workbench) -> None:
    OPENING.use(animals)
    page = AppTest.from_file(Path(workbench.app.__file__).parent / "frame" / "main.py", default_timeout=120)
    page.query_params["q"] = QUESTION
    page.run()
    assert not page.exception
    shown = str(page)
    assert 0 < shown.find("seventy miles") < shown.find("Knead the dough")

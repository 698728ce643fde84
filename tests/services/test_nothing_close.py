"""Searches of conversations, articles and archives report that nothing close was found, with the real model."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from mcp_app.server import create_server
from tests.mcp_app.agent import Agent
from workbench import Workbench
from workbench.app.state.shared import OPENING
from workbench.cli import main
from workbench.models.encoder import EncodedQuery, EncodedTexts
from workbench.settings import Settings

TOLD = "Nothing close was found:"
FAR, NEAR = "Which submarines explore volcanoes when the sun sets?", "how do plants turn light into sugar"
PLANTS = "Photosynthesis: plants take the light of the sun and make sugar of water and carbon dioxide."
LEDGERS = "Double-entry bookkeeping records every transaction in two accounts, a debit and a credit."


def article(title: str, text: str) -> str:
    return f"---\ntitle: {title}\ndescription: On {title}.\ntags: [x]\nstatus: Live\n---\n\n{text}\n"


@pytest.fixture
def settings(make_settings: Callable[..., Settings], folder: Callable[..., Path]) -> Settings:
    files = {"plan/2025-11-17/001-plants.md": PLANTS, "plan/2025-11-18/002-ledgers.md": LEDGERS}
    articles = {"concepts/plants.md": article("Plants", PLANTS), "concepts/ledgers.md": article("Ledgers", LEDGERS)}
    notes = {f"research-archive/2025-05-20/{name}.md": text for name, text in (("a", PLANTS), ("b", LEDGERS))}
    return make_settings(
        embedding_model="minilm",
        file_roots=str(folder(files, "work")),
        articles_dir=folder(articles, "articles"),
        archives_dir=folder(notes, "archives"),
    )


@pytest.fixture
def wb(settings: Settings) -> Iterator[Workbench]:
    with Workbench.open(settings=settings) as workbench:
        workbench.workspaces.embed(Path(settings.file_roots))
        yield workbench


def test_python_marks_results_that_are_not_close(wb: Workbench) -> None:
    work = Path(wb.settings.file_roots)
    for find in (
        lambda query: wb.workspaces.search(work, query),
        wb.articles.search_by_meaning,
        wb.archives.search,
    ):
        near, far = find(NEAR), find(FAR)
        assert (near.evidence.close, near.nothing_close, bool(near.results)) == (True, "", True)
        assert far.results and not far.evidence.close and far.nothing_close.startswith(TOLD)
        assert "(threshold 0.40)" in far.nothing_close


def test_agents_are_informed(wb: Workbench) -> None:
    agent = Agent(create_server(wb, toolsets=["all"]))
    assert "nothing_close" not in agent("search_semantic", query=NEAR)
    assert agent("search_semantic", query=FAR)["nothing_close"].startswith(TOLD)
    assert "nothingClose" not in agent("searchLocalArchives", query=NEAR)["metadata"]
    assert agent("searchLocalArchives", query=FAR)["metadata"]["nothingClose"].startswith(TOLD)
    near, far = (json.loads(agent.text("search_articles", query=query, mode="semantic")) for query in (NEAR, FAR))
    assert near[0]["slug"] == "plants" and all("nothing_close" not in entry for entry in near)
    assert far[0]["nothing_close"].startswith(TOLD) and "slug" in far[0]
    last = json.loads(agent.text("search_articles", query=FAR, mode="semantic", offset=1))
    assert last[0]["nothing_close"].startswith(TOLD)


def test_the_command_line_reports_it_next_to_the_results(
    wb: Workbench, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (
        ("HOME", wb.settings.home),
        ("DATABASE_URL", database_url),
        ("EMBEDDING_MODEL", "minilm"),
        ("ARTICLES_DIR", wb.settings.articles_dir),
        ("ARCHIVES_DIR", wb.settings.archives_dir),
    ):
        monkeypatch.setenv(f"WORKBENCH_{name}", str(value))
    for command in (
        ["workspace", "search", "--workspace", wb.settings.file_roots],
        ["articles", "search", "--semantic"],
        ["archives", "search"],
    ):
        near, far = ran(*command, NEAR), ran(*command, FAR)
        assert TOLD not in near[1] and TOLD in far[1]
        assert "close" in json.loads(ran(*command, FAR, "--json")[0])["evidence"]


def ran(*arguments: str) -> tuple[str, str]:
    """Run a command in this process and return its output on stdout and stderr."""
    with redirect_stdout(StringIO()) as out, redirect_stderr(StringIO()) as err:
        assert main(list(arguments)) == 0
    return out.getvalue(), err.getvalue()


def graph_page() -> None:
    from workbench.app.graph.page import page

    page()


def test_the_page_of_archives_reports_it_above_the_results(wb: Workbench) -> None:
    OPENING.use(wb)
    shown = {}
    for query in (NEAR, FAR):
        script = AppTest.from_function(graph_page, default_timeout=60)
        script.query_params["view"], script.query_params["q"] = "archive", query
        shown[query] = " ".join(element.value for element in script.run().caption)
    assert "close was found" not in shown[NEAR] and "Nothing close was found" in shown[FAR]


class Geometry:
    """A custom encoder: passages are (1, 0); questions on bees have a cosine of .9, others of .3."""

    name = "python:workbench.models.llamaindex:geometry?tokens=none"
    dimensions, max_tokens, has_token_vectors, languages = 2, 100, False, None

    def encode(self, texts: Sequence[str], *, on_batch: object = None) -> EncodedTexts:
        return EncodedTexts(np.tile(np.array([1, 0], dtype=np.float32), (len(texts), 1)))

    def encode_query(self, text: str) -> EncodedQuery:
        cosine = 0.9 if "honey" in text or "apiary" in text else 0.3
        return EncodedQuery(np.array([cosine, (1 - cosine**2) ** 0.5], dtype=np.float32))

    def token_spans(self, text: str) -> list[tuple[int, int]]:
        return [match.span() for match in re.finditer(r"\w+", text)]

    def reads(self, text: str) -> float:
        return 1.0


def test_the_thresholds_of_a_model_from_elsewhere_are_measured_on_the_index(
    wb: Workbench, folder: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    import workbench.models.llamaindex as frameworks

    monkeypatch.setattr(frameworks, "geometry", Geometry, raising=False)  # importable by a dotted path
    text = "The workers store honey in comb number {0}. They seal the honey with wax after {0} days."
    wb.ingest(folder({f"{n}.md": f"# Comb {n}\n\n{text.format(n)}" for n in range(1, 13)}), source="Bees")
    wb.indexes.create("own", embedding_model=Geometry.name)
    asked = {"of bees": "apiary larder architecture", "of other things": "mortgage interest deduction"}
    built = wb.indexes.build("own")
    # unrelated questions have .3; passages have .9 with their own sentences, which are on honey
    nearness = dict(built.nearness or {})
    assert nearness.pop("passages") == built.passages_count
    assert nearness == pytest.approx({"far": 0.3, "near": 0.3 + 0.4 * 0.6, "sentence": 0.3 + 0.6 * 0.6}, abs=1e-3)
    close = {name: not wb.search(question, "vector", index="own").nothing_close for name, question in asked.items()}
    assert close == {"of bees": True, "of other things": False}
    reason = wb.search(asked["of other things"], "vector", index="own").nothing_close
    assert "similarity 0.30 (threshold 0.54)" in reason
    assert wb.indexes.get("main").nearness is None  # of a built-in model

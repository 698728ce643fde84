"""The documentation site is built from docs/, the notebooks and the code, and all of its links are valid."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from docs.site.build import build
from docs.site.check_links import SITE, faults
from mcp_app.tools import TOOLSETS
from workbench.retrieval.strategies import STRATEGIES

pytestmark = pytest.mark.slow  # loads every tool and notebook

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def site() -> Path:
    """The site built by `make site`."""
    assert build() == []
    return SITE


def test_every_strategy_tool_and_notebook_has_its_place(site: Path) -> None:
    strategies = (site / "reference" / "strategies.html").read_text(encoding="utf-8")
    assert all(f">{strategy.title}<" in strategies for strategy in STRATEGIES.values())
    tools = (site / "reference" / "tools.html").read_text(encoding="utf-8")
    assert all(f">{tool.name}<" in tools for family in TOOLSETS.values() for tool in family)
    assert "``" not in tools  # as an empty default was shown
    assert len(list((site / "tutorials").glob("*.html"))) == len(list((ROOT / "notebooks").glob("*.ipynb")))


def test_llms_txt_lists_every_page(site: Path) -> None:
    text = (site / "llms.txt").read_text(encoding="utf-8")
    assert text.startswith("# RAG Workbench\n\n> One corpus")
    listed = set(re.findall(r"\]\(([^)]+)\)", text))
    pages = {path.relative_to(site).as_posix() for path in site.rglob("*.html")}
    assert listed == pages - {"404.html"}


def test_a_link_that_leads_nowhere_and_a_picture_from_elsewhere_are_named(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text(
        '<a href="gone.html">x</a><a href="#nothing">y</a><img src="//example.org/a.png">'
    )
    assert list(faults(tmp_path)) == [
        "index.html would load //example.org/a.png.",
        "index.html links to gone.html, which is not there.",
        "index.html links to #nothing, but that page has no such heading.",
    ]
    assert "run 'make site'" in next(faults(tmp_path / "none"))

"""The guides for contributors: the files and packages that they name exist, and every decision is listed."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
ARCHITECTURE = (DOCS / "architecture.md").read_text(encoding="utf-8")
GUIDE = (DOCS / "contributing.md").read_text(encoding="utf-8")
DECISIONS = {path.name: path.read_text(encoding="utf-8") for path in sorted((DOCS / "decisions").glob("[0-9]*.md"))}


def test_the_diagram_of_the_packages_shows_every_package_of_the_layers() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    [layers] = [
        row["layers"] for row in settings["tool"]["importlinter"]["contracts"] if row.get("containers") == ["workbench"]
    ]
    packages = {package for layer in layers for package in re.findall(r"\w+", layer)}
    picture = ARCHITECTURE.split("## Packages")[1].split("```")[1]
    shown = set(re.findall(r"\w+", picture))
    assert packages - shown == set(), "draw them into docs/architecture.md"


def _expand_braces(name: str) -> list[str]:
    """Return the paths that a shell makes of one with braces."""
    before, brace, rest = name.partition("{")
    several, _, after = rest.partition("}")
    return [before + one + after for one in several.split(",")] if brace else [name]


def test_every_file_named_in_the_guides_exists() -> None:
    text = "\n".join((GUIDE, ARCHITECTURE, *DECISIONS.values()))
    named = set(re.findall(r"`((?:workbench|mcp_app|evals|benchmarks|tests|docs)/[\w./{},*]+)`", text))
    assert len(named) > 80
    missing = sorted(
        name for name in named if "NAME" not in name and not all(any(ROOT.glob(each)) for each in _expand_braces(name))
    )
    assert missing == []


def test_decisions_are_numbered_once_and_listed_in_the_index_and_on_the_site() -> None:
    numbers = [name[:3] for name in DECISIONS]
    assert len(set(numbers)) == len(numbers)
    assert [name for name, text in DECISIONS.items() if not text.startswith(f"# {name[:3]}: ")] == []
    index = (DOCS / "decisions" / "index.md").read_text(encoding="utf-8")
    site = (DOCS / "site" / "zensical.toml").read_text(encoding="utf-8")
    assert [name for name in DECISIONS if f"]({name})" not in index] == []
    assert [name for name in DECISIONS if f'"decisions/{name}"' not in site] == []


def test_contributing_at_the_top_points_to_the_guide() -> None:
    assert "docs/contributing.md" in (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")

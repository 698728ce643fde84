"""Module names: two modules share one only where both are about the same thing."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BY_PLACE = {"__init__", "__main__", "page", "panel", "family", "listing"}  # the part that every folder of its kind has
NOUNS = {  # things that several rooms have a part of: their table, their verbs, their command, their tools
    *(
        "answers",
        "archives",
        "articles",
        "citations",
        "cluster",
        "code_examples",
        "crawl",
        "crawls",
        "documents",
        "explain",
        "indexes",
    ),
    *(
        "ingest",
        "jobs",
        "passages",
        "projects",
        "promotions",
        "rankers",
        "search",
        "sources",
        "strategies",
        "tool_calls",
        "worker",
        "workload",
    ),
    *("workspace", "workspaces"),
}


def modules() -> dict[str, list[str]]:
    """Return every module's path by its bare name."""
    paths: dict[str, list[str]] = defaultdict(list)
    for package in ("workbench", "mcp_app", "evals"):
        for path in sorted((ROOT / package).rglob("*.py")):
            paths[path.stem].append(path.relative_to(ROOT).as_posix())
    return paths


@pytest.mark.parametrize("name", sorted(name for name, paths in modules().items() if len(paths) > 1))
def test_modules_of_one_name_are_about_one_thing(name: str) -> None:
    assert name in BY_PLACE | NOUNS, (
        f"{' and '.join(modules()[name])} share a name. If they do different things, rename one to the noun of what it "
        "holds; if they are parts of one thing, add its noun to NOUNS in tests/gate/test_module_names.py."
    )


def test_no_name_is_listed_that_is_not_shared() -> None:
    assert {name for name in BY_PLACE | NOUNS if len(modules()[name]) < 2} == set()

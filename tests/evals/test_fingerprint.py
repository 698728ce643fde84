"""A stored run becomes stale if anything that its ranking passes through changes."""

from __future__ import annotations

import ast
from pathlib import Path

import workbench
from evals.experiments.runs import list_ranking_files

ROOT = Path(workbench.__file__).parent
NOT_RANKING = {
    # places, connections and texts: they decide what is searched and shown, not in which order
    *("database", "indexes", "projects", "promotions", "replica", "sources", "statements"),
}


def imported(path: Path) -> set[str]:
    """Return the names of the storage modules that a file imports."""
    nodes = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ImportFrom)]
    modules = [node.module or "" for node in nodes]
    return {module.rsplit(".", 1)[1] for module in modules if module.startswith("workbench.storage.")}


def test_every_storage_module_that_ranking_uses_is_in_the_hash() -> None:
    files = list_ranking_files()
    hashed = {path.stem for path in files if path.parent == ROOT / "storage"}
    used = set().union(*(imported(path) for path in files if path.suffix == ".py"))
    assert used - hashed - NOT_RANKING == set()
    assert {"search.sql", "search.py", "ranking.py"} <= {path.name for path in files}

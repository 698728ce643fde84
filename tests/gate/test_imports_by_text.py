"""Nothing is imported with the built-in ``__import__``, which ruff's list of banned names does not detect."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDERS = ("workbench", "mcp_app", "evals")


def imports_by_text(source: str) -> Iterator[int]:
    """Yield each line of a source that names ``__import__``."""
    if "__import__" not in source:
        return
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Name) and node.id == "__import__":
            yield node.lineno


def test_no_module_is_imported_with_the_built_in_function() -> None:
    told = [
        f"{path.relative_to(ROOT)}:{line}: import by name; a name in a string hides the import from the layers"
        for folder in FOLDERS
        for path in sorted((ROOT / folder).rglob("*.py"))
        for line in imports_by_text(path.read_text(encoding="utf-8"))
    ]
    assert told == []


def test_the_built_in_function_is_seen_also_under_another_name() -> None:
    assert sorted(imports_by_text('APP = __import__("workbench.app")\nload = __import__\n')) == [1, 2]
    assert list(imports_by_text('import workbench\nNOTE = "__import__"\n')) == []

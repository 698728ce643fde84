"""Fail where a file is longer than 300 lines, or a function longer than 60: ``python tests/gate/sizes.py``."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

FOLDERS = ("workbench", "mcp_app", "evals", "tests")
KINDS = (".py", ".sql", ".js", ".css")
FILE = 300  # lines
FUNCTION = 60  # lines, from its "def" to its end


def faults(root: Path) -> Iterator[str]:
    """Name each file and each function below a root that is too long, one sentence each."""
    for path in _files(root):
        text = path.read_text(encoding="utf-8")
        name, lines = path.relative_to(root).as_posix(), text.count("\n")
        if lines > FILE:
            yield f"{name}:1: the file has {lines} lines, {FILE} are allowed: split it by concept"
        if path.suffix == ".py":
            yield from (f"{name}:{fault}" for fault in _long_functions(text))


def _files(root: Path) -> Iterator[Path]:
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in KINDS and "node_modules" not in path.parts:
                yield path


def _long_functions(text: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            if lines > FUNCTION:
                yield f"{node.lineno}: '{node.name}' has {lines} lines, {FUNCTION} are allowed: split it by step"


if __name__ == "__main__":
    too_long = list(faults(Path(sys.argv[1] if len(sys.argv) > 1 else ".")))
    print("\n".join(too_long) or f"No file is longer than {FILE} lines, no function longer than {FUNCTION}.")
    sys.exit(bool(too_long))

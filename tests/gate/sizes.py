"""Fail where a file, a function or a room of the app is too large: ``python tests/gate/sizes.py``."""

from __future__ import annotations

import ast
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

FOLDERS = ("workbench", "mcp_app", "evals", "tests")
KINDS = (".py", ".sql", ".js", ".css")
FILE = 300  # lines
FUNCTION = 60  # lines, from its "def" to its end
APP, ROOM = "workbench/app", 14  # modules in one folder of the app


def faults(root: Path) -> Iterator[str]:
    """Name each file and each function below a root that is too long, and each room too full, one sentence each."""
    for path in _files(root):
        text = path.read_text(encoding="utf-8")
        name, lines = path.relative_to(root).as_posix(), text.count("\n")
        if lines > FILE:
            yield f"{name}:1: the file has {lines} lines, {FILE} are allowed: split it by concept"
        if path.suffix == ".py":
            yield from (f"{name}:{fault}" for fault in _long_functions(text))
    for folder, modules in _rooms(root).items():
        if modules > ROOM:
            yield f"{folder}: the room has {modules} modules, {ROOM} are allowed: put some into a room of their own"


def _rooms(root: Path) -> Counter[str]:
    modules = [path for path in (root / APP).rglob("*.py") if path.name != "__init__.py"]
    return Counter(path.parent.relative_to(root).as_posix() for path in modules)


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
    print(
        "\n".join(too_long)
        or f"No file over {FILE} lines, no function over {FUNCTION}, no room of the app over {ROOM} modules."
    )
    sys.exit(bool(too_long))

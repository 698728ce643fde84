"""Fail if a public signature contains ``Any``: ``python tests/gate/signatures.py``.

ruff's ANN401 sees ``value: Any`` alone; this also sees it inside ``dict[str, Any]``, in fields and in names for types,
and under the other name of ``from typing import Any as X``.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

FOLDERS = ("workbench", "mcp_app", "evals")
Function = ast.FunctionDef | ast.AsyncFunctionDef


def faults(root: Path) -> Iterator[str]:
    """Report each public function, field and type alias below a root that contains ``Any``, one sentence each."""
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*.py")):
            file = path.relative_to(root).as_posix()
            tree = ast.parse(path.read_text(encoding="utf-8"))
            for line, name in _loose(tree.body, "", _names_of_any(tree)):
                yield f"{file}:{line} {name}: say the type in place of Any"


def _names_of_any(tree: ast.Module) -> frozenset[str]:
    """Return each name under which a module imports ``Any``, and ``Any`` itself."""
    imports = (node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom))
    return frozenset(
        {"Any"} | {name.asname or name.name for node in imports for name in node.names if name.name == "Any"}
    )


def _loose(body: list[ast.stmt], within: str, names: frozenset[str]) -> Iterator[tuple[int, str]]:
    """Yield the line and the dotted name of everything in a module or class that contains ``Any``."""
    for node in body:
        if isinstance(node, ast.If | ast.Try):
            yield from _loose([*node.body, *node.orelse], within, names)
        elif isinstance(node, ast.ClassDef) and _public(node.name):
            if any(_says_any(base, names) for base in node.bases):
                yield node.lineno, within + node.name
            yield from _loose(node.body, f"{within}{node.name}.", names)
        elif isinstance(node, Function) and _public(node.name):
            if any(_says_any(annotation, names) for annotation in _annotations(node)):
                yield node.lineno, within + node.name
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and _public(node.target.id):
            alias = node.value if isinstance(node.annotation, ast.Name) and node.annotation.id == "TypeAlias" else None
            if _says_any(node.annotation, names) or _says_any(alias, names):
                yield node.lineno, within + node.target.id
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Subscript | ast.BinOp | ast.Name):
            for target in node.targets:
                if isinstance(target, ast.Name) and _public(target.id) and _says_any(node.value, names):
                    yield node.lineno, within + target.id


def _public(name: str) -> bool:
    return not name.startswith("_") or (name.startswith("__") and name.endswith("__"))


def _annotations(function: Function) -> Iterator[ast.expr | None]:
    told = function.args
    for argument in (*told.posonlyargs, *told.args, *told.kwonlyargs, told.vararg, told.kwarg):
        if argument is not None:
            yield argument.annotation
    yield function.returns


def _says_any(annotation: ast.expr | None, names: frozenset[str]) -> bool:
    for node in ast.walk(annotation) if annotation is not None else ():
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            if not names.isdisjoint(re.findall(r"\w+", node.value)):
                return True
        elif (isinstance(node, ast.Name) and node.id in names) or (
            isinstance(node, ast.Attribute) and node.attr == "Any"
        ):
            return True
    return False


if __name__ == "__main__":
    loose = list(faults(Path(sys.argv[1] if len(sys.argv) > 1 else ".")))
    print("\n".join(loose) or "Every public signature says its types.")
    sys.exit(bool(loose))

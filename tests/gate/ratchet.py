"""Fail if a count of the code's structure or language rises: ``python tests/gate/ratchet.py``.

The counts are in ``ratchet.json`` and may only fall; ``--write`` stores them after they fell.
"""

from __future__ import annotations

import ast
import json
import re
import sys
from collections import defaultdict
from pathlib import Path

PACKAGES = ("workbench", "mcp_app", "evals")
COUNTS = Path(__file__).with_name("ratchet.json")
MIN_LINES = 60  # a shorter module with one importer is usually a step of that importer
PLUGINS = (  # folders of a row a file, which have one importer by design
    "workbench/cli/",
    "workbench/retrieval/retrievers/",
    "workbench/retrieval/stages/",
    "workbench/ingestion/readers/",
    "mcp_app/tools/",
)
CONDITIONAL_WHERE = re.compile(
    r"\bwhere (?:it|one|they|there|nothing|none|nobody|that|this|a|an|the|no|its|these)\b", re.I
)
ODD_WORDS = re.compile(
    r"\b(?:Tell whether|nobody|whoever|anew|goes on|go on|begins?|beside|meanwhile|stands?|lies|cannot be)\b", re.I
)
SPEECH = re.compile(r"\b(?:tells?|told|says?|said)\b", re.I)
PARTICIPLE = re.compile(
    r"^_?(?!(?:embed|zed|heading|bounding|nothing|opening)(?:_|$))[a-z]+(?:ed|ing)(?:_|$)"  # verbs and nouns
)
ODD_START = re.compile(r"^_?(?:told|said|known|given|shown|kept|held|found|lent|taken|chosen|written|read_from)(?:_|$)")
PREPOSITION = re.compile(r"_(?:of|for|in|on|at|by|to|with|from|into|before|after|under|over)$")


def modules(root: Path) -> dict[str, Path]:
    """Return every product module's path by its dotted name."""
    found = {}
    for package in PACKAGES:
        for path in sorted((root / package).rglob("*.py")):
            name = path.relative_to(root).with_suffix("").as_posix().replace("/", ".")
            found[name.removesuffix(".__init__")] = path
    return found


def imports(tree: ast.Module, known: dict[str, Path]) -> set[str]:
    """Return the product modules that a module imports, at its top or inside functions."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                within = f"{node.module}.{alias.name}"
                names.add(within if within in known else node.module)
    return names & known.keys()


def without_types(tree: ast.Module) -> ast.Module:
    """Return a module without its imports for type checkers alone."""
    return ast.Module([node for node in tree.body if ast.unparse(node)[:17] != "if TYPE_CHECKING:"], [])


def circles(arrows: dict[str, set[str]]) -> int:
    """Return the number of groups of modules that import each other, directly or indirectly (Tarjan's components)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found = 0

    def visit(name: str) -> None:
        nonlocal found
        index[name] = low[name] = len(index)
        stack.append(name)
        for other in arrows.get(name, ()):
            if other not in index:
                visit(other)
                low[name] = min(low[name], low[other])
            elif other in stack:
                low[name] = min(low[name], index[other])
        if low[name] == index[name]:
            group = []
            while not group or group[-1] != name:
                group.append(stack.pop())
            found += len(group) > 1

    sys.setrecursionlimit(5000)
    for name in arrows:
        if name not in index:
            visit(name)
    return found


def prose(path: Path, tree: ast.Module) -> str:
    """Return a module's docstrings and comments as one text."""
    nodes = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    texts = [ast.get_docstring(node) or "" for node in ast.walk(tree) if isinstance(node, nodes)]
    texts += re.findall(r"(?m)(?:^|\s)#\s(.*)$", path.read_text(encoding="utf-8"))
    return "\n".join(texts)


def count(root: Path) -> dict[str, int]:
    """Return every count of a tree, by name."""
    paths = modules(root)
    trees = {name: ast.parse(path.read_text(encoding="utf-8")) for name, path in paths.items()}
    arrows = {name: imports(tree, paths) - {name} for name, tree in trees.items()}
    importers: dict[str, set[str]] = defaultdict(set)
    for name, others in arrows.items():
        for other in others:
            importers[other].add(name)
    thin = [
        name
        for name, path in paths.items()
        if path.name not in ("__init__.py", "__main__.py")
        and len(importers[name]) == 1
        and path.read_text(encoding="utf-8").count("\n") < MIN_LINES
        and not path.relative_to(root).as_posix().startswith(PLUGINS)
    ]
    runtime = {
        name: {other for other in imports(without_types(tree), paths) - {name} if paths[other].name != "__init__.py"}
        for name, tree in trees.items()
    }
    text = "\n".join(prose(paths[name], tree) for name, tree in trees.items())
    functions = [
        node.name
        for tree in trees.values()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    return {
        "modules under 60 lines with one importer": len(thin),
        "arrows between files": sum(map(len, arrows.values())),
        "circles": circles(runtime),
        "'where' for 'if' in docstrings and comments": len(CONDITIONAL_WHERE.findall(text)),
        "odd words in docstrings and comments": len(ODD_WORDS.findall(text)),
        "tell and say in docstrings and comments": len(SPEECH.findall(text)),
        "functions that begin with a participle": sum(
            bool(PARTICIPLE.match(name) or ODD_START.match(name)) for name in functions
        ),
        "functions that end in a preposition": sum(bool(PREPOSITION.search(name)) for name in functions),
    }


def main() -> int:
    """Compare the tree's counts with the stored ones; return the exit code."""
    root = Path(next((word for word in sys.argv[1:] if not word.startswith("--")), "."))
    now = count(root)
    stored = json.loads(COUNTS.read_text(encoding="utf-8")) if COUNTS.exists() else {}
    risen = [f"{name}: {value}, was {stored[name]}" for name, value in now.items() if value > stored.get(name, value)]
    if "--write" in sys.argv and not risen:
        COUNTS.write_text(json.dumps(now, indent=2) + "\n", encoding="utf-8")
    print("\n".join(risen) or "No count has risen: " + ", ".join(f"{v} {k}" for k, v in now.items()) + ".")
    return bool(risen)


if __name__ == "__main__":
    sys.exit(main())

"""Fail if a function is too long: ``python tests/gate/sizes.py``.

Files have no limit: a file is a concept that a reader would name, at whatever length.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

FOLDERS = ("workbench", "mcp_app", "evals", "benchmarks", "tests")
MAX_FUNCTION_LINES = 60  # from "def" to the last line


def long_functions(root: Path) -> Iterator[str]:
    """Yield one sentence for each function below ``root`` that is too long."""
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*.py")):
            if "node_modules" in path.parts:
                continue
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                    lines = (node.end_lineno or node.lineno) - node.lineno + 1
                    if lines > MAX_FUNCTION_LINES:
                        name = path.relative_to(root).as_posix()
                        yield f"{name}:{node.lineno}: '{node.name}' has {lines} lines, at most {MAX_FUNCTION_LINES}"


if __name__ == "__main__":
    faults = list(long_functions(Path(sys.argv[1] if len(sys.argv) > 1 else ".")))
    print("\n".join(faults) or f"No function has over {MAX_FUNCTION_LINES} lines.")
    sys.exit(bool(faults))

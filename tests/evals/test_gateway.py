"""The gateway: no other part of evaluation takes the corpus out of a workbench."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import evals

ROOT = Path(evals.__file__).parent
PAST_IT = ("gateway", "bench")  # the bench times what lies below the gateway
FREE = {"__file__", "jobs", "settings"}  # neither documents nor indexes nor tables


def reached() -> Iterator[tuple[str, str]]:
    """Find each thing that modules beside the gateway take of a workbench: (module, attribute)."""
    for path in sorted(ROOT.rglob("*.py")):
        place = path.relative_to(ROOT)
        if place.parts[0] in PAST_IT:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute) and ast.unparse(node.value) in ("wb", "self._wb", "workbench"):
                yield place.as_posix(), node.attr


def test_only_the_gateway_takes_documents_indexes_and_tables_out_of_a_workbench() -> None:
    taken = list(reached())
    assert ("background.py", "jobs") in taken
    assert [entry for entry in taken if entry[1] not in FREE] == [], "take it through evals.gateway"

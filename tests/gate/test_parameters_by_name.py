"""Parameters of strategies are read by their declared row, so that a renamed or removed one is an error."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from workbench.retrieval.strategies import STRATEGIES

ROOT = Path(__file__).parents[2]
NAMES = {parameter.name for strategy in STRATEGIES.values() for parameter in strategy.parameters}
READERS = {"get", "float_param", "bool_param"}  # methods that take a parameter


def read_by_text(source: str) -> Iterator[tuple[int, str]]:
    """Yield the line and the name of each parameter that is read or set by a string."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Subscript(value=owner, slice=ast.Constant(value=str() as name)) if _holds_parameters(owner):
                parameter = name
            case ast.Call(
                func=ast.Attribute(value=owner, attr=method), args=[ast.Constant(value=str() as name), *_]
            ) if method in READERS and (method != "get" or _holds_parameters(owner)):
                parameter = name
            case ast.Compare(left=ast.Constant(value=str() as name), comparators=[owner]) if _holds_parameters(owner):
                parameter = name
            case ast.keyword(arg="parameters", value=ast.Dict(keys=[ast.Constant(value=str() as name), *_])):
                parameter = name
            case _:
                continue
        if parameter in NAMES:
            yield node.lineno, parameter


def _holds_parameters(node: ast.expr) -> bool:
    text = ast.unparse(node)
    return text == "parameters" or text.endswith((".parameters", "_parameters"))


def test_no_module_reads_a_parameter_by_its_name_as_a_text() -> None:
    told = [
        f"{path.relative_to(ROOT)}:{line}: the parameter {name!r} is read by its name; name its row in "
        "workbench/retrieval/parameters.py"
        for package in ("workbench", "mcp_app", "evals")
        for path in sorted((ROOT / package).rglob("*.py"))
        if any(
            word in (source := path.read_text(encoding="utf-8"))
            for word in ("parameters", "float_param(", "bool_param(")
        )
        for line, name in read_by_text(source)
    ]
    assert told == []


def test_each_way_to_read_one_by_a_text_is_seen() -> None:
    for planted in (
        'request.parameters["cutoff"]',
        'self._request.parameters.get("candidates", 0)',
        'request.float_param("share")',
        '"forgive" in ask.parameters',
        'Ask(parameters={"forgive": True})',
    ):
        assert len(list(read_by_text(planted))) == 1, planted
    assert list(read_by_text('job.parameters["paths"]; request.float_param(SHARE)')) == []

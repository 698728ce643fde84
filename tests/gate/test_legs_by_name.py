"""Legs and strategies are used by their declared names, so that a renamed or removed one is an error at once."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from workbench import types
from workbench.retrieval.legs import LEGS
from workbench.retrieval.strategies import STRATEGIES

ROOT = Path(__file__).parents[2]
BY_LEG = (
    "legs",
    "attribution",
    "views",
    "parts",
    "votes",
    "trusted",
    "contributions",
)  # names of what legs are keys of
DECLARED = ("workbench/retrieval/strategies.py", "workbench/app/widgets/looks.py")  # the rows themselves


def named_by_text(source: str) -> Iterator[tuple[int, str]]:
    """Yield the line and the name of each leg or strategy that is read or set by a string."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Subscript(value=owner, slice=ast.Constant(value=str() as name)) if _goes_by_leg(owner):
                known = name in LEGS
            case ast.Call(
                func=ast.Attribute(value=owner, attr="get"), args=[ast.Constant(value=str() as name), *_]
            ) if _goes_by_leg(owner):
                known = name in LEGS
            case ast.Compare(left=ast.Constant(value=str() as name), comparators=[owner]) if _goes_by_leg(owner):
                known = name in LEGS
            case (
                ast.Assign(targets=[ast.Name(id="leg")], value=ast.Constant(value=str() as name))
                | ast.AnnAssign(target=ast.Name(id="leg"), value=ast.Constant(value=str() as name))
            ):
                known = name in LEGS
            case ast.Dict(keys=[ast.Constant(value=str() as name), *_], values=[ast.Call(func=ast.Name(id=made)), *_]):
                known = name in LEGS and made in ("Leg", "LegView")
            case ast.Subscript(value=ast.Name(id="STRATEGIES"), slice=ast.Constant(value=str() as name)):
                known = name in STRATEGIES
            case ast.Call(func=ast.Name(id="Ask" | "strategy_named"), args=[ast.Constant(value=str() as name), *_]):
                known = name in STRATEGIES
            case ast.keyword(arg="strategy", value=ast.Constant(value=str() as name)):
                known = name in STRATEGIES
            case _:
                continue
        if known:
            yield node.lineno, name


def _goes_by_leg(node: ast.expr) -> bool:
    return ast.unparse(node).split("[")[0].split(".")[-1] in BY_LEG


def test_no_module_names_a_leg_or_a_strategy_by_a_text() -> None:
    told = [
        f"{name}:{line}: {text!r} is named by a text; take its name from workbench/types.py or "
        "workbench/retrieval/strategies.py"
        for package in ("workbench", "mcp_app")
        for path in sorted((ROOT / package).rglob("*.py"))
        if (name := path.relative_to(ROOT).as_posix()) not in DECLARED
        for line, text in named_by_text(path.read_text(encoding="utf-8"))
    ]
    assert told == []


def test_each_way_to_name_one_by_a_text_is_seen() -> None:
    for planted in (
        'hit.legs["vector"].score',
        'contributions[key].get("keyword", 0.0)',
        '"late" in hit.attribution',
        'leg = "llm"',
        'Hit(key, score, {"vector": Leg(score)})',
        'STRATEGIES["keyword"]',
        'Ask("hybrid", 1)',
        'workbench.search("warm", strategy="rerank")',
    ):
        assert len(list(named_by_text(planted))) == 1, planted
    assert list(named_by_text('hit.legs[VECTOR]; {"vector": vector_value(v)}; trace.stage("vector")')) == []


def test_every_name_of_a_leg_has_a_row_and_every_row_a_name() -> None:
    names = {
        value for key, value in vars(types).items() if key.isupper() and isinstance(value, str) and " " not in value
    }
    others = {types.AUTO, types.DATASET, types.TOTAL, types.EVERYWHERE_KEY}
    assert names - others == set(LEGS), "workbench/types.py and the rows of workbench/retrieval/legs.py must agree"


def test_every_leg_of_a_strategy_has_a_row() -> None:
    for strategy in STRATEGIES.values():
        assert set(strategy.legs) <= set(LEGS), f"{strategy.name} names a leg that workbench/retrieval/legs.py lacks"

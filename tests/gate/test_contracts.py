"""No room is forgotten: what may be imported in few rooms only is forbidden by name in all the others."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

CONTRACTS: list[dict[str, Any]] = tomllib.loads(
    (Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8")
)["tool"]["importlinter"]["contracts"]
ALLOWED = {  # the first module that a contract forbids, and the only rooms that may import it
    "workbench.settings": (
        "workbench.cli", "workbench.app", "workbench.opening", "workbench.workbench", "workbench.workbench",
        "workbench.settings", "mcp_app", "evals",
    ),
    "llama_index": ("workbench.retrieval", "workbench.models", "workbench.storage", "evals"),
    "workbench.crawling": ("workbench", "mcp_app", "evals.gateway", "evals.bench"),
    "psycopg": ("workbench.storage",),
    "streamlit": ("workbench.app",),
    "ragas": ("evals.judges",),
    "crawl4ai": ("workbench.crawling",),
    "mcp": ("mcp_app",),
}  # fmt: skip
FORBIDDING = {row["forbidden_modules"][0]: row for row in CONTRACTS if row["type"] == "forbidden"}


def rooms(contracts: list[dict[str, Any]]) -> list[str]:
    """Return every room that the layers of the workbench and of evaluation list, and the MCP app."""
    return [
        f"{container}.{room}"
        for row in contracts
        for container in row.get("containers", ())
        if container in ("workbench", "evals")
        for layer in row["layers"]
        for room in re.split(r"\s*[|:]\s*", layer)
    ] + ["mcp_app"]


def forgotten(contract: dict[str, Any], every_room: list[str], allowed: tuple[str, ...]) -> Iterator[str]:
    """Say of each room that a contract neither forbids nor allows, one sentence each; and of each that it does both."""
    sources = contract["source_modules"]
    forbidden = " and ".join(contract["forbidden_modules"])
    for room in every_room:
        listed, free = _within(room, sources), _within(room, allowed)
        if not listed and not free:
            yield f"{room} may import {forbidden}: list it in source_modules of the contract '{contract['name']}'"
        if listed and free:
            yield f"{room} may not import {forbidden} by the contract '{contract['name']}': take it out of ALLOWED"


def _within(room: str, names: list[str] | tuple[str, ...]) -> bool:
    return any(room == name or room.startswith(f"{name}.") for name in names)


@pytest.mark.parametrize("forbidden", sorted(FORBIDDING))
def test_each_contract_lists_every_room_but_those_that_may(forbidden: str) -> None:
    assert forbidden in ALLOWED, f"say in ALLOWED which rooms may import {forbidden}"
    assert list(forgotten(FORBIDDING[forbidden], rooms(CONTRACTS), ALLOWED[forbidden])) == []


def test_no_contract_is_gone() -> None:
    assert FORBIDDING.keys() == ALLOWED.keys()


def test_a_new_room_is_named_by_the_contract_that_forgets_it() -> None:
    told = list(forgotten(FORBIDDING["streamlit"], [*rooms(CONTRACTS), "workbench.planted"], ALLOWED["streamlit"]))
    assert told == [
        "workbench.planted may import streamlit: list it in source_modules of the contract 'streamlit stays in the app'"
    ]

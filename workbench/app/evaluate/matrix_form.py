"""The matrix of an experiment: its strategies, the indexes they run on, and the parameters that are varied."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from math import ceil
from typing import TYPE_CHECKING

import streamlit as st

from evals.experiments.runs import Cell, default_strategies, matrix
from workbench.app.widgets.labels import escaped, labelled
from workbench.app.widgets.names import title_of
from workbench.errors import WorkbenchError
from workbench.retrieval.strategies import COMPARED, STRATEGIES
from workbench.types import Parameter, ParameterValue

if TYPE_CHECKING:
    from workbench.workbench import Workbench

STEPS = (0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0)  # between offered values of a share or a weight
MOST_STEPS = 4  # that are offered of it
ROUND = (1, 2, 5)  # times a power of ten: a count changes something by its size, 5 to 10 as much as 50 to 100
MOST_FIRST = 3  # of them that are chosen at first: of more, two parameters make dozens of runs
BESIDE = 3  # varied parameters in a row

Varied = Mapping[str, Sequence[ParameterValue]]  # values by "strategy.parameter"


def matrix_form(workbench: Workbench) -> list[Cell]:
    """Ask for strategies, indexes and parameters; returns every combination as a cell, [] while that is none."""
    strategies = _strategies(workbench)
    left, right = st.columns(2)
    with left:
        indexes = _indexes(workbench)
    with right:
        tunable = {f"{name}.{p.name}": p for name in strategies for p in STRATEGIES[name].parameters}
        chosen = _parameters(tunable)
    names = [ranker.name for ranker in workbench.rankers.list()]
    varied = _values({key: tunable[key] for key in chosen}, names)
    if not strategies or not indexes:
        return []
    try:
        return matrix(strategies, indexes, combinations(varied))
    except WorkbenchError as error:
        st.error(escaped(str(error)))
        return []


def combinations(varied: Varied) -> dict[str, list[dict[str, ParameterValue]]]:
    """Return strategy -> every combination of the values given for its parameters ("strategy.parameter" -> values)."""
    by_strategy: dict[str, dict[str, Sequence[ParameterValue]]] = {}
    for key, values in varied.items():
        strategy, _, parameter = key.partition(".")
        if values:
            by_strategy.setdefault(strategy, {})[parameter] = values
    return {
        strategy: [dict(zip(parameters, chosen, strict=True)) for chosen in product(*parameters.values())]
        for strategy, parameters in by_strategy.items()
    }


def offers(parameter: Parameter, names: Sequence[str] = ()) -> list[ParameterValue]:
    """Return some round values of a parameter over its range, its default among them, in order.

    ``names`` are those of the rankers that there are.
    """
    if parameter.kind == "name":
        return list(names) or [parameter.default]
    if parameter.kind == "choice":
        return list(parameter.choices)
    if parameter.kind == "bool":
        return [True, False]
    low, high = float(parameter.low or 0), float(parameter.high or 0)
    if parameter.kind == "int":
        sizes = (size * 10**power for power in range(len(str(int(high)))) for size in ROUND)
        return sorted(
            {int(low), *(size for size in sizes if low < size < high), int(high), parameter.default}, key=float
        )
    step = next((step for step in STEPS if (high - low) / step <= MOST_STEPS), high - low)
    values = (round(low + place * step, 3) for place in range(MOST_STEPS + 1))
    return sorted({*(value for value in values if value <= high), parameter.default}, key=float)


def first_values(offered: Sequence[ParameterValue]) -> list[ParameterValue]:
    """Return at most three of the offered values, spread over them: what the form begins with."""
    return list(offered[:: ceil(len(offered) / MOST_FIRST)])


def _strategies(workbench: Workbench) -> list[str]:
    usable = [name for name in default_strategies() if name in STRATEGIES]
    if workbench.settings.has_llm:
        usable += [name for name, strategy in STRATEGIES.items() if strategy.needs_llm]
    if workbench.settings.reranker != "late-interaction":
        usable += [name for name, strategy in STRATEGIES.items() if strategy.needs_reranker and name not in usable]
    return list(
        st.pills(
            "Strategies",
            usable,
            selection_mode="multi",
            default=[n for n in COMPARED if n in usable],
            format_func=title_of,
            key="build_strategies",
            wrap=True,
        )
    )


def _indexes(workbench: Workbench) -> list[str | None]:
    """Return the chosen indexes; None stands for the default one."""
    indexes = workbench.indexes.list()
    names = {index.name: f"{index.name} ({index.chunker}, {index.embedding_model})" for index in indexes}
    default = next(index.name for index in indexes if index.is_default)
    chosen = st.multiselect("Indexes", list(names), [default], format_func=labelled(names), key="build_indexes")
    return [None if name == default else name for name in chosen]


def _parameters(tunable: Mapping[str, Parameter]) -> list[str]:
    names = {key: f"{title_of(key.split('.')[0])}: {p.name.replace('_', ' ')}" for key, p in tunable.items()}
    return st.multiselect(
        "Vary parameters",
        list(tunable),
        format_func=labelled(names),
        key="build_vary",
        placeholder="none: the defaults",
        help="Every combination of the values of a strategy's parameters is a run.",
    )


def _values(parameters: Mapping[str, Parameter], names: Sequence[str]) -> Varied:
    varied: dict[str, Sequence[ParameterValue]] = {}
    keys = list(parameters)
    for row in (keys[start : start + BESIDE] for start in range(0, len(keys), BESIDE)):
        for key, column in zip(row, st.columns(BESIDE), strict=False):
            parameter = parameters[key]
            offered = offers(parameter, names)
            varied[key] = column.multiselect(
                f"{title_of(key.split('.')[0])}: {parameter.name.replace('_', ' ')}",
                offered,
                first_values(offered),
                key=f"build_values_{key}",
                help=parameter.why,
                accept_new_options=True,
            )
    return varied

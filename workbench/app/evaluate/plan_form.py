"""The form of a new experiment: test set, matrix of runs, and metrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from math import ceil
from typing import TYPE_CHECKING

import streamlit as st

from evals.background import enqueue_experiment, enqueue_on_sample
from evals.experiments.catalogue import Experiments
from evals.experiments.runs import Cell, default_strategies, matrix
from evals.measures.metrics import DEFAULT_METRICS, OFFERED, metric_title
from evals.test_set import TestSet
from evals.test_sets.folders import SAMPLE, load_test_set
from evals.test_sets.store import TestSetStore
from workbench.app.evaluate.shared import preselected
from workbench.app.shell.navigation import switch
from workbench.app.shell.scope_bar import place_scope, same_scope
from workbench.app.shell.states import message
from workbench.app.state import address
from workbench.app.widgets.looks import escaped, labelled, title_of
from workbench.app.widgets.notices import leave_warning
from workbench.errors import WorkbenchError
from workbench.formatting import counted
from workbench.retrieval.strategies import COMPARED, STRATEGIES
from workbench.types import Parameter, ParameterValue, Scope

if TYPE_CHECKING:
    from workbench.workbench import Workbench

# The matrix of runs

STEPS = (0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0)  # between the offered values of a share or weight
MOST_STEPS = 4  # offered at most
ROUND = (1, 2, 5)  # times a power of ten, because counts matter by ratio
MOST_FIRST = 3  # values that are preselected; with more, two parameters make dozens of runs
BESIDE = 3  # varied parameters per row

Varied = Mapping[str, Sequence[ParameterValue]]  # values by "strategy.parameter"


def matrix_form(wb: Workbench) -> list[Cell]:
    """Ask for strategies, indexes and parameters; return every combination as a cell."""
    strategies = _strategies(wb)
    left, right = st.columns(2)
    with left:
        indexes = _indexes(wb)
    with right:
        tunable = {f"{name}.{p.name}": p for name in strategies for p in STRATEGIES[name].parameters}
        chosen = _parameters(tunable)
    names = [ranker.name for ranker in wb.rankers.list()]
    varied = _values({key: tunable[key] for key in chosen}, names)
    if not strategies or not indexes:
        return []
    try:
        return matrix(strategies, indexes, combinations(varied))
    except WorkbenchError as error:
        st.error(escaped(str(error)))
        return []


def combinations(varied: Varied) -> dict[str, list[dict[str, ParameterValue]]]:
    """Return strategy -> every combination of the values of its parameters."""
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
    """Return round values over the range of a parameter, including its default, in order.

    Args:
        parameter: The parameter.
        names: Names of the rankers.
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
    """Return at most three of the offered values, evenly spread, to preselect."""
    return list(offered[:: ceil(len(offered) / MOST_FIRST)])


def _strategies(wb: Workbench) -> list[str]:
    usable = [name for name in default_strategies() if name in STRATEGIES]
    if wb.settings.has_llm:
        usable += [name for name, strategy in STRATEGIES.items() if strategy.needs_llm]
    if wb.settings.reranker != "late-interaction":
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


def _indexes(wb: Workbench) -> list[str | None]:
    """Return the chosen indexes; None is the default one."""
    indexes = wb.indexes.list()
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
        placeholder="None (use defaults)",
        help="Each combination of a strategy's parameter values is a run.",
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


RAGAS = {"none": "No", "free": "Yes, without an LLM", "llm": "Yes, with the LLM as judge"}


def build_form(wb: Workbench) -> None:
    """Show the form; starting the experiment opens it."""
    with st.container(border=True, key="experiment_build"):
        test_set = _test_set_choice(wb)
        cells = matrix_form(wb)
        metrics, limit, ragas = _measures(wb)
        questions = _questions(wb, test_set, limit)
        with st.container(horizontal=True, vertical_alignment="center"):
            go = st.button("Run experiment", type="primary", key="experiment_go", disabled=not cells or not questions)
            st.caption(escaped(f"{_announced(len(cells), questions)} {_searched(wb, test_set)}"))
            if not questions and st.button("Rate on Compare", key="experiment_judge", type="tertiary"):
                address.leave_for("compare", judge=test_set)
                switch("compare")
        if go:
            _start(wb, test_set, cells, metrics, limit, ragas)


def planned_view(wb: Workbench, job_id: str) -> None:
    """Show that an experiment is waiting for the sample, and open it once it has started."""
    job = wb.jobs.get(job_id)
    if began := job.result.get("experiment"):
        address.put(experiment=str(began), planned=None)
        st.rerun()
    if job.is_finished:
        leave_warning("The sample was not loaded. See the job below to resume it.")
        address.put(planned=None)
        st.rerun()
    message(
        "The experiment starts when the sample is loaded",
        "Progress is shown below. You can leave this page.",
    )


def _test_set_choice(wb: Workbench) -> str:
    test_sets = TestSetStore(wb).list()
    titles = {info.id: info.label for info in test_sets}
    if SAMPLE not in {info.title for info in test_sets}:
        titles |= {SAMPLE: "Sample questions on the sample articles"}
    left, right = st.columns(2)
    with left:
        wanted = address.get("dataset")
        place = list(titles).index(wanted if wanted in titles else preselected(test_sets) or SAMPLE)
        chosen = st.selectbox("Test set", list(titles), index=place, format_func=labelled(titles), key="build_dataset")
    with right:
        st.text_input("Title", key="build_title", placeholder="Defaults to the test set's name")
    return chosen


def _measures(wb: Workbench) -> tuple[list[str], int | None, str]:
    left, middle, right = st.columns([5, 3, 5])
    with left:
        metrics = st.multiselect(
            "Metrics",
            OFFERED,
            DEFAULT_METRICS,
            help="The leaderboard is sorted by the first metric.",
            format_func=metric_title,
            key="build_metrics",
        )
    with middle:
        limit = st.number_input("Max questions", 1, 100_000, None, key="build_limit", placeholder="All")
    with right:
        judges = list(RAGAS) if wb.settings.has_llm else ["none", "free"]
        ragas = st.selectbox("Score with Ragas", judges, format_func=RAGAS.__getitem__, key="build_ragas")
    return list(metrics) or list(DEFAULT_METRICS), limit, ragas


def _announced(runs: int, questions: int) -> str:
    if not questions:
        return "No question of this test set has a relevant result yet."
    return (
        f"{counted(runs, 'run')} × {counted(questions, 'question')} = up to {runs * questions:,} searches; cached "
        "results are reused."
    )


def _questions(wb: Workbench, test_set: str, limit: int | None) -> int:
    answerable = _answerable(wb, test_set)
    return min(answerable, limit or answerable)


def _answerable(wb: Workbench, test_set: str) -> int:
    return len(_loaded(wb, test_set).answerable)


def _searched(wb: Workbench, test_set: str) -> str:
    """Describe the corpus of an experiment, and that the current scope does not change it."""
    info = None if test_set == SAMPLE else TestSetStore(wb).info(test_set)
    over = info.over if info else "the sample articles"
    chosen = place_scope()
    if chosen == Scope() or (info is not None and info.source_id is None and same_scope(wb, info.scope, chosen)):
        return f"Corpus: {over}."
    return (
        f"Corpus: {over}, not the current scope, because a test set keeps the scope it was created with. Create a new "
        "test set to measure another scope."
    )


def _loaded(wb: Workbench, test_set: str) -> TestSet:
    return load_test_set(SAMPLE) if test_set == SAMPLE else TestSetStore(wb).load(test_set)


def _start(
    wb: Workbench, test_set: str, cells: Sequence[Cell], metrics: Sequence[str], limit: int | None, ragas: str
) -> None:
    try:
        title = st.session_state["build_title"].strip()
        if test_set == SAMPLE:
            job = enqueue_on_sample(wb, title, cells, metrics=metrics, limit=limit, ragas=ragas)
            address.put(planned=job.id, new=None, dataset=None)
            st.rerun()
        experiment = Experiments(wb).create(title, test_set, cells, metrics=metrics, limit_queries=limit)
        enqueue_experiment(wb, experiment.id, ragas=ragas)
    except WorkbenchError as error:
        st.error(escaped(str(error)))
        return
    address.put(experiment=experiment.id, new=None, dataset=None)
    st.rerun()

"""The form of a new experiment: test set, matrix of runs, and metrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from math import ceil
from typing import TYPE_CHECKING

import streamlit as st

from evals.background import enqueue_experiment, enqueue_on_sample
from evals.experiments.catalogue import Experiments
from evals.experiments.runs import Cell, default_strategies, make_cells
from evals.measures.metrics import DEFAULT_METRICS, OFFERED_METRICS, metric_title
from evals.test_set import TestSet
from evals.test_sets.folders import SAMPLE_NAME, load_test_set
from evals.test_sets.store import TestSetStore
from workbench.app.evaluate.shared import preselect_test_set
from workbench.app.shell.navigation import switch_page
from workbench.app.shell.scope_bar import is_same_scope, read_lasting_scope
from workbench.app.shell.states import show_message
from workbench.app.state import address
from workbench.app.widgets.looks import escape_markdown, make_label_function, strategy_title
from workbench.app.widgets.notices import store_warning
from workbench.errors import WorkbenchError
from workbench.formatting import count_text
from workbench.retrieval.strategies import COMPARED, STRATEGIES
from workbench.types import Parameter, ParameterValue, Scope

if TYPE_CHECKING:
    from workbench.workbench import Workbench

# The matrix of runs

STEPS = (0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0)  # between the offered values of a share or weight
MAX_STEPS = 4  # offered at most
ROUND_FACTORS = (1, 2, 5)  # times a power of ten, because counts matter by ratio
MAX_VALUES_PRESELECTED = 3  # values that are preselected; with more, two parameters make dozens of runs
PARAMETERS_PER_ROW = 3  # varied parameters per row

Varied = Mapping[str, Sequence[ParameterValue]]  # values by "strategy.parameter"


def show_matrix_form(wb: Workbench) -> list[Cell]:
    """Ask for strategies, indexes and parameters; return every combination as a cell."""
    strategies = _choose_strategies(wb)
    left, right = st.columns(2)
    with left:
        indexes = _choose_indexes(wb)
    with right:
        tunable = {f"{name}.{p.name}": p for name in strategies for p in STRATEGIES[name].parameters}
        chosen = _choose_parameters(tunable)
    names = [ranker.name for ranker in wb.rankers.list()]
    varied = _choose_values({key: tunable[key] for key in chosen}, names)
    if not strategies or not indexes:
        return []
    try:
        return make_cells(strategies, indexes, combine_values(varied))
    except WorkbenchError as error:
        st.error(escape_markdown(str(error)))
        return []


def combine_values(varied: Varied) -> dict[str, list[dict[str, ParameterValue]]]:
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


def list_values(parameter: Parameter, names: Sequence[str] = ()) -> list[ParameterValue]:
    """Return round values over the range of a parameter, including its default, in order.

    Args:
        parameter: The parameter.
        names: Names of the rankers.
    """
    if parameter.kind == "name":
        return list(names) or [parameter.default]
    if parameter.kind == "text":
        return [parameter.default]
    if parameter.kind == "choice":
        return list(parameter.choices)
    if parameter.kind == "bool":
        return [True, False]
    low, high = float(parameter.low or 0), float(parameter.high or 0)
    if parameter.kind == "int":
        sizes = (size * 10**power for power in range(len(str(int(high)))) for size in ROUND_FACTORS)
        return sorted(
            {int(low), *(size for size in sizes if low < size < high), int(high), parameter.default}, key=float
        )
    step = next((step for step in STEPS if (high - low) / step <= MAX_STEPS), high - low)
    values = (round(low + place * step, 3) for place in range(MAX_STEPS + 1))
    return sorted({*(value for value in values if value <= high), parameter.default}, key=float)


def preselect_values(offered: Sequence[ParameterValue]) -> list[ParameterValue]:
    """Return at most three of the offered values, evenly spread, to preselect."""
    return list(offered[:: ceil(len(offered) / MAX_VALUES_PRESELECTED)])


def _choose_strategies(wb: Workbench) -> list[str]:
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
            format_func=strategy_title,
            key="build_strategies",
            wrap=True,
        )
    )


def _choose_indexes(wb: Workbench) -> list[str | None]:
    """Return the chosen indexes; None is the default one."""
    indexes = wb.indexes.list()
    names = {index.name: f"{index.name} ({index.chunker}, {index.embedding_model})" for index in indexes}
    default = next(index.name for index in indexes if index.is_default)
    chosen = st.multiselect(
        "Indexes", list(names), [default], format_func=make_label_function(names), key="build_indexes"
    )
    return [None if name == default else name for name in chosen]


def _choose_parameters(tunable: Mapping[str, Parameter]) -> list[str]:
    names = {key: f"{strategy_title(key.split('.')[0])}: {p.name.replace('_', ' ')}" for key, p in tunable.items()}
    return st.multiselect(
        "Vary parameters",
        list(tunable),
        format_func=make_label_function(names),
        key="build_vary",
        placeholder="None (use defaults)",
        help="Each combination of a strategy's parameter values is a run.",
    )


def _choose_values(parameters: Mapping[str, Parameter], names: Sequence[str]) -> Varied:
    varied: dict[str, Sequence[ParameterValue]] = {}
    keys = list(parameters)
    for row in (keys[start : start + PARAMETERS_PER_ROW] for start in range(0, len(keys), PARAMETERS_PER_ROW)):
        for key, column in zip(row, st.columns(PARAMETERS_PER_ROW), strict=False):
            parameter = parameters[key]
            offered = list_values(parameter, names)
            varied[key] = column.multiselect(
                f"{strategy_title(key.split('.')[0])}: {parameter.name.replace('_', ' ')}",
                offered,
                preselect_values(offered),
                key=f"build_values_{key}",
                help=parameter.why,
                accept_new_options=True,
            )
    return varied


RAGAS_TITLES = {"none": "No", "free": "Yes, without an LLM", "llm": "Yes, with the LLM as judge"}


def show_plan_form(wb: Workbench) -> None:
    """Show the form; starting the experiment opens it."""
    with st.container(border=True, key="experiment_build"):
        test_set = _choose_test_set(wb)
        cells = show_matrix_form(wb)
        metrics, limit, ragas = _choose_measures(wb)
        questions = _count_questions(wb, test_set, limit)
        with st.container(horizontal=True, vertical_alignment="center"):
            go = st.button("Run experiment", type="primary", key="experiment_go", disabled=not cells or not questions)
            st.caption(escape_markdown(f"{_describe_size(len(cells), questions)} {_describe_corpus(wb, test_set)}"))
            if not questions and st.button("Judge on Compare", key="experiment_judge", type="tertiary"):
                address.leave_for("compare", judge=test_set)
                switch_page("compare")
        if go:
            _start_experiment(wb, test_set, cells, metrics, limit, ragas)


def show_planned(wb: Workbench, job_id: str) -> None:
    """Show that an experiment is waiting for the sample, and open it once it has started."""
    job = wb.jobs.get(job_id)
    if began := job.result.get("experiment"):
        address.put(experiment=str(began), planned=None)
        st.rerun()
    if job.is_finished:
        store_warning("The sample was not loaded. See the job below to resume it.")
        address.put(planned=None)
        st.rerun()
    show_message(
        "The experiment starts when the sample is loaded",
        "Progress is shown below. You can leave this page.",
    )


def _choose_test_set(wb: Workbench) -> str:
    test_sets = TestSetStore(wb).list()
    titles = {info.id: info.label for info in test_sets}
    if SAMPLE_NAME not in {info.title for info in test_sets}:
        titles |= {SAMPLE_NAME: "Sample questions on the sample articles"}
    left, right = st.columns(2)
    with left:
        wanted = address.get("dataset")
        place = list(titles).index(wanted if wanted in titles else preselect_test_set(test_sets) or SAMPLE_NAME)
        chosen = st.selectbox(
            "Test set", list(titles), index=place, format_func=make_label_function(titles), key="build_dataset"
        )
    with right:
        st.text_input("Title", key="build_title", placeholder="Defaults to the test set's name")
    return chosen


def _choose_measures(wb: Workbench) -> tuple[list[str], int | None, str]:
    left, middle, right = st.columns([5, 3, 5])
    with left:
        metrics = st.multiselect(
            "Metrics",
            OFFERED_METRICS,
            DEFAULT_METRICS,
            help="The leaderboard is sorted by the first metric.",
            format_func=metric_title,
            key="build_metrics",
        )
    with middle:
        limit = st.number_input("Max questions", 1, 100_000, None, key="build_limit", placeholder="All")
    with right:
        judges = list(RAGAS_TITLES) if wb.settings.has_llm else ["none", "free"]
        ragas = st.selectbox("Score with Ragas", judges, format_func=RAGAS_TITLES.__getitem__, key="build_ragas")
    return list(metrics) or list(DEFAULT_METRICS), limit, ragas


def _describe_size(runs: int, questions: int) -> str:
    if not questions:
        return "No question of this test set has a relevant result yet."
    return (
        f"{count_text(runs, 'run')} × {count_text(questions, 'question')} = up to {runs * questions:,} "
        f"searches; cached "
        "results are reused."
    )


def _count_questions(wb: Workbench, test_set: str, limit: int | None) -> int:
    answerable = _count_answerable(wb, test_set)
    return min(answerable, limit or answerable)


def _count_answerable(wb: Workbench, test_set: str) -> int:
    return len(_load_test_set(wb, test_set).answerable)


def _describe_corpus(wb: Workbench, test_set: str) -> str:
    """Describe the corpus of an experiment, and that the current scope does not change it."""
    info = None if test_set == SAMPLE_NAME else TestSetStore(wb).info(test_set)
    over = info.over if info else "the sample articles"
    chosen = read_lasting_scope()
    if chosen == Scope() or (info is not None and info.source_id is None and is_same_scope(wb, info.scope, chosen)):
        return f"Corpus: {over}."
    return (
        f"Corpus: {over}, not the current scope, because a test set keeps the scope it was created with. Create a new "
        "test set to measure another scope."
    )


def _load_test_set(wb: Workbench, test_set: str) -> TestSet:
    return load_test_set(SAMPLE_NAME) if test_set == SAMPLE_NAME else TestSetStore(wb).load(test_set)


def _start_experiment(
    wb: Workbench, test_set: str, cells: Sequence[Cell], metrics: Sequence[str], limit: int | None, ragas: str
) -> None:
    try:
        title = st.session_state["build_title"].strip()
        if test_set == SAMPLE_NAME:
            job = enqueue_on_sample(wb, title, cells, metrics=metrics, limit=limit, ragas=ragas)
            address.put(planned=job.id, new=None, dataset=None)
            st.rerun()
        experiment = Experiments(wb).create(title, test_set, cells, metrics=metrics, limit_queries=limit)
        enqueue_experiment(wb, experiment.id, ragas=ragas)
    except WorkbenchError as error:
        st.error(escape_markdown(str(error)))
        return
    address.put(experiment=experiment.id, new=None, dataset=None)
    st.rerun()

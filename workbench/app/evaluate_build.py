"""Planning an experiment: its questions, strategies and indexes, a parameter to vary, what is measured."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import streamlit as st

from evals.dataset import Dataset
from evals.datasets import SAMPLE, load_dataset
from evals.experiments import Experiments
from evals.jobs import enqueue_experiment
from evals.metrics import DEFAULT_METRICS
from evals.plan import Cell, matrix
from evals.runner import default_strategies
from evals.store import DatasetStore
from workbench.app import address
from workbench.app.board_data import title_of
from workbench.app.evaluate_results import metric_name
from workbench.app.labels import counted, escaped, labelled
from workbench.errors import WorkbenchError
from workbench.retrieval.strategies import STRATEGIES
from workbench.types import Parameter

if TYPE_CHECKING:
    from workbench.workbench import Workbench

FIRST = ("vector", "keyword", "hybrid", "rerank")
METRICS = (*DEFAULT_METRICS, "recall@50", "ndcg@5", "hit@5")
RAGAS = {"none": "Not", "free": "Without a language model", "llm": "With the language model as judge"}
STEPS = 5  # values of a parameter that are offered
NOTHING = ""


def build_form(workbench: Workbench) -> None:
    """Show the plan of a new experiment; starting it leads to it."""
    with st.container(border=True, key="experiment_build"):
        dataset = _dataset(workbench)
        strategies = _strategies(workbench)
        indexes, sweep = _matrix(workbench, strategies)
        metrics, limit, ragas = _measures(workbench)
        cells = _cells(strategies, indexes, sweep)
        questions = _questions(workbench, dataset, limit)
        with st.container(horizontal=True, vertical_alignment="center"):
            go = st.button("Run experiment", type="primary", key="experiment_go", disabled=not cells or not questions)
            st.caption(_announced(len(cells), questions))
        if go:
            _start(workbench, dataset, cells, metrics, limit, ragas)


def _dataset(workbench: Workbench) -> str:
    there = {info.id: info.title for info in DatasetStore(workbench).list()}
    if SAMPLE not in there.values():
        there |= {SAMPLE: "The sample's questions, over the sample's articles"}
    wanted = address.get("dataset")
    left, right = st.columns(2)
    with left:
        place = list(there).index(wanted) if wanted in there else 0
        chosen = st.selectbox("Test set", list(there), index=place, format_func=labelled(there), key="build_dataset")
    with right:
        st.text_input("Title", key="build_title", placeholder="The test set's name")
    return chosen


def _strategies(workbench: Workbench) -> list[str]:
    usable = [name for name in default_strategies() if name in STRATEGIES]
    if workbench.settings.llm_base_url:
        usable += [name for name, strategy in STRATEGIES.items() if strategy.needs_llm]
    if workbench.settings.reranker != "late-interaction":
        usable += [name for name, strategy in STRATEGIES.items() if strategy.needs_reranker and name not in usable]
    return list(
        st.pills(
            "Strategies",
            usable,
            selection_mode="multi",
            default=[n for n in FIRST if n in usable],
            format_func=title_of,
            key="build_strategies",
            wrap=True,
        )
    )


def _matrix(
    workbench: Workbench, strategies: Sequence[str]
) -> tuple[list[str | None], tuple[str, str, list[Any]] | None]:
    left, middle, right = st.columns([4, 4, 5])
    with left:
        names = {
            index.name: f"{index.name} ({index.chunker}, {index.embedding_model})" for index in workbench.indexes.list()
        }
        default = next(index.name for index in workbench.indexes.list() if index.is_default)
        chosen = st.multiselect(
            "Cut and embedded like the indexes",
            list(names),
            [default],
            format_func=labelled(names),
            key="build_indexes",
        )
    indexes: list[str | None] = [None if name == default else name for name in chosen]
    tunable = {f"{name}.{p.name}": p for name in strategies for p in STRATEGIES[name].parameters}
    with middle:
        names = {key: f"{title_of(key.split('.')[0])}: {p.name.replace('_', ' ')}" for key, p in tunable.items()}
        key = st.selectbox(
            "Vary a parameter", [NOTHING, *tunable], format_func=labelled(names, "None"), key="build_vary"
        )
    with right:
        parameter = tunable.get(key or NOTHING)
        offered = offers(parameter) if parameter else []
        values = st.multiselect(
            "Over the values",
            offered,
            offered[:: max(1, len(offered) // 3)],
            key=f"build_values_{key}",
            disabled=parameter is None,
            help=parameter.why if parameter else None,
            accept_new_options=True,
        )
    if parameter is None or not values:
        return indexes, None
    strategy, _, name = str(key).partition(".")
    return indexes, (strategy, name, values)


def offers(parameter: Parameter) -> list[Any]:
    """Return some values of a parameter over its range."""
    if parameter.kind == "choice":
        return list(parameter.choices)
    if parameter.kind == "bool":
        return [True, False]
    low, high = float(parameter.low or 0), float(parameter.high or 0)
    values = [low + (high - low) * step / (STEPS - 1) for step in range(STEPS)]
    return list(dict.fromkeys(round(value) if parameter.kind == "int" else round(value, 3) for value in values))


def _measures(workbench: Workbench) -> tuple[list[str], int | None, str]:
    left, middle, right = st.columns([5, 3, 5])
    with left:
        metrics = st.multiselect(
            "Metrics, the first leads",
            METRICS,
            DEFAULT_METRICS,
            format_func=metric_name,
            key="build_metrics",
        )
    with middle:
        limit = st.number_input("Questions at most", 1, 100_000, None, key="build_limit", placeholder="all")
    with right:
        known = list(RAGAS) if workbench.settings.llm_base_url else ["none", "free"]
        ragas = st.selectbox("Let ragas look at the texts", known, format_func=RAGAS.__getitem__, key="build_ragas")
    return list(metrics) or list(DEFAULT_METRICS), limit, ragas


def _cells(
    strategies: Sequence[str], indexes: Sequence[str | None], sweep: tuple[str, str, list[Any]] | None
) -> list[Cell]:
    parameters = {sweep[0]: [{sweep[1]: value} for value in sweep[2]]} if sweep else None
    if not strategies or not indexes:
        return []
    try:
        return matrix(strategies, indexes, parameters)
    except WorkbenchError as error:
        st.error(escaped(str(error)))
        return []


def _announced(runs: int, questions: int) -> str:
    if not questions:
        return "This test set has no question that something is judged relevant to: judge some first."
    return (
        f"{counted(runs, 'run')} of {counted(questions, 'question')}: {runs * questions:,} searches at most; what an "
        "earlier experiment found is not searched again."
    )


def _questions(workbench: Workbench, dataset: str, limit: int | None) -> int:
    known = _answerable(workbench, dataset)
    return min(known, limit or known)


def _answerable(workbench: Workbench, dataset: str) -> int:
    return len(_loaded(workbench, dataset).answerable)


def _loaded(workbench: Workbench, dataset: str) -> Dataset:
    return load_dataset(SAMPLE) if dataset == SAMPLE else DatasetStore(workbench).load(dataset)


def _start(
    workbench: Workbench, dataset: str, cells: Sequence[Cell], metrics: Sequence[str], limit: int | None, ragas: str
) -> None:
    try:
        if dataset == SAMPLE:
            with st.spinner("Bringing in the sample's articles and questions…"):
                dataset = DatasetStore(workbench).add(load_dataset(SAMPLE)).id
        title = st.session_state["build_title"].strip()
        made = Experiments(workbench).create(title, dataset, cells, metrics=metrics, limit_queries=limit)
        enqueue_experiment(workbench, made.id, ragas=ragas)
    except WorkbenchError as error:
        st.error(escaped(str(error)))
        return
    address.put(experiment=made.id, new=None, dataset=None)
    st.rerun()

"""Question by question: a heat map of all runs, what changed between two, and the two rankings of one question."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import streamlit as st

from evals.experiments.catalogue import Experiments
from evals.experiments.leaderboard import Change, by_question, changes, check_same_ground
from evals.experiments.runs import CellResult
from evals.measures.metrics import metric_title
from evals.test_set import TestSet
from workbench.app.evaluate.results.charts import changes_chart, heat_map, selected_place
from workbench.app.evaluate.results.outcome import ExperimentOutcome, outcome_of, run_title
from workbench.app.evaluate.results.rankings import rankings
from workbench.app.state import address
from workbench.app.state.controlled import show_value
from workbench.app.state.one_run import theme_of_run
from workbench.app.widgets.labels import escaped, labelled
from workbench.app.widgets.table import Column, table
from workbench.errors import WorkbenchError
from workbench.sizes import counted

if TYPE_CHECKING:
    from workbench.workbench import Workbench

COLUMNS = (
    Column("question", "Question"),
    Column("first", "A", "shown", "right"),
    Column("second", "B", "shown", "right"),
    Column("difference", "B - A", "shown", "right"),
)
ROW = 26  # pixels of a run in the heat map
TALL = 420  # pixels of the list of changed questions, which scrolls
MOST_COLUMNS = 400  # questions drawn; of more, those on which runs differ most


def questions_view(workbench: Workbench, outcome: ExperimentOutcome, pair: tuple[str, str] | None) -> None:
    """Show the heat map, then the two runs that were picked against each other."""
    test_set = Experiments(workbench).test_set(outcome.experiment)
    texts = {question.id: question.text for question in test_set.questions}
    _heat_map(outcome, texts)
    first = outcome.cell(pair[0]) if pair else None
    if pair is None or first is None:
        st.caption("Pick a run as A and one as B in the leaderboard to see what differs between them.")
        return
    st.subheader("What changed between two runs", anchor=False)
    other = _other_experiment(workbench, outcome)
    second = outcome.cell(pair[1]) if other is outcome else _same_run(other, first)
    if second is not None:
        _changed(outcome, first, second, texts)
        _one_question(workbench, outcome, test_set, [first, second], texts)


def _heat_map(outcome: ExperimentOutcome, texts: Mapping[str, str]) -> None:
    st.subheader(f"{metric_title(outcome.metric)} of every question", anchor=False)
    st.caption("A column is a question, the hardest on the left; click one to see its rankings below.")
    names = [run_title(cell) for cell in outcome.measured]
    ids, values = grid(outcome)
    state: Any = st.echarts_chart(
        heat_map([texts.get(key, key) for key in ids], names, values, theme_of_run()),
        key=f"heat_{outcome.experiment.id}_{outcome.metric}",
        on_select="rerun",
        height=96 + ROW * len(names),
        alt=f"{outcome.metric} of {len(ids)} questions by {len(names)} runs",
    )
    place = selected_place(state)
    if place is not None and place < len(values):
        _choose(ids[values[place][0]], "heat")


def grid(outcome: ExperimentOutcome) -> tuple[list[str], list[tuple[int, int, float]]]:
    """Return the questions from hard to easy, and (question, run, value) of every place of the heat map."""
    rows = by_question(outcome.measured, outcome.metric)
    spread = {key: max(values.values()) - min(values.values()) for key, values in rows.items()}
    columns = sorted(rows, key=lambda key: -spread[key])[:MOST_COLUMNS]
    ids = sorted(columns, key=lambda key: (sum(rows[key].values()), key))
    labels = [cell.cell.label for cell in outcome.measured]
    return ids, [(x, y, rows[key].get(label, 0.0)) for x, key in enumerate(ids) for y, label in enumerate(labels)]


def _other_experiment(workbench: Workbench, outcome: ExperimentOutcome) -> ExperimentOutcome:
    """Let a person hold A against the same run of another experiment; returns the one that B comes from."""
    others = {
        experiment.id: experiment.title
        for experiment in Experiments(workbench).list(outcome.experiment.test_set_id)
        if experiment.id != outcome.experiment.id
    }
    if not others:
        return outcome
    here = {"": "this experiment"}
    chosen = st.selectbox(
        "B comes from", ["", *others], format_func=labelled(here | others), key="other_experiment", width=420
    )
    if not chosen:
        return outcome
    other = outcome_of(workbench, chosen, outcome.metric)
    try:
        check_same_ground(outcome.experiment, other.experiment)
    except WorkbenchError as error:
        st.warning(escaped(str(error)))
        return outcome
    return other


def _same_run(other: ExperimentOutcome, first: CellResult) -> CellResult | None:
    same = next((cell for cell in other.measured if cell.cell.label == first.cell.label), None)
    if same is None:
        st.caption("The other experiment has no such run.")
    return same


def _changed(outcome: ExperimentOutcome, first: CellResult, second: CellResult, texts: Mapping[str, str]) -> None:
    differ = changes(first, second, outcome.metric)
    won = sum(change.difference > 0 for change in differ)
    same = len(first.run.values[outcome.metric]) - len(differ) if first.run else 0
    st.markdown(
        f"From **A {escaped(run_title(first))}** to **B {escaped(run_title(second))}**: "
        f"{counted(won, 'question')} better, {len(differ) - won} worse, {same} the same."
    )
    if not differ:
        return
    left, right = st.columns([4, 7], gap="large")
    with left:
        state: Any = st.echarts_chart(
            changes_chart(differ, texts, theme_of_run()),
            key=f"changes_{first.run_id}_{second.run_id}",
            on_select="rerun",
            height=300,
            alt=f"{won} questions better, {len(differ) - won} worse",
        )
        place = selected_place(state)
        if place is not None and place < len(differ):
            _choose(differ[place].question_id, "changes")
    with right, st.container(height=TALL, border=False):
        opened = table(
            "changed", COLUMNS, _rows(differ, texts), label="Changed questions", noun="questions", opens=True
        ).opened
        if opened:
            _choose(opened, None)


def _rows(differ: Sequence[Change], texts: Mapping[str, str]) -> list[dict[str, Any]]:
    def shown(value: float, form: str = ".3f") -> dict[str, Any]:
        return {"text": f"{value:{form}}", "order": value}

    return [
        {
            "id": change.question_id,
            "name": texts.get(change.question_id, change.question_id),
            "cells": {
                "question": texts.get(change.question_id, change.question_id),
                "first": shown(change.first),
                "second": shown(change.second),
                "difference": shown(change.difference, "+.3f"),
            },
        }
        for change in differ
    ]


def _choose(question_id: str, chart: str | None) -> None:
    """Let the address name a question; a chart keeps its selection, so it counts once only."""
    if chart is not None and st.session_state.get(f"chosen_by_{chart}") == question_id:
        return
    if chart is not None:
        st.session_state[f"chosen_by_{chart}"] = question_id
    address.put(ask=question_id)


def _one_question(
    workbench: Workbench,
    outcome: ExperimentOutcome,
    test_set: TestSet,
    pair: Sequence[CellResult],
    texts: Mapping[str, str],
) -> None:
    ids, _ = grid(outcome)
    named = address.get("ask")
    show_value("asked", named if named in texts else ids[0], texts.values())
    st.subheader("One question, two rankings", anchor=False)
    chosen = st.selectbox(
        "Question",
        ids if named in ids or not named else [named, *ids],
        format_func=labelled(texts),
        key="asked",
        on_change=lambda: address.put(ask=st.session_state["asked"]),
        label_visibility="collapsed",
    )
    if chosen:
        rankings(workbench, test_set, chosen, pair, outcome.metric)

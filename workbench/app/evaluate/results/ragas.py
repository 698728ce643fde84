"""The metrics of ragas for an experiment's runs; questions it could not measure are counted and enter no mean."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from evals.measures.metrics import RagasSummary
from workbench.app.evaluate.results.outcome import ExperimentOutcome, run_title
from workbench.app.widgets.labels import escaped
from workbench.app.widgets.table import Column, table


def ragas_view(outcome: ExperimentOutcome) -> None:
    """Show the means with how many questions they are over, and why the others have none."""
    rows = ragas_rows(outcome)
    if not rows:
        return
    st.subheader("ragas", anchor=False)
    st.caption(
        "The mean, with the number of its questions in brackets; questions that could not be measured are left out."
    )
    names = list(dict.fromkeys(name for cell in outcome.measured for name in cell.extra.get("ragas", {})))
    columns = (Column("run", "Run"), *(Column(name, name.replace("_", " "), "shown", "right") for name in names))
    table("ragas", columns, rows, label="ragas", noun="runs", filters=False)
    for reason in [*reasons(outcome), *agreements(outcome)]:
        st.caption(escaped(reason))


def ragas_rows(outcome: ExperimentOutcome) -> list[Mapping[str, object]]:
    """Return each judged run as a row: "0.812 (50)", or "0.812 (48, 2 not)"."""
    rows: list[Mapping[str, object]] = []
    for cell in outcome.measured:
        summaries = cell.extra.get("ragas", {})
        if summaries:
            cells = {name: _cell(summary) for name, summary in summaries.items()}
            rows.append({"id": cell.run_id, "name": run_title(cell), "cells": {"run": run_title(cell), **cells}})
    return rows


def reasons(outcome: ExperimentOutcome) -> list[str]:
    """Return why questions could not be measured, each reason with its count over all runs."""
    counts: dict[tuple[str, str], int] = {}
    for cell in outcome.measured:
        for name, summary in cell.extra.get("ragas", {}).items():
            for reason, times in summary["reasons"].items():
                counts[name, reason] = counts.get((name, reason), 0) + times
    return [f"{name.replace('_', ' ')}, {times} times: {reason}" for (name, reason), times in counts.items()]


def agreements(outcome: ExperimentOutcome) -> list[str]:
    """Return how far the LLM that judged agrees with the test set's own judgments; empty where no LLM judged."""
    from evals.judges.agreement import sentence

    return list(dict.fromkeys(sentence(cell.extra["judge"]) for cell in outcome.measured if "judge" in cell.extra))


def _cell(summary: RagasSummary) -> dict[str, object]:
    mean = summary["mean"]
    missing = f", {summary['not_measured']} not measured" if summary["not_measured"] else ""
    text = f"{'–' if mean is None else f'{mean:.3f}'} ({summary['measured']}{missing})"
    return {"text": text, "order": -1.0 if mean is None else mean}

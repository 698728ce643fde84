"""What ragas says of an experiment's runs; what it could not measure is counted, never averaged away."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import streamlit as st

from workbench.app.evaluate_results import Found, run_title
from workbench.app.table import Column, table


def ragas_view(seen: Found) -> None:
    """Show the means with how many questions they are over, and why the others have none."""
    rows = ragas_rows(seen)
    if not rows:
        return
    st.subheader("ragas", anchor=False)
    st.caption("The mean, and in brackets over how many questions; what could not be measured is in no mean.")
    names = list(dict.fromkeys(name for cell in seen.measured for name in cell.extra.get("ragas", {})))
    columns = (Column("run", "Run"), *(Column(name, name.replace("_", " "), "shown", "right") for name in names))
    table("ragas", columns, rows, label="ragas", noun="runs", filters=False)
    for reason in [*reasons(seen), *agreements(seen)]:
        st.caption(reason)


def ragas_rows(seen: Found) -> list[Mapping[str, Any]]:
    """Return each judged run as a row: "0.812 (50)", or "0.812 (48, 2 not)"."""
    rows = []
    for cell in seen.measured:
        summaries = cell.extra.get("ragas", {})
        if summaries:
            cells = {name: _cell(summary) for name, summary in summaries.items()}
            rows.append({"id": cell.run_id, "name": run_title(cell), "cells": {"run": run_title(cell), **cells}})
    return rows


def reasons(seen: Found) -> list[str]:
    """Return why questions could not be measured, each reason with its count over all runs."""
    counts: dict[tuple[str, str], int] = {}
    for cell in seen.measured:
        for name, summary in cell.extra.get("ragas", {}).items():
            for reason, times in summary["reasons"].items():
                counts[name, reason] = counts.get((name, reason), 0) + times
    return [f"{name.replace('_', ' ')}, {times} times: {reason}" for (name, reason), times in counts.items()]


def agreements(seen: Found) -> list[str]:
    """Return how far the LLM that judged agrees with the test set's own judgments; nothing where none judged."""
    from evals.agreement import sentence

    return list(dict.fromkeys(sentence(cell.extra["judge"]) for cell in seen.measured if "judge" in cell.extra))


def _cell(summary: Mapping[str, Any]) -> dict[str, Any]:
    mean = summary["mean"]
    missing = f", {summary['not_measured']} not" if summary["not_measured"] else ""
    text = f"{'–' if mean is None else f'{mean:.3f}'} ({summary['measured']}{missing})"
    return {"text": text, "order": -1.0 if mean is None else mean}

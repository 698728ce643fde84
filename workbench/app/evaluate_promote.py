"""From evidence to service: a run's strategy, with its parameters and index, becomes what a scope is searched with."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from workbench.app.board_data import title_of
from workbench.app.evaluate_results import Found, metric_name, run_title
from workbench.app.labels import escaped
from workbench.app.library_dialogs import act
from workbench.app.scope_bar import current_scope

if TYPE_CHECKING:
    from evals.plan import CellResult
    from workbench.workbench import Workbench


@st.dialog("Promote")
def promote(workbench: Workbench, seen: Found, cell: CellResult) -> None:
    """Ask where a run's strategy is to serve from now on, saying what the evidence is."""
    line = next(line for line in seen.lines if line.run_id == cell.run_id)
    low, high = line.interval
    st.markdown(
        f"**{escaped(run_title(cell))}** reached {metric_name(seen.metric)} {line.metrics[seen.metric]:.3f} "
        f"(95 % {low:.3f} to {high:.3f}) on {escaped(seen.experiment.dataset_title)}."
    )
    if line.against_best and line.against_best.significant:
        st.warning("Another run did significantly better on these questions.")
    elif line.against_best:
        st.caption("It does not lead, but these questions cannot tell it from the leader.")
    scope = current_scope()
    where = {"everywhere": "Everywhere"}
    if scope.project or scope.sources:
        where = {"scope": "In the scope chosen above"} | where
    chosen = st.radio("Serves", list(where), format_func=where.__getitem__, horizontal=True)
    st.caption(
        "Search, the MCP tools and Python use it from then on where they name no strategy. It can be undone in Compare."
    )
    if st.button("Promote", type="primary", key="confirm_promote"):
        act(lambda: _promoted(workbench, seen, cell, everywhere=chosen == "everywhere"))


def _promoted(workbench: Workbench, seen: Found, cell: CellResult, everywhere: bool) -> str:
    value = cell.run.means[seen.metric] if cell.run else 0.0
    made = workbench.promotions.promote(
        cell.cell.strategy,
        scope=None if everywhere else current_scope(),
        parameters=cell.cell.parameters,
        index=cell.cell.index,
        note=f"{metric_name(seen.metric)} {value:.3f} in {seen.experiment.title}",
    )
    return f"{title_of(made.strategy)} serves now (version {made.version})."

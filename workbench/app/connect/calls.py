"""The part of the Connect page that shows what agents asked, so that their questions can be tried and judged."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from workbench.app.shell.navigation import switch
from workbench.app.shell.states import message
from workbench.app.state import address
from workbench.app.widgets.table import Column, moment, table

if TYPE_CHECKING:
    from workbench.services.tool_calls import ToolCall
    from workbench.workbench import Workbench

SHOWN = 200  # calls in the table
COLUMNS = (
    Column("tool", "Tool"),
    Column("query", "Question"),
    Column("client", "Client"),
    Column("found", "Found", "number"),
    Column("time", "Time", "shown", "right"),
    Column("size", "Characters of the answer", "shown", "right"),
    Column("outcome", "Outcome", "state"),
    Column("at", "When", "shown"),
)


def calls_view(workbench: Workbench) -> None:
    """Show the last calls; opening a search asks its question on the Compare page."""
    if not workbench.settings.mcp_log_calls:
        message("The log is off", "WORKBENCH_MCP_LOG_CALLS is false; calls are not kept.")
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        nothing = st.toggle("Only searches that found nothing", key="calls_zero")
        st.button("Refresh", icon=":material/refresh:")
        with st.popover("Delete all calls", icon=":material/delete:"):
            if st.button("Delete every call", type="primary", key="confirm_forget"):
                workbench.tool_calls.clear()
                st.rerun()
    calls = workbench.tool_calls.list(zero_only=nothing, limit=SHOWN)
    chosen = table(
        "calls",
        COLUMNS,
        [row_of(call) for call in calls],
        label="Tool calls",
        noun="calls",
        empty="No calls yet. Connect a client, or try a tool; what agents ask is listed here.",
        opens=True,
    )
    st.caption(
        "Open a search to ask its question on Compare, where its passages can be judged. The log keeps the "
        "question, the scope, sizes and times, never a document's text or the token."
    )
    opened = next((call for call in calls if str(call.id) == chosen.opened), None)
    if opened is not None and opened.query:
        _compare(opened.query)


def _compare(question: str) -> None:
    address.leave_for("compare", q=question)
    address.put(view=None)
    switch("compare")


def row_of(call: ToolCall) -> dict[str, object]:
    """Return a call as a row."""
    outcome = {"state": "failed", "text": call.error} if call.error else {"state": "done", "text": "answered"}
    if call.zero_result and not call.error:
        outcome = {"state": "waiting", "text": "found nothing"}
    return {
        "id": str(call.id),
        "name": call.query or call.tool,
        "cells": {
            "tool": call.tool,
            "query": call.query or "",
            "client": call.client or "",
            "found": call.results,
            "time": {"text": f"{call.duration_ms:,.1f} ms", "order": call.duration_ms},
            "size": {"text": f"{call.answer_chars:,}", "order": call.answer_chars},
            "outcome": outcome,
            "at": moment(call.called_at, seconds=True),
        },
        "notes": {"tool": ", ".join(f"{name}: {value}" for name, value in call.scope.items())} if call.scope else {},
    }

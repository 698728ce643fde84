"""The Connect page: this workbench for agents, its tools to see and to try, and the questions of agents."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import streamlit as st

from workbench.app.connect.clients import CLIENTS, TOKEN, connection_of, serve_command
from workbench.app.connect.connections import CLIENT_FILES, seen
from workbench.app.shell.navigation import switch
from workbench.app.shell.states import message
from workbench.app.state import address
from workbench.app.state.shared import OPENING, show_value
from workbench.app.widgets.looks import escaped, labelled, title_of
from workbench.app.widgets.promoting import promotion_html
from workbench.app.widgets.table import Column, moment, table
from workbench.formatting import counted
from workbench.storage.promotions import EVERYWHERE
from workbench.types import Promotion

if TYPE_CHECKING:
    from workbench.storage.tool_calls import ToolCall
    from workbench.workbench import Workbench

# --- The part of the Connect page that shows what agents asked, so that their questions can be tried and judged ---

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


# --- The strategies that serve agents which name none: the head of the Connect page, in the words of Compare ---

LISTED = 3  # promotions for narrower scopes that are shown at once; the rest unfolds


def serving_list(workbench: Workbench) -> None:
    """Show the strategy that serves everywhere, and the scopes in which another one does."""
    rows = [f'<p class="wb-serving">{line}</p>' for line in serving_lines(workbench)]
    listed, rest = rows[: LISTED + 1], rows[LISTED + 1 :]
    more = f"<details><summary>{counted(len(rest), 'more scope')}</summary>{''.join(rest)}</details>" if rest else ""
    st.html(f'<div class="wb-servings">{"".join(listed)}{more}</div>')


def serving_lines(workbench: Workbench) -> list[str]:
    """Return the strategy that serves everywhere, then those of narrower scopes, as HTML; every text is escaped."""
    by_scope = {promotion.scope: promotion for promotion in workbench.promotions.current()}
    default = next((index.name for index in workbench.indexes.list() if index.is_default), "")
    everywhere = by_scope.pop(EVERYWHERE, None)
    if everywhere is not None:
        first_line = f"For agents that name no strategy, {_promoted(everywhere, default)}"
    else:
        first_line = f"Nothing is promoted{' everywhere' if by_scope else ''}: {_built_in(workbench, default)}"
    return [
        f'{first_line} · change it in <a href="./">Compare</a> or <a href="evaluate">Evaluate</a>',
        *(
            f'{_promoted(promotion, default)} · <a href="./?{escape(query_of(workbench, promotion))}">Compare there</a>'
            for promotion in by_scope.values()
        ),
    ]


def _promoted(promotion: Promotion, default: str) -> str:
    return promotion_html(promotion) + ("" if promotion.index else f" · index {escape(default)}, the default one")


def _built_in(workbench: Workbench, default: str) -> str:
    from mcp_app.tools.knowledge.search import DEFAULT_SEARCH_TYPE

    strategy, own = title_of(workbench.promotions.built_in), title_of(DEFAULT_SEARCH_TYPE)
    return (
        f"agents that name no strategy get the built-in default, <b>{escape(strategy)}</b> "
        f"(<b>{escape(own)}</b> in search_knowledge_base) · index {escape(default)}, the default one"
    )


def query_of(workbench: Workbench, promotion: Promotion) -> str:
    """Return a promotion's scope as an address names it."""
    kind, _, key = promotion.scope.partition(":")
    if kind != "folder":
        return urlencode({kind: key})
    folders = {
        folder.id: {"project": project.id, "folder": folder.name}
        for project in workbench.projects.list()
        for folder in workbench.projects.folders(project.id)
    }
    return urlencode(folders.get(key, {}))


VIEWS = {"clients": "Clients", "tools": "Tools", "calls": "Calls"}
TRANSPORTS = {"stdio": "The client starts it (stdio)", "http": "It runs by itself (HTTP)"}

LOOK = 3.0  # seconds between two looks at who has called


def page() -> None:
    """Show the view that the address names."""
    workbench = OPENING.workbench
    st.title("Connect", anchor=False)
    serving_list(workbench)
    view = _choice("View", VIEWS, "view")
    if view == "tools":
        from workbench.app.connect.tools import tools_view  # brings the MCP app along, which the other views need not

        tools_view(workbench)
    elif view == "calls":
        calls_view(workbench)
    else:
        _clients(workbench)


def _choice(label: str, names: dict[str, str], key: str) -> str:
    """Show a choice that stands in the address under its key."""
    state = f"connect_{key}"
    show_value(state, address.get(key) if address.get(key) in names else next(iter(names)), names.values())
    chosen = st.segmented_control(
        label,
        list(names),
        key=state,
        format_func=labelled(names),
        required=True,
        label_visibility="collapsed",
        on_change=lambda: address.put(**{key: st.session_state[state]}),
    )
    return str(chosen or next(iter(names)))


def _clients(workbench: Workbench) -> None:
    from mcp_app.tools import ALL, TOOLSETS

    key = _choice("Client", {key: client.title for key, client in CLIENTS.items()}, "client")
    client = CLIENTS[key]
    left, right = st.columns([4, 8], gap="large")
    with left:
        transport, chosen, read_only = _wanted([*TOOLSETS, ALL])
    connection = connection_of(
        workbench.settings, transport, chosen, read_only, client=key if key in CLIENT_FILES else ""
    )
    with right:
        if connection.transport == "http":
            st.markdown("**First start the server**, here or wherever the data is:")
            st.code(serve_command(connection), language="bash", wrap_lines=True)
        st.markdown(f"**{escaped(client.title)}**: {escaped(client.where)}")
        st.code(client.write(connection), language=client.language, wrap_lines=True)
        if key in CLIENT_FILES:
            st.markdown(f"`workbench connect {key}` writes it, `--undo` puts back what stood there.")
            _seen(workbench, key)
        for sentence in notes(workbench, connection.transport):
            st.caption(escaped(sentence))


@st.fragment(run_every=LOOK)
def _seen(workbench: Workbench, client: str) -> None:
    """Say whether a client has called; it is looked up again and again, so that its first call shows by itself."""
    st.markdown(escaped(seen(client, workbench.settings.home, workbench.tool_calls.callers())))


def _wanted(toolsets: list[str]) -> tuple[str, tuple[str, ...], bool]:
    """Show the choices of a connection as the address has them, and return them."""
    show_value("transport", address.get("transport") if address.get("transport") in TRANSPORTS else "stdio")
    show_value("toolsets", [name for name in address.get_all("toolset") if name in toolsets], toolsets)
    show_value("read_only", address.get("readonly") == "1")

    def change() -> None:
        http, read_only = st.session_state["transport"] == "http", st.session_state["read_only"]
        address.put(
            transport="http" if http else None,
            toolset=st.session_state["toolsets"],
            readonly="1" if read_only else None,
        )

    transport = st.radio(
        "How it connects", list(TRANSPORTS), format_func=labelled(TRANSPORTS), key="transport", on_change=change
    )
    chosen = st.multiselect("Toolsets", toolsets, key="toolsets", placeholder="The default ones", on_change=change)
    read_only = st.toggle("Read-only", key="read_only", help="Offer only tools that change nothing.", on_change=change)
    return str(transport), tuple(chosen), bool(read_only)


def notes(workbench: Workbench, transport: str) -> list[str]:
    """Say what one has to know about the configuration above."""
    settings = workbench.settings
    sentences = []
    if transport == "http":
        token = "is set (••••••); put it where the configuration names it" if settings.mcp_token else "is not set"
        sentences.append(f"{TOKEN} {token}. Without one the server listens on this machine only.")
    if settings.database_url is not None:
        sentences.append("Put your database's address in place of the one shown; it is not repeated here.")
    roots = settings.file_roots or "the folder the server is started in"
    sentences.append(f"Agents may read files in {roots} (WORKBENCH_FILE_ROOTS).")
    return sentences

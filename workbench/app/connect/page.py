"""The Connect page: this workbench for agents, its tools to see and to try, and the questions of agents."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from workbench.app.connect.calls import calls_view
from workbench.app.connect.client_files import CLIENT_FILES
from workbench.app.connect.clients import CLIENTS, TOKEN, connection_of, serve_command
from workbench.app.connect.connections import seen
from workbench.app.connect.serving_strategies import serving_list
from workbench.app.state import address
from workbench.app.state.controlled import show_value
from workbench.app.state.shared import OPENING
from workbench.app.widgets.labels import escaped, labelled

if TYPE_CHECKING:
    from workbench.workbench import Workbench

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

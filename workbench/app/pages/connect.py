"""Connect: give this engine to an agent, see and try its tools, and see what agents asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from workbench.app import address
from workbench.app.connect_calls import calls_view
from workbench.app.connect_clients import CLIENTS, TOKEN, connection_of, serve_command
from workbench.app.connect_serving import serving_list
from workbench.app.engine import ENGINE
from workbench.app.labels import escaped, labelled

if TYPE_CHECKING:
    from workbench.workbench import Workbench

VIEWS = {"clients": "Clients", "tools": "Tools", "calls": "Calls"}
TRANSPORTS = {"stdio": "The client starts it (stdio)", "http": "It runs by itself (HTTP)"}


def page() -> None:
    """Show the view that the address names."""
    workbench = ENGINE.workbench
    st.title("Connect", anchor=False)
    serving_list(workbench)
    view = _choice("View", VIEWS, "view")
    if view == "tools":
        from workbench.app.connect_tools import tools_view  # brings the MCP app along, which the other views need not

        tools_view(workbench)
    elif view == "calls":
        calls_view(workbench)
    else:
        _clients(workbench)


def _choice(label: str, names: dict[str, str], key: str) -> str:
    """Show a choice that stands in the address under its key."""
    state = f"connect_{key}"
    st.session_state[state] = address.get(key) if address.get(key) in names else next(iter(names))
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
    from mcp_app.tools import TOOLSETS

    client = CLIENTS[_choice("Client", {key: client.title for key, client in CLIENTS.items()}, "client")]
    left, right = st.columns([4, 8], gap="large")
    with left:
        transport, chosen, read_only = _wanted(list(TOOLSETS))
    connection = connection_of(workbench.settings, transport, chosen, read_only)
    with right:
        if connection.transport == "http":
            st.markdown("**First start the server**, here or wherever the data is:")
            st.code(serve_command(connection), language="bash", wrap_lines=True)
        st.markdown(f"**{escaped(client.title)}**: {escaped(client.where)}")
        st.code(client.write(connection), language=client.language, wrap_lines=True)
        for sentence in notes(workbench, connection.transport):
            st.caption(escaped(sentence))


def _wanted(toolsets: list[str]) -> tuple[str, tuple[str, ...], bool]:
    """Show the choices of a connection as the address has them, and return them."""
    st.session_state["transport"] = address.get("transport") if address.get("transport") in TRANSPORTS else "stdio"
    st.session_state["toolsets"] = [name for name in address.get_all("toolset") if name in toolsets]
    st.session_state["read_only"] = address.get("readonly") == "1"

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
    chosen = st.multiselect("Toolsets", toolsets, key="toolsets", placeholder="All of them", on_change=change)
    read_only = st.toggle("Read-only", key="read_only", help="Offer only what changes nothing.", on_change=change)
    return str(transport), tuple(chosen), bool(read_only)


def notes(workbench: Workbench, transport: str) -> list[str]:
    """Say what one has to know about the configuration above."""
    settings = workbench.settings
    said = []
    if transport == "http":
        token = "is set (••••••); put it where the configuration names it" if settings.mcp_token else "is not set"
        said.append(f"{TOKEN} {token}. Without one the server listens on this machine only.")
    if settings.database_url is not None:
        said.append("Put your database's address in place of the one shown; it is not repeated here.")
    roots = settings.file_roots or "the folder the server is started in"
    said.append(f"Agents may read files in {roots} (WORKBENCH_FILE_ROOTS).")
    return said

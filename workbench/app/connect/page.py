"""The Connect page: client configurations, tools to try, and calls of agents."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Mapping
from functools import partial
from html import escape
from itertools import compress, islice
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import streamlit as st

from mcp_app.arguments import Argument, make_input_schema
from mcp_app.boundary import Boundary
from mcp_app.paging import tokens
from mcp_app.tool import Tool
from mcp_app.tools import ALL_TOOLSETS, NAMED_TOOLSETS, TOOLSETS
from workbench.app.connect.clients import CLIENTS, TOKEN_VARIABLE, format_serve_command, make_connection
from workbench.app.connect.connections import CLIENT_FILES, describe_state
from workbench.app.shell.scope_bar import is_scoped, read_lasting_scope
from workbench.app.state import address
from workbench.app.state.shared import OPENING, choose_in_url, note_change, show_value
from workbench.app.widgets.looks import escape_markdown, make_label_function, show_message, strategy_title
from workbench.app.widgets.notices import report_errors
from workbench.app.widgets.promoting import list_changed_parameters, render_promotion
from workbench.app.widgets.rows import Noted, RowCell, make_figure, show_rows
from workbench.formatting import count_text
from workbench.opening import Opening
from workbench.retrieval.strategies import UNPROMOTED_TOOL_STRATEGY
from workbench.types import EVERYWHERE_KEY, Promotion, Proposal

if TYPE_CHECKING:
    from workbench.storage.tool_calls import ToolCall
    from workbench.workbench import Workbench

# Calls of agents

MAX_CALLS_SHOWN = 200  # calls in the table
CALL_COLUMNS = ("Tool", "Question", "Client", "Results", "Time", "Response size", "Outcome", "When")


def show_calls(wb: Workbench) -> None:
    """Show the latest calls; opening a search runs its question on Compare."""
    if not wb.settings.mcp_log_calls:
        show_message("Call log is off", "Set WORKBENCH_MCP_LOG_CALLS to true to log calls.")
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        nothing = st.toggle("Only searches without results", key="calls_zero")
        st.button("Refresh", icon=":material/refresh:")
        with st.popover("Delete all calls", icon=":material/delete:"):
            if st.button("Delete all", type="primary", key="confirm_forget"):
                wb.tool_calls.clear()
                st.rerun()
    listed = wb.tool_calls.list(zero_only=nothing, limit=None if is_scoped() else MAX_CALLS_SHOWN)
    within = wb.requests.are_within([call.scope for call in listed], read_lasting_scope())
    calls = list(islice(compress(listed, within), MAX_CALLS_SHOWN))
    chosen = show_rows(
        "calls",
        CALL_COLUMNS,
        {str(call.id): _make_call_cells(call) for call in calls},
        label="Tool calls",
        noun="calls",
        empty="No calls in this scope." if is_scoped() else "No calls yet. Connect a client or try a tool.",
        opens=True,
        filters=True,
    )
    st.caption(
        "Open a search to run its question on Compare. The log stores questions, scopes, sizes, times and ids of "
        "documents, but no document texts or tokens."
    )
    opened = next((call for call in calls if str(call.id) == chosen.opened), None)
    if opened is not None and opened.query:
        address.store_for_next_visit("compare", q=opened.query)
        address.put(view=None)
        address.switch_page("compare")


def _make_call_cells(call: ToolCall) -> tuple[RowCell, ...]:
    outcome = {"state": "failed", "text": call.error} if call.error else {"state": "done", "text": "OK"}
    if call.zero_result and not call.error:
        outcome = {"state": "waiting", "text": "no results"}
    return (
        Noted(call.tool, ", ".join(f"{name}: {value}" for name, value in call.scope.items())),
        call.query or "",
        call.client or "",
        call.results,
        make_figure(call.duration_ms, ",.1f", " ms"),
        make_figure(call.answer_chars, ",", " chars"),
        outcome,
        call.called_at,
    )


# Live strategies

MAX_SCOPES_LISTED = 3  # promotions of narrower scopes that are shown; the rest is collapsed


def show_live_strategies(wb: Workbench) -> None:
    """Show the live strategy, and the scopes with a different one."""
    rows = [f'<p class="wb-serving">{line}</p>' for line in format_live_strategies(wb)]
    listed, rest = rows[: MAX_SCOPES_LISTED + 1], rows[MAX_SCOPES_LISTED + 1 :]
    more = f"<details><summary>{count_text(len(rest), 'more scope')}</summary>{''.join(rest)}</details>" if rest else ""
    st.html(f'<div class="wb-servings">{"".join(listed)}{more}</div>')
    if any(promotion.rival for promotion in wb.promotions.current()):
        from evals.test_sets.traffic import measure_interleavings

        for result in measure_interleavings(wb):
            if result.promotion.serves:
                st.caption(escape_markdown(result.describe()))
    for proposal in wb.promotions.proposals():
        _show_proposal(wb, proposal)


def _show_proposal(wb: Workbench, proposal: Proposal) -> None:
    """Show a promotion that an agent proposes, with buttons to accept and reject it."""
    by = proposal.proposed_by or "An agent"
    index = f" on index {proposal.index}" if proposal.index else ""
    place = proposal.scope_title or "everywhere"
    settings = "".join(f", {changed}" for changed in list_changed_parameters(proposal))
    settings += f", interleaved with {strategy_title(proposal.rival)}" if proposal.rival else ""
    with st.container(key=f"proposal_{proposal.id}", horizontal=True, vertical_alignment="center", gap="small"):
        text = f"{by} proposes {strategy_title(proposal.strategy)}{index}{settings} for {place}: {proposal.reason}"
        st.markdown(escape_markdown(text))
        st.text_input(
            "Why", key=f"why_{proposal.id}", placeholder="Why, if you reject it", max_chars=300, width=260,
            label_visibility="collapsed",
        )  # fmt: skip
        for label, act in (("Accept", wb.promotions.accept), ("Reject", partial(_reject, wb))):
            st.button(label, key=f"{label}_{proposal.id}", on_click=_decide, args=(act, proposal.id))


def _reject(wb: Workbench, proposal_id: int) -> None:
    wb.promotions.reject(proposal_id, str(st.session_state[f"why_{proposal_id}"]))


def _decide(act: Callable[[int], object], proposal_id: int) -> None:
    with report_errors(st.toast):
        act(proposal_id)


def format_live_strategies(wb: Workbench) -> list[str]:
    """Return the live strategy, then those of narrower scopes, as escaped HTML."""
    by_scope = {promotion.scope: promotion for promotion in wb.promotions.current()}
    default = next((index.name for index in wb.indexes.list() if index.is_default), "")
    everywhere = by_scope.pop(EVERYWHERE_KEY, None)
    if everywhere is not None:
        first_line = f"Default for agents: {_format_promotion(everywhere, default)}"
    else:
        first_line = _format_default(wb, default)
    return [
        f'{first_line} · change in <a href="./">Compare</a> or <a href="evaluate">Evaluate</a>',
        *(
            f"{_format_promotion(promotion, default)} · "
            f'<a href="./?{escape(scope_query(wb, promotion))}">Open in Compare</a>'
            for promotion in by_scope.values()
        ),
    ]


def _format_promotion(promotion: Promotion, default: str) -> str:
    index = "" if promotion.index else f" · index {escape(default)} (default)"
    return render_promotion(promotion) + index + (f" · {escape(promotion.note)}" if promotion.note else "")


def _format_default(wb: Workbench, default: str) -> str:
    strategy, own = strategy_title(wb.promotions.built_in), strategy_title(UNPROMOTED_TOOL_STRATEGY)
    return (
        f"Default for agents: <b>{escape(strategy)}</b>, built in (<b>{escape(own)}</b> in search_knowledge_base) · "
        f"index {escape(default)} (default)"
    )


def scope_query(wb: Workbench, promotion: Promotion) -> str:
    """Return a promotion's scope as the query of a URL."""
    kind, _, key = promotion.scope.partition(":")
    if kind != "folder":
        return urlencode({kind: key})
    folders = {
        folder.id: {"project": project.id, "folder": folder.name}
        for project in wb.projects.list()
        for folder in wb.projects.folders(project.id)
    }
    return urlencode(folders.get(key, {}))


VIEWS = {"clients": "Clients", "tools": "Tools", "calls": "Calls"}
TRANSPORTS = {"stdio": "stdio (started by the client)", "http": "HTTP (standalone)"}

REFRESH_S = 3.0  # seconds between refreshes of the client's state


def page() -> None:
    """Show the view named in the URL."""
    wb = OPENING.workbench
    st.title("Connect", anchor=False)
    show_live_strategies(wb)
    view = choose_in_url("View", VIEWS, "view", "connect_view")
    if view == "tools":
        show_tools(wb)
    elif view == "calls":
        show_calls(wb)
    else:
        _show_clients(wb)


def _show_clients(wb: Workbench) -> None:
    titles = {key: client.title for key, client in CLIENTS.items()}
    key = choose_in_url("Client", titles, "client", "connect_client")
    client = CLIENTS[key]
    left, right = st.columns([4, 8], gap="large")
    with left:
        transport, chosen, read_only = _show_options([*TOOLSETS, ALL_TOOLSETS, *NAMED_TOOLSETS])
    connection = make_connection(wb.settings, transport, chosen, read_only, client=key if key in CLIENT_FILES else "")
    with right:
        if connection.transport == "http":
            st.markdown("**Start the server first**, on the machine with the data:")
            st.code(format_serve_command(connection), language="bash", wrap_lines=True)
        st.markdown(f"**{escape_markdown(client.title)}**: {escape_markdown(client.where)}")
        st.code(client.write(connection), language=client.language, wrap_lines=True)
        if key in CLIENT_FILES:
            st.markdown(f"Or run `workbench connect {key}`; `--undo` restores your previous config.")
            _show_client_state(wb, key)
        for sentence in list_notes(wb, connection.transport):
            st.caption(escape_markdown(sentence))


@st.fragment(run_every=REFRESH_S)
def _show_client_state(wb: Workbench, client: str) -> None:
    """Show whether a client has called, refreshed until the page is left."""
    st.markdown(escape_markdown(describe_state(client, wb.settings.home, wb.tool_calls.callers())))


def _show_options(toolsets: list[str]) -> tuple[str, tuple[str, ...], bool]:
    """Show the options of a connection, whose values are in the URL, and return them."""
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
        "Transport", list(TRANSPORTS), format_func=make_label_function(TRANSPORTS), key="transport", on_change=change
    )
    chosen = st.multiselect("Toolsets", toolsets, key="toolsets", placeholder="Default toolsets", on_change=change)
    read_only = st.toggle("Read-only", key="read_only", help="Only offer tools that change nothing.", on_change=change)
    return str(transport), tuple(chosen), bool(read_only)


def list_notes(wb: Workbench, transport: str) -> list[str]:
    """Return notes on the configuration."""
    settings = wb.settings
    sentences = []
    if transport == "http":
        token = "is set (••••••); insert it where the configuration names it" if settings.mcp_token else "is not set"
        sentences.append(f"{TOKEN_VARIABLE} {token}. Without a token, the server listens on this machine only.")
    if settings.database_url is not None:
        sentences.append("Replace the database URL with yours; it is not shown here.")
    roots = settings.file_roots or "the server's working directory"
    sentences.append(f"Agents may read files in {roots} (WORKBENCH_FILE_ROOTS).")
    return sentences


# The view of the tools

TOOLS: dict[str, Tool] = {tool.name: tool for tools in TOOLSETS.values() for tool in tools}
ARGUMENT_COLUMNS = ("Argument", "Type", "Allowed values", "Default", "Description")
LONG_ARGUMENTS = ("content", "query")  # arguments with a text area
LONG_ANSWER_CHARS = 1200  # characters above which an answer scrolls


def show_tools(wb: Workbench) -> None:
    """Show the tools, or the one named in the URL."""
    tool = TOOLS.get(address.get("tool"))
    if tool is None:
        _list_tools()
        return
    st.button("All tools", icon=":material/arrow_back:", on_click=lambda: address.put(tool=None))
    st.header(escape_markdown(tool.name), anchor=False)
    st.markdown("  \n".join(escape_markdown(line) for line in tool.description.splitlines()))
    left, right = st.columns([5, 7], gap="large")
    with left:
        arguments = _show_form(tool)
    with right:
        if arguments is not None:
            st.session_state["tool_answer"] = (tool.name, *_call_tool(wb, tool, arguments))
        _show_answer(tool)
    _show_arguments(tool)


def _list_tools() -> None:
    sets = {tool.name: name for name, tools in TOOLSETS.items() for tool in tools}
    rows = {tool.name: (tool.name, tool.title, sets[tool.name], describe_effect(tool)) for tool in TOOLS.values()}
    columns = ("Tool", "Description", "Toolset", "Effect")
    chosen = show_rows("tools", columns, rows, label="Tools", noun="tools", opens=True, filters=True)
    if chosen.opened:
        address.put(tool=chosen.opened)
        st.rerun()


def describe_effect(tool: Tool) -> str:
    """Describe the side effects of a tool."""
    if tool.read_only:
        return "read-only"
    return "changes and deletes" if tool.destructive else "adds"


def _show_form(tool: Tool) -> dict[str, Any] | None:
    """Show one widget per argument; return the values when the form is submitted, else None."""
    with st.form(key=f"try_{tool.name}"):
        values = {argument.name: _show_widget(tool, argument) for argument in tool.arguments}
        warning = "" if tool.read_only else " This changes your own data."
        st.caption(f"Empty fields are omitted.{warning}")
        called = st.form_submit_button("Call tool", type="primary")
    return {name: value for name, value in values.items() if value not in (None, "")} if called else None


def _show_widget(tool: Tool, argument: Argument) -> str | bool | int | float | None:
    label = argument.name + (" (required)" if argument.required else "")
    key, about = f"{tool.name}_{argument.name}", escape_markdown(argument.why)
    default = "" if argument.default in (None, "", []) else str(argument.default)
    if argument.choices:
        return st.selectbox(label, argument.choices, index=None, key=key, help=about, placeholder=default)
    if argument.kind == "boolean":
        return st.selectbox(label, (True, False), index=None, key=key, help=about, placeholder=default)
    if argument.kind == "integer":
        return st.number_input(label, value=None, step=1, key=key, help=about, placeholder=default)
    if argument.kind == "number":
        return st.number_input(label, value=None, step=0.01, key=key, help=about, placeholder=default)
    if argument.kind in ("array", "object"):
        example = '["one", "two"]' if argument.kind == "array" else '{"year": 2024}'
        return st.text_input(f"{label}, as JSON", key=key, help=about, placeholder=example)
    if argument.name in LONG_ARGUMENTS:
        return st.text_area(label, key=key, help=about, height=80)
    return st.text_input(label, key=key, help=about, placeholder=default)


def _call_tool(wb: Workbench, tool: Tool, arguments: Mapping[str, Any]) -> tuple[Any, float]:
    """Call the tool as an agent does; return the answer and the time in milliseconds."""
    boundary = Boundary(Opening.from_open_workbench(wb))
    began = time.perf_counter()
    answer = asyncio.run(boundary.serve(tool, tool.name, dict(arguments)))
    milliseconds = (time.perf_counter() - began) * 1000
    boundary.log.flush()
    if not tool.read_only:
        note_change()
    return answer, milliseconds


def _show_answer(tool: Tool) -> None:
    name, answer, milliseconds = st.session_state.get("tool_answer", (None, None, 0.0))
    if name != tool.name:
        st.caption("The response appears here, exactly as agents receive it.")
        return
    size = f"{len(answer.text):,} characters, about {tokens(answer.text):,} tokens, {milliseconds:.0f} ms"
    st.markdown(f"**{'isError: true' if answer.failed else 'Answer'}** · {size}")
    exact, readable = st.tabs(["Exact", "Readable"])
    with exact:
        height = 420 if len(answer.text) > LONG_ANSWER_CHARS else "content"
        st.code(answer.text, language="json", wrap_lines=True, height=height)
    with readable:
        st.json(_parse_answer(answer.text))


def _parse_answer(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return {"text": text}


def _show_arguments(tool: Tool) -> None:
    if tool.arguments:
        rows = {argument.name: _make_argument_cells(argument) for argument in tool.arguments}
        show_rows(f"arguments_{tool.name}", ARGUMENT_COLUMNS, rows, label="Arguments", noun="arguments")
    with st.expander("JSON schema"):
        st.code(json.dumps(make_input_schema(tool.arguments), indent=2), language="json")


def _make_argument_cells(argument: Argument) -> tuple[str, ...]:
    name = argument.name + (" *" if argument.required else "")
    default = "" if argument.default in (None, "") else json.dumps(argument.default)
    return name, argument.kind, argument.valid(), default, argument.why

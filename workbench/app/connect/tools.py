"""The Tools view of the Connect page: each tool with its arguments and a form to try it."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import streamlit as st

from mcp_app.arguments import Argument, make_input_schema
from mcp_app.boundary import Boundary
from mcp_app.paging import tokens
from mcp_app.tool import Tool
from mcp_app.tools import TOOLSETS
from workbench.app.state import address
from workbench.app.state.shared import note_change
from workbench.app.widgets.looks import escape_markdown
from workbench.app.widgets.table import Column, show_table
from workbench.opening import Opening

if TYPE_CHECKING:
    from workbench.workbench import Workbench

TOOLS: dict[str, Tool] = {tool.name: tool for tools in TOOLSETS.values() for tool in tools}
TOOL_COLUMNS = (
    Column("name", "Tool"),
    Column("title", "Description"),
    Column("set", "Toolset"),
    Column("effect", "Effect"),
)
ARGUMENT_COLUMNS = (
    Column("name", "Argument"),
    Column("kind", "Type"),
    Column("valid", "Allowed values"),
    Column("default", "Default"),
    Column("why", "Description"),
)
LONG_ARGUMENTS = ("content", "query")  # arguments with a text area
LONG_ANSWER_CHARS = 1200  # characters above which an answer scrolls


def show_tools(wb: Workbench) -> None:
    """Show the tools, or the one that the URL names."""
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
    rows = [
        {
            "id": tool.name,
            "name": tool.name,
            "cells": {"name": tool.name, "title": tool.title, "set": sets[tool.name], "effect": describe_effect(tool)},
        }
        for tool in TOOLS.values()
    ]
    chosen = show_table("tools", TOOL_COLUMNS, rows, label="Tools", noun="tools", opens=True, stacks=True)
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
        show_table(
            f"arguments_{tool.name}",
            ARGUMENT_COLUMNS,
            [_make_argument_row(argument) for argument in tool.arguments],
            label="Arguments",
            noun="arguments",
            filters=False,
            stacks=True,
        )
    with st.expander("JSON schema"):
        st.code(json.dumps(make_input_schema(tool.arguments), indent=2), language="json")


def _make_argument_row(argument: Argument) -> dict[str, Any]:
    cells = {
        "name": argument.name + (" *" if argument.required else ""),
        "kind": argument.kind,
        "valid": argument.valid(),
        "default": "" if argument.default in (None, "") else json.dumps(argument.default),
        "why": argument.why,
    }
    return {"id": argument.name, "name": argument.name, "cells": cells}

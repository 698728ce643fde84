"""Pages written from the code: parameters of strategies, MCP tools, the Python interface."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Iterator

import workbench
from mcp_app.arguments import Argument
from mcp_app.tool import Tool
from mcp_app.tools import DEFAULT_TOOLS, NAMED_TOOLSETS, TOOLSETS
from workbench.retrieval.strategies import STRATEGIES
from workbench.types import Parameter

VERBS = {
    "documents": "workbench.services.documents:DocumentService",
    "sources": "workbench.services.sources:SourceService",
    "projects": "workbench.services.sources:ProjectService",
    "indexes": "workbench.services.indexes:IndexService",
    "promotions": "workbench.services.promotions:PromotionService",
    "crawls": "workbench.services.crawls:CrawlService",
    "jobs": "workbench.services.jobs:JobService",
    "pages": "workbench.services.page_images:PageImages",
}
_SECTION = re.compile(r"^(Raises|Returns|Yields):\n(?=    )", re.MULTILINE)


def strategy_sections() -> str:
    """Return a section for each strategy with its parameters."""
    lines: list[str] = []
    for strategy in STRATEGIES.values():
        lines += [f"## {strategy.title}", "", f"`{strategy.name}`: {strategy.summary}", ""]
        needs = [
            name
            for name, is_needed in (
                ("a scope", strategy.needs_scope),
                ("an LLM (`WORKBENCH_LLM_BASE_URL`)", strategy.needs_llm),
                ("a cross-encoder (`WORKBENCH_RERANKER`)", strategy.needs_reranker),
            )
            if is_needed
        ]
        lines += [f"It needs {' and '.join(needs)}.", ""] if needs else []
        if strategy.parameters:
            lines += ["| parameter | default | values | what it does |", "|---|---|---|---|"]
            lines += [_parameter_row(parameter) for parameter in strategy.parameters]
            lines.append("")
    return "\n".join(lines)


def _parameter_row(parameter: Parameter) -> str:
    values = ", ".join(f"`{choice}`" for choice in parameter.choices) or parameter.valid().removeprefix("use ")
    return f"| `{parameter.name}` | {_code(parameter.default)} | {values} | {parameter.why} |"


def _named(tools: Iterable[Tool]) -> str:
    return ", ".join(f"`{tool.name}`" for tool in tools)


def tools_page() -> str:
    """Return every MCP tool with its arguments, by toolset."""
    lines = [
        "# MCP tools",
        "",
        "`workbench mcp` serves them over stdio, `workbench mcp --transport http` at `/mcp`. Without `--toolsets` it",
        f"offers {len(DEFAULT_TOOLS)} of them: {_named(DEFAULT_TOOLS)}.",
        "`--toolsets all` offers every tool but those of `evaluation`, which must be named; `--toolsets",
        "default,articles` adds a toolset to the default ones.",
    ]
    for toolset, tools in {**TOOLSETS, **NAMED_TOOLSETS}.items():
        lines += ["", f"## {toolset.capitalize()}", ""]
        for tool in tools:
            effect = "reads" if tool.read_only else "removes or overwrites" if tool.destructive else "writes"
            lines += [f"### `{tool.name}`", "", f"{tool.description} *({effect})*", ""]
            if tool.arguments:
                lines += ["| argument | kind | default | what it is |", "|---|---|---|---|"]
                lines += [_argument_row(argument) for argument in tool.arguments]
                lines.append("")
    return "\n".join(lines)


def _argument_row(argument: Argument) -> str:
    default = "required" if argument.required else _code(argument.default)
    choices = f" One of {', '.join(f'`{choice}`' for choice in argument.choices)}." if argument.choices else ""
    return f"| `{argument.name}` | {argument.kind} | {default} | {_cell(argument.why)}{choices} |"


def _code(default: object) -> str:
    """Return a default as code, and nothing where there is none or it is the empty text."""
    return "" if default in (None, "") else f"`{default}`"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def python_page() -> str:
    """Return the public classes and the verbs of a workbench with their docstrings."""
    lines = [
        "# Python",
        "",
        "`from workbench import ...`. A workbench is opened once and closed at the end; `with` does both.",
        "",
    ]
    for name in ("Workbench", "Scope", "SearchResult", "Passage", "Comparison", "IngestReport", "Document", "Source"):
        lines += _class(getattr(workbench, name), name, 2)
    lines += ["## The verbs of a workbench", ""]
    for name, place in VERBS.items():
        module, _, class_name = place.partition(":")
        service = getattr(__import__(module, fromlist=[class_name]), class_name)
        lines += _class(service, f"wb.{name}", 3)
    return "\n".join(lines)


def _class(owner: type, title: str, level: int) -> Iterator[str]:
    yield from (f"{'#' * level} `{title}`", "", _docstring(owner), "")
    for name, member in vars(owner).items():
        function = member.__func__ if isinstance(member, classmethod | staticmethod) else member
        function = function.fget if isinstance(function, property) else function
        if name.startswith("_") or not inspect.isfunction(function) or not function.__doc__:
            continue
        called = f"`{name}`" if isinstance(member, property) else f"`{name}{_signature(function)}`"
        yield from (f"{'#' * (level + 1)} {name}", "", called, "", _docstring(function), "")


def _signature(function: Callable[..., object]) -> str:
    parameters = [p for name, p in inspect.signature(function).parameters.items() if name not in ("self", "cls")]
    return str(inspect.Signature(parameters)).replace("'", "")


def _docstring(thing: object) -> str:
    """Return a docstring as Markdown: double backticks are code, the entries of a section are a list."""
    text = (inspect.getdoc(thing) or "").replace("``", "`")
    body, *sections = _SECTION.split(text)
    lines = [body.strip()]
    for title, entries in zip(sections[::2], sections[1::2], strict=True):
        lines += [f"**{title}**", "\n".join(f"- {line.strip()}" for line in entries.strip().splitlines())]
    return "\n\n".join(lines)

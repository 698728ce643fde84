"""Toolsets. To add one, write a module and a row in ``TOOLSETS``."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import replace

from mcp_app.tool import Tool
from mcp_app.tools import archives, articles, evaluation, knowledge, reading, scoped, workspace
from workbench.errors import InvalidInput, list_choices

TOOLSETS: dict[str, tuple[Tool, ...]] = {
    "knowledge": knowledge.TOOLS,
    "scoped": scoped.TOOLS,
    "reading": reading.TOOLS,
    "articles": articles.TOOLS,
    "workspace": workspace.TOOLS,
    "archives": archives.TOOLS,
}
NAMED_TOOLSETS = {"evaluation": evaluation.TOOLS}  # offered only if named; not part of "all"
ALL_TOOLSETS, DEFAULT_TOOLSET = "all", "default"  # names for several toolsets
# Search, ingest and read documents, in at most 5,000 tokens including schemas.
DEFAULT_TOOLS = (*knowledge.TOOLS, *scoped.ESSENTIAL_TOOLS, *reading.ESSENTIAL_TOOLS)
_TOOL_NAMES = {tool.name for tools in (*TOOLSETS.values(), *NAMED_TOOLSETS.values()) for tool in tools}
# tool names only if followed by a parenthesis
_PLAIN_WORDS = {name for name in _TOOL_NAMES if name.isalpha() and name.islower()}
_TOOL_MENTION = re.compile(
    rf"\b(?:({'|'.join(sorted(_TOOL_NAMES - _PLAIN_WORDS))})\b|({'|'.join(sorted(_PLAIN_WORDS))})(?=\())"
)
_SENTENCE_BREAK = re.compile(r"(?<=[.!?])\s+(?=[A-Z])")


def select_tools(toolsets: Iterable[str] | None, *, read_only: bool = False) -> list[Tool]:
    """Return the tools of the named toolsets, as a server offers them.

    Their texts mention only tools among them.

    Args:
        toolsets: Names in ``TOOLSETS`` or ``NAMED_TOOLSETS``, "all" or "default"; None means "default".
        read_only: Leave out tools and actions that change something.

    Raises:
        InvalidInput: A toolset does not exist.
    """
    rows = {
        **TOOLSETS,
        ALL_TOOLSETS: tuple(tool for tools in TOOLSETS.values() for tool in tools),
        DEFAULT_TOOLSET: DEFAULT_TOOLS,
        **NAMED_TOOLSETS,
    }
    names = list(toolsets or (DEFAULT_TOOLSET,))
    for name in names:
        if name not in rows:
            raise InvalidInput(f"Unknown toolset: {name!r}. Use one or more of {list_choices(rows)}.")
    chosen = list({tool.name: tool for name in names for tool in rows[name]}.values())
    if read_only:
        chosen = [tool for tool in (each.to_read_only() for each in chosen) if tool is not None]
    offered = {tool.name for tool in chosen}
    return [_filter_texts(tool, offered) for tool in chosen]


def filter_clauses(text: str, offered: Collection[str]) -> str:
    """Remove the clauses that mention a tool that is not offered.

    Clauses end with ";" or at the end of the sentence.
    """
    lines = (_filter_line(line, offered) for line in text.split("\n"))
    return "\n".join(line for line in lines if line is not None)


def _filter_line(line: str, offered: Collection[str]) -> str | None:
    """Remove those clauses from a line; return None if nothing is left."""
    sentences: list[str] = []
    for sentence in _SENTENCE_BREAK.split(line):
        clauses = [clause for clause in sentence.split("; ") if _mentions_only(clause, offered)]
        if clauses:
            rest = "; ".join(clauses)
            sentences.append(rest if rest.endswith(sentence[-1:]) else rest + sentence[-1:])
    return " ".join(sentences) if sentences or not line else None


def _mentions_only(text: str, offered: Collection[str]) -> bool:
    return all(match.group() in offered for match in _TOOL_MENTION.finditer(text))


def _filter_texts(tool: Tool, offered: Collection[str]) -> Tool:
    arguments = tuple(replace(argument, why=filter_clauses(argument.why, offered)) for argument in tool.arguments)
    description, advice = filter_clauses(tool.description, offered), filter_clauses(tool.advice, offered)
    return replace(tool, description=description, advice=advice, arguments=arguments)

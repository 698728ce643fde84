"""The toolsets: which tools are offered together. A further toolset is one module and one row here."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import replace

from mcp_app.tool import Tool
from mcp_app.tools import archives, articles, knowledge, reading, scoped, workspace
from workbench.errors import InvalidInput, choices

TOOLSETS: dict[str, tuple[Tool, ...]] = {
    "knowledge": knowledge.TOOLS,
    "scoped": scoped.TOOLS,
    "reading": reading.TOOLS,
    "articles": articles.TOOLS,
    "workspace": workspace.TOOLS,
    "archives": archives.TOOLS,
}
ALL, DEFAULT = "all", "default"  # names that stand for several toolsets
# What an agent has without a choice: to search, keep and read documents, in at most 5,000 tokens with the schemas.
DEFAULT_TOOLS = (*knowledge.TOOLS, *scoped.ESSENTIAL, *reading.ESSENTIAL)
_NAMES = {tool.name for tools in TOOLSETS.values() for tool in tools}
_PLAIN_WORDS = {name for name in _NAMES if name.isalpha() and name.islower()}  # names only if they are called
_NAMED = re.compile(rf"\b(?:({'|'.join(sorted(_NAMES - _PLAIN_WORDS))})\b|({'|'.join(sorted(_PLAIN_WORDS))})(?=\())")
_SENTENCES = re.compile(r"(?<=[.!?])\s+(?=[A-Z])")


def chosen_tools(toolsets: Iterable[str] | None, *, read_only: bool = False) -> list[Tool]:
    """Return the tools of the named toolsets, or the default ones, as a server offers them.

    Their texts name no tool that is not among them.

    Args:
        toolsets: Names of ``TOOLSETS``, "all" or "default"; None means "default".
        read_only: Leave out what changes anything.

    Raises:
        InvalidInput: There is no such toolset.
    """
    rows = {**TOOLSETS, ALL: tuple(tool for tools in TOOLSETS.values() for tool in tools), DEFAULT: DEFAULT_TOOLS}
    names = list(toolsets or (DEFAULT,))
    for name in names:
        if name not in rows:
            raise InvalidInput(f"There is no toolset {name!r}; use one or more of {choices(rows)}.")
    chosen = list({tool.name: tool for name in names for tool in rows[name]}.values())
    if read_only:
        chosen = [tool for tool in (each.offered_read_only() for each in chosen) if tool is not None]
    offered = {tool.name for tool in chosen}
    return [_naming_only(tool, offered) for tool in chosen]


def naming_only(text: str, offered: Collection[str]) -> str:
    """Return a text without the clauses (ending in ";" or a sentence's end) that name a tool which is not offered."""
    lines = (_line_naming_only(line, offered) for line in text.split("\n"))
    return "\n".join(line for line in lines if line is not None)


def _line_naming_only(line: str, offered: Collection[str]) -> str | None:
    """Return a line without those clauses; None if nothing is left of it."""
    sentences: list[str] = []
    for sentence in _SENTENCES.split(line):
        clauses = [clause for clause in sentence.split("; ") if _offered_names(clause, offered)]
        if clauses:
            kept = "; ".join(clauses)
            sentences.append(kept if kept.endswith(sentence[-1:]) else kept + sentence[-1:])
    return " ".join(sentences) if sentences or not line else None


def _offered_names(text: str, offered: Collection[str]) -> bool:
    return all(match.group() in offered for match in _NAMED.finditer(text))


def _naming_only(tool: Tool, offered: Collection[str]) -> Tool:
    arguments = tuple(replace(argument, why=naming_only(argument.why, offered)) for argument in tool.arguments)
    description, advice = naming_only(tool.description, offered), naming_only(tool.advice, offered)
    return replace(tool, description=description, advice=advice, arguments=arguments)

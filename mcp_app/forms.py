"""The declared forms of answers: a JSON schema that names the fields of a tool's answer and their kinds.

Compact on purpose: every agent reads the schemas of all tools, and the fields of an item are as the tool's description
and its answer say. A form promises what is always there; an answer may carry more.
"""

from __future__ import annotations

from collections.abc import Mapping

from workbench.types.json import JsonObject


def form(at_times: Mapping[str, str] | None = None, /, **always: str) -> JsonObject:
    """Return the schema of an answer, each field by its JSON type: ``always`` is there, ``at_times`` may be."""
    kinds = {**always, **(at_times or {})}
    properties: JsonObject = {name: {"type": kind} for name, kind in kinds.items()}
    return {"type": "object", "properties": properties, "required": list(always)}


def acted(**at_times: str) -> JsonObject:
    """Return the schema of a tool with actions: each action's answer has some of the fields."""
    return form(at_times, success="boolean")

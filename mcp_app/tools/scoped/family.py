"""How the scoped tools write: an error carries the empty fields that an answer would have had."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from mcp_app.arguments import Argument
from mcp_app.tool import Family, compact

QUERY = Argument("query", "string", "What to look for: short and focused, 2 to 5 keywords.", required=True)
MATCH_COUNT = Argument("match_count", "integer", "Most results.", 5, low=1, high=50)


def family(**empty: Callable[[Mapping[str, Any]], Any]) -> Family:
    """Return a family whose errors also hold ``empty``: each a field's value, from the arguments as they came."""

    def failure(error: str, suggestion: str, given: Mapping[str, Any]) -> str:
        fields = {name: value(given) for name, value in empty.items()}
        return compact({"success": False, "error": error, "suggestion": suggestion, **fields})

    return Family(render=compact, failure=failure)


def nothing(given: Mapping[str, Any]) -> list[Any]:
    """Return the empty list of results."""
    del given
    return []


def as_given(name: str, default: Any = None) -> Callable[[Mapping[str, Any]], Any]:
    """Return a field that repeats an argument, where it came in a form that can be repeated."""

    def value(given: Mapping[str, Any]) -> Any:
        found = given.get(name)
        return found[:200] if isinstance(found, str) and found else default

    return value

"""The form in which the scoped tools write: an error carries the empty fields that an answer would have had."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from mcp_app.arguments import Argument
from mcp_app.tool import ToolFamily, compact
from workbench.types.json import JsonValue

Empty = Callable[[Mapping[str, object]], JsonValue]

QUERY = Argument("query", "string", "2 to 5 keywords.", required=True)
OFFSET = Argument("offset", "integer", "How many to skip.", 0, low=0)
DEFAULT_COUNT = 5
MATCH_COUNT = Argument(
    "match_count",
    "integer",
    "How many at most.",
    DEFAULT_COUNT,
    low=1,
    high=50,
    unset=0,
)


def family(**empty: Empty) -> ToolFamily:
    """Return a family whose errors also hold ``empty``: each a field's value, from the arguments as they came."""

    def failure(error: str, suggestion: str, given: Mapping[str, object]) -> str:
        fields = {name: value(given) for name, value in empty.items()}
        return compact({"success": False, "error": error, "suggestion": suggestion, **fields})

    return ToolFamily(render=compact, failure=failure)


def nothing(given: Mapping[str, object]) -> list[JsonValue]:
    """Return the empty list of results."""
    del given
    return []


def as_given(name: str, default: JsonValue = None) -> Empty:
    """Return a field that repeats an argument, where it came in a form that can be repeated."""

    def value(given: Mapping[str, object]) -> JsonValue:
        text = given.get(name)
        return text[:200] if isinstance(text, str) and text else default

    return value

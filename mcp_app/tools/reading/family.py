"""The form of the reading tools, JSON, and the arguments that they have in common."""

from __future__ import annotations

from mcp_app.arguments import Argument
from mcp_app.tool import PLAIN

FAMILY = PLAIN
LONGEST_PART = 24_000  # characters of a text at once; the budget may grant fewer
OFFSET = Argument("offset", "integer", "Where to begin, in characters.", 0, low=0)
LENGTH = Argument("length", "integer", "How many characters at most.", LONGEST_PART, low=1, high=LONGEST_PART)
SKIP = Argument("offset", "integer", "How many to skip.", 0, low=0)
LIMIT = Argument("limit", "integer", "How many at most.", 20, low=1, high=20)

"""Exceptions as clients see them: error, suggestion and HTTP status."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mcp_app.arguments import Refused
from workbench.errors import (
    Ambiguous,
    Cancelled,
    ConfigurationError,
    Conflict,
    CrawlRefused,
    ModelError,
    NotFound,
    ScopeError,
    StorageError,
    UnreadableDocument,
    WorkbenchError,
)
from workbench.runtime import find_missing_extra
from workbench.types.json import JsonObject, JsonValue

if TYPE_CHECKING:
    from mcp_app.tool import Tool

logger = logging.getLogger(__name__)

DEFAULT_SUGGESTION = "Check the arguments and try again"
# The first matching row applies. Status 400 is the client's mistake, 500 the server's.
_REMEDIES: tuple[tuple[type[WorkbenchError], str, int], ...] = (
    (StorageError, "The call is valid: start the database (see 'workbench doctor'), then call again", 500),
    (ModelError, "The call is valid: check the model with 'workbench doctor', then call again", 500),
    (ConfigurationError, "The call is valid: correct the setting and restart the server", 500),
    (Conflict, "Use the existing one, or choose another name", 400),
    (UnreadableDocument, "Check that the file opens in another program, or send its text as content", 400),
    (CrawlRefused, "Use a public http:// or https:// address", 400),
    (Cancelled, "Finished work is kept; call again to continue", 400),
    (WorkbenchError, DEFAULT_SUGGESTION, 400),
)


@dataclass(frozen=True, slots=True)
class Failure:
    """A failure as clients see it."""

    error: str
    suggestion: str
    status: int  # HTTP status
    fields: JsonObject = field(default_factory=dict[str, JsonValue])  # further fields of the answer


def explain_error(error: Exception, tool: Tool) -> Failure:
    """Convert an exception to a failure."""
    named = isinstance(error, ScopeError) and isinstance(error.__cause__, NotFound | Ambiguous)
    cause = error.__cause__ if named else error
    if isinstance(cause, ModuleNotFoundError):
        cause = find_missing_extra(cause) or cause
    match cause:
        case Refused():
            return Failure(cause.error, cause.suggestion or DEFAULT_SUGGESTION, 400, cause.fields)
        case Ambiguous():
            return Failure(str(cause), f"Give the id of one {cause.kind}", 400)
        case NotFound():
            return Failure(str(cause), f"Check the {cause.kind}'s id, or list the valid ones", 404)
        case WorkbenchError():
            remedy, status = next((row[1], row[2]) for row in _REMEDIES if isinstance(cause, row[0]))
            return Failure(str(cause), remedy, status)
        case TimeoutError():
            return Failure("The workbench is still starting", "Try again in a minute", 503)
        case _:
            logger.error("%s failed", tool.name, exc_info=error)
            name = type(error).__name__
            return Failure(f"{tool.name} failed unexpectedly ({name})", "See the server's log for details", 500)

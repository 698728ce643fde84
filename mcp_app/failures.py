"""Exceptions as a client reads them: what happened, what to do about it, and the HTTP status that says the same."""

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
from workbench.runtime import missing_extra
from workbench.types.json import JsonObject, JsonValue

if TYPE_CHECKING:
    from mcp_app.tool import Tool

logger = logging.getLogger(__name__)

AGAIN = "Check the arguments and try again"
# The first row whose error it is says what to do; the status tells a client's mistake (400) from the server's (500).
_REMEDIES: tuple[tuple[type[WorkbenchError], str, int], ...] = (
    (StorageError, "Nothing is wrong with the call: start the database, see 'workbench doctor', then call again", 500),
    (ModelError, "Nothing is wrong with the call: see 'workbench doctor' for the model, then call again", 500),
    (ConfigurationError, "Nothing is wrong with the call: correct the setting and start the server again", 500),
    (Conflict, "Use what is there already, or another name", 400),
    (UnreadableDocument, "Check that the file opens elsewhere, or send its text as content", 400),
    (CrawlRefused, "Use a public http:// or https:// address", 400),
    (Cancelled, "Finished work stays; call again to go on", 400),
    (WorkbenchError, AGAIN, 400),
)


@dataclass(frozen=True, slots=True)
class Failure:
    """A failure: its cause, its remedy, and the HTTP status that says the same."""

    error: str
    suggestion: str
    status: int
    fields: JsonObject = field(default_factory=dict[str, JsonValue])  # further ones of the answer


def explained(error: Exception, tool: Tool) -> Failure:
    """Say in sentences what an exception means to a client."""
    named = isinstance(error, ScopeError) and isinstance(error.__cause__, NotFound | Ambiguous)
    cause = error.__cause__ if named else error
    if isinstance(cause, ModuleNotFoundError):
        cause = missing_extra(cause) or cause
    match cause:
        case Refused():
            return Failure(cause.error, cause.suggestion or AGAIN, 400, cause.fields)
        case Ambiguous():
            return Failure(str(cause), f"Give the id of one {cause.kind}", 400)
        case NotFound():
            return Failure(str(cause), f"Verify the {cause.kind}'s id, or list what there is", 404)
        case WorkbenchError():
            remedy, status = next((row[1], row[2]) for row in _REMEDIES if isinstance(cause, row[0]))
            return Failure(str(cause), remedy, status)
        case TimeoutError():
            return Failure("The workbench is still starting", "Try again in a minute", 503)
        case _:
            logger.error("%s failed", tool.name, exc_info=error)
            name = type(error).__name__
            return Failure(f"{tool.name} failed unexpectedly ({name})", "The server's log has the details", 500)

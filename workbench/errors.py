"""The error tree: every error that the workbench raises on purpose.

A message is one sentence on what happened and what to do, and lists the valid choices if there are any.
Errors of drivers and libraries are translated into this tree once, where they enter the workbench.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

MAX_IDS_LISTED = 12  # objects with the same title that a message lists

# of an LLM
SETUP_HINT = "set WORKBENCH_LLM_BASE_URL and WORKBENCH_LLM_MODEL, or only the latter, to the path of a GGUF file"


class WorkbenchError(Exception):
    """Base of all errors that the workbench raises on purpose; ``str(error)`` can be shown to a person."""


class InvalidInput(WorkbenchError):
    """An argument has an invalid value; the message names the argument and the valid values."""


class NotFound(WorkbenchError):
    """No object has the requested id, title or path.

    The kind is a noun, such as "source"; the hint is a sentence on how to list the valid ones.
    """

    def __init__(self, kind: str, key: str, hint: str = "") -> None:
        self.kind, self.key = kind, key
        super().__init__(f"{kind.capitalize()} not found: {key}." + (f" {hint}" if hint else ""))


class Ambiguous(WorkbenchError):
    """Several objects have the requested title or URL; the message lists the id of each.

    The kind is a noun, such as "source"; ``ids`` has a text for each id that distinguishes the object from the others.
    """

    def __init__(self, kind: str, key: str, ids: Mapping[str, str]) -> None:
        self.kind, self.key = kind, key
        named = ", ".join(f"{id} ({what})" for id, what in list(ids.items())[:MAX_IDS_LISTED])
        more = f" and {len(ids) - MAX_IDS_LISTED} more" if len(ids) > MAX_IDS_LISTED else ""
        super().__init__(f"{len(ids)} {kind}s are called {key!r}: {named}{more}. Use one of the ids.")


class Conflict(WorkbenchError):
    """The requested name or state collides with an existing one."""


class ScopeError(WorkbenchError):
    """A scope contradicts itself or names something that does not exist; nothing was searched."""


class ConfigurationError(WorkbenchError):
    """A setting is missing or invalid; the message names the setting."""


class StorageError(WorkbenchError):
    """The database is unreachable or rejected a statement."""


class OtherVersion(StorageError):
    """The database was written by another version of the workbench, which only an export and an import change."""


class ConnectionLost(StorageError):
    """No connection to the database could be opened, or one was lost; what it had not committed is rolled back."""


class TableUnavailable(StorageError):
    """The server of an attached table is unreachable, or rejects or does not finish a statement."""


class StatementRejected(StorageError):
    """The database rejected a statement because its tables differ from what the statement expects."""


class ModelError(WorkbenchError):
    """A model's files are missing or damaged, or a model endpoint failed."""


class UnreadableDocument(WorkbenchError):
    """A file or page contains no readable text (broken, encrypted, empty, too large, unsupported format)."""


class CrawlRefused(WorkbenchError):
    """A URL may not be fetched (scheme, private network, robots.txt)."""


class Cancelled(WorkbenchError):
    """The caller stopped the work; finished parts are kept."""


def list_choices(values: Iterable[str], limit: int = 12, ids: Mapping[str, str] | None = None) -> str:
    """Join valid values for a message, quoting each and truncating a long list: ``'a', 'b' (and 3 more)``.

    Args:
        values: Valid values, or titles if ``ids`` is given.
        limit: Number of values that are listed.
        ids: Id of each title, listed after it because either is accepted: ``'A' (a), 'B' (b)``.
    """
    names = [f"'{value}'" + (f" ({ids[value]})" if ids else "") for value in values]
    listed = ", ".join(names[:limit]) or "none yet"
    return listed + (f" (and {len(names) - limit} more)" if len(names) > limit else "")


MAX_FAULT_CHARS = 200  # of the message of a user's own code


def describe_fault(error: BaseException) -> str:
    """Return the kind of an error of a user's own code with its text, or what to do if it is a known one."""
    try:
        text = str(error)
    except Exception:  # noqa: BLE001 - the error's own code
        text = ""
    if "multiply-linked" in text:
        return (
            "NLTK refuses data that uv linked to its cache; run: uv pip install --link-mode copy --reinstall-package "
            "llama-index-core llama-index-core"
        )
    words = " ".join(text.split())[:MAX_FAULT_CHARS]
    return f"{type(error).__name__}: {words}" if words else type(error).__name__

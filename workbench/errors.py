"""The error tree: every error a person can cause or meet.

A message is one sentence that says what happened and what to do, with the valid choices where there are some.
Drivers' and libraries' errors are translated into this tree exactly once, where they enter the house.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

MOST_NAMED = 12  # things of one title that a message names


class WorkbenchError(Exception):
    """Base of all errors the workbench raises on purpose; ``str(error)`` can be shown to a person as it is."""


class InvalidInput(WorkbenchError):
    """An argument has no usable value; the message names the argument and the valid values."""


class NotFound(WorkbenchError):
    """Something asked for by id, title or path does not exist."""

    def __init__(self, kind: str, key: str, hint: str = "") -> None:
        """Take ``kind``, the field's noun ("source"), and ``hint``, which says where the valid ones are listed."""
        self.kind = kind
        self.key = key
        super().__init__(f"{kind.capitalize()} not found: {key}." + (f" {hint}" if hint else ""))


class Ambiguous(WorkbenchError):
    """Several things have the title or URL asked for; the message names the id of each."""

    def __init__(self, kind: str, key: str, ids: Mapping[str, str]) -> None:
        """Take ``kind``, the field's noun ("source"), and ``ids``: what tells each apart, by id."""
        self.kind = kind
        self.key = key
        named = ", ".join(f"{id} ({what})" for id, what in list(ids.items())[:MOST_NAMED])
        more = f" and {len(ids) - MOST_NAMED} more" if len(ids) > MOST_NAMED else ""
        super().__init__(f"{len(ids)} {kind}s are called {key!r}: {named}{more}. Give the id of the one you mean.")


class Conflict(WorkbenchError):
    """The name or state asked for collides with one that exists."""


class ScopeError(WorkbenchError):
    """A scope names something that does not exist or contradicts itself; nothing was searched."""


class ConfigurationError(WorkbenchError):
    """A setting is missing or wrong; the message names the setting."""


class StorageError(WorkbenchError):
    """The database cannot be reached or refused a statement."""


class StatementRefused(StorageError):
    """The database is there and refused a statement: its tables are not as the statement expects them."""


class ModelError(WorkbenchError):
    """A model's files are missing or damaged, or a model endpoint failed."""


class UnreadableDocument(WorkbenchError):
    """A file or page cannot be turned into text (broken, encrypted, empty, too large, unknown form)."""


class CrawlRefused(WorkbenchError):
    """An address may not be fetched (scheme, private network, robots.txt)."""


class Cancelled(WorkbenchError):
    """The caller stopped the work; its finished part stays."""


def choices(values: Iterable[str], limit: int = 12, ids: Mapping[str, str] | None = None) -> str:
    """Join valid values for a message, quoting each and cutting a long list: ``'a', 'b' (and 3 more)``.

    With ``ids`` the values are titles, each followed by its id, as either may be given: ``'A' (a), 'B' (b)``.
    """
    names = [f"'{value}'" + (f" ({ids[value]})" if ids else "") for value in values]
    listed = ", ".join(names[:limit]) or "none yet"
    return listed + (f" (and {len(names) - limit} more)" if len(names) > limit else "")

"""What a tool is: a row with its arguments, its description, its hints and the function that serves it."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from mcp_app.arguments import Argument, missing
from mcp_app.file_roots import FileRoots
from workbench.types import Progress

if TYPE_CHECKING:
    from workbench.workbench import Workbench

MORE = "Ask for fewer, or for one document's whole text (resource document://ID)."


@dataclass(frozen=True, slots=True)
class Call:
    """What a tool may use while it serves one call: the workbench, the allowed files, a way to be stopped."""

    workbench: Workbench
    files: FileRoots
    stop: threading.Event = field(default_factory=threading.Event)
    on_progress: Callable[[Progress], None] | None = None
    work_jobs: Callable[[], None] = lambda: None  # lets this process take jobs, where one is about to be started

    def should_stop(self) -> bool:
        """Tell whether the caller has gone or the time is up."""
        return self.stop.is_set()


@dataclass(frozen=True, slots=True)
class Family:
    """How the tools of one specification write: ``render`` an answer, ``failure`` an error.

    ``failure`` is given the error, the suggestion and the arguments as they came.
    """

    render: Callable[[Any], str]
    failure: Callable[[str, str, Mapping[str, Any]], str]


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool of the contract.

    ``run(call, **arguments)`` returns what is rendered as the answer. ``reading_actions`` are the values of the
    argument ``action`` that change nothing: what stays of the tool in a read-only server.
    """

    name: str
    title: str
    description: str
    arguments: tuple[Argument, ...]
    run: Callable[..., Any]
    family: Family
    read_only: bool = True
    destructive: bool = False
    idempotent: bool = True
    open_world: bool = False
    reading_actions: tuple[str, ...] = ()
    rest: str = MORE

    def offered_read_only(self) -> Tool | None:
        """Return what a read-only server offers of the tool, or None."""
        if self.read_only:
            return self
        if not self.reading_actions:
            return None
        kept = tuple(
            replace(argument, choices=self.reading_actions, why=f"{' or '.join(self.reading_actions)} (read-only).")
            if argument.name == "action"
            else argument
            for argument in self.arguments
        )
        return replace(self, arguments=kept, read_only=True, destructive=False, idempotent=True, open_world=False)


def compact(value: Any) -> str:
    """Write JSON without blanks, text as it is."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)


def failure_json(error: str, suggestion: str, given: Mapping[str, Any]) -> str:
    """Write an error as the knowledge and workspace tools do."""
    del given
    return compact({"success": False, "error": error, "suggestion": suggestion})


def needed(arguments: Mapping[str, Any], name: str, action: str, how: str) -> Any:
    """Return the argument that an action cannot do without. Raises Refused."""
    if not arguments[name]:
        raise missing(name, f"{name} is required for {action}. {how}")
    return arguments[name]

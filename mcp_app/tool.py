"""A tool as a row: its arguments, its description, its hints, how a long answer is given in parts, and its function."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from mcp_app.arguments import Argument, missing
from mcp_app.file_roots import FileRoots
from mcp_app.parts import Items, TextPart
from workbench.errors import WorkbenchError
from workbench.services.articles import ArticleFolder
from workbench.types import OnProgress
from workbench.types.json import JsonObject, JsonValue

if TYPE_CHECKING:
    from workbench.opening import Opening
    from workbench.workbench import Workbench

LONGEST_START = 180.0  # seconds that a call waits for the workbench: on its first start it builds the model's graph


@dataclass(frozen=True, slots=True)
class Call:
    """The means of a tool while it serves one call: the workbench, the articles, the allowed files, a way to stop.

    ``offered`` are the names of the server's tools, the only ones that an answer may send a client to; None for all.
    """

    opening: Opening
    articles: ArticleFolder
    files: FileRoots
    offered: frozenset[str] | None = None
    stop: threading.Event = field(default_factory=threading.Event)
    on_progress: OnProgress | None = None

    @property
    def workbench(self) -> Workbench:
        """The workbench, waited for where it still opens. Raises WorkbenchError."""
        self.opening.again()
        workbench = self.opening.wait(LONGEST_START)
        if workbench is None:
            raise WorkbenchError("The workbench is still starting; try again in a minute.")
        return workbench

    def work_jobs(self) -> None:
        """Let this process take jobs, where one is about to be started."""
        self.opening.work_jobs()

    def offers(self, name: str) -> bool:
        """Tell whether the server that serves this call offers a tool."""
        return self.offered is None or name in self.offered

    def should_stop(self) -> bool:
        """Tell whether the caller has gone or the time is up."""
        return self.stop.is_set()


@dataclass(frozen=True, slots=True)
class ToolFamily:
    """How the tools of one specification write: ``render`` an answer, ``failure`` an error.

    ``failure`` is given the error, the suggestion and the arguments as they came.
    """

    render: Callable[[JsonValue], str]
    failure: Callable[[str, str, Mapping[str, object]], str]


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool of the contract.

    ``run(call, **arguments)`` returns what is rendered as the answer. ``reading_actions`` are the values of the
    argument ``action`` that change nothing: what stays of the tool in a read-only server. There ``reading_description``
    and ``reading_advice`` stand for ``description`` and ``advice`` where these speak of a change. ``parts`` says which
    list or text of the answer is given in parts where it is long; everything else is never shortened. ``from_files``
    says that it answers from files alone, before the workbench is open. ``advice`` is the tool's line in the server's
    instructions. ``output`` is the JSON schema of the answer's fields: every answer also goes out as structured content
    that keeps to it.
    """

    name: str
    title: str
    description: str
    arguments: tuple[Argument, ...]
    run: Callable[..., JsonValue]
    family: ToolFamily
    output: Mapping[str, JsonValue]
    read_only: bool = True
    destructive: bool = False
    idempotent: bool = True
    open_world: bool = False
    from_files: bool = False
    reading_actions: tuple[str, ...] = ()
    reading_description: str = ""
    reading_advice: str = ""
    parts: Items | TextPart | None = None
    advice: str = ""

    def reads(self, arguments: Mapping[str, JsonValue]) -> bool:
        """Tell whether a call with these arguments changes nothing."""
        return self.read_only or arguments.get("action") in self.reading_actions

    def offered_read_only(self) -> Tool | None:
        """Return what a read-only server offers of the tool, or None."""
        told = replace(
            self,
            description=self.reading_description or self.description,
            advice=self.reading_advice or self.advice,
        )
        if self.read_only:
            return told
        if not self.reading_actions:
            return None
        arguments = tuple(
            replace(argument, choices=self.reading_actions, why=f"{' or '.join(self.reading_actions)}.")
            if argument.name == "action"
            else argument
            for argument in self.arguments
            if argument.reading
        )
        return replace(told, arguments=arguments, read_only=True, destructive=False, idempotent=True, open_world=False)


def compact(value: JsonValue) -> str:
    """Write JSON without blanks, text as it is."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)


def failure_json(error: str, suggestion: str, given: Mapping[str, object]) -> str:
    """Write an error as the knowledge and workspace tools do."""
    del given
    return compact({"success": False, "error": error, "suggestion": suggestion})


def needed(value: str, name: str, action: str, how: str) -> str:
    """Return the value of an argument that an action cannot do without. Raises Refused."""
    if not value:
        raise missing(name, f"{name} is required for {action}. {how}")
    return value


PLAIN = ToolFamily(render=compact, failure=failure_json)
__all__ = ["PLAIN", "Call", "JsonObject", "JsonValue", "Tool", "ToolFamily", "compact", "failure_json", "needed"]

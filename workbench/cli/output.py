"""Output of a command: JSON or text on stdout, messages and progress on stderr."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, cast

from workbench.types import Countdown, OnProgress, Progress, time_left_text, to_plain

if TYPE_CHECKING:
    from rich.console import Console

PIPED_COLUMNS = 120  # columns without a terminal


class Output:
    """The output of one command; with ``as_json``, stdout has a single JSON document."""

    def __init__(self, *, as_json: bool = False) -> None:
        self.as_json = as_json
        self._has_reader = True

    def show(self, value: object, human: Callable[[Console], None]) -> None:
        """Print ``value`` as JSON, or call ``human`` to print it.

        A closed stdout (``| head -1``) does not fail the command; printing again, as in a watch, raises
        BrokenPipeError.
        """
        if not self._has_reader:
            raise BrokenPipeError
        try:
            if self.as_json:
                print(json.dumps(to_plain(value), ensure_ascii=False, indent=2), flush=True)
            else:
                human(self.console())
                sys.stdout.flush()
        except (BrokenPipeError, SystemExit):  # the latter is rich's, which closes stdout
            discard_output()
            self._has_reader = False

    def sentence(self, value: object, text: str) -> int:
        """Print ``value`` as JSON, or a sentence, and return the exit code of success."""
        self.show(value, lambda console: console.print(text, soft_wrap=True))
        return 0

    def fields(self, value: object, shown: Mapping[str, object] | None = None) -> int:
        """Print ``value`` as JSON, or its fields (or ``shown``) one per line, and return the exit code of success."""
        self.show(value, lambda console: print_fields(console, shown or cast("dict[str, object]", to_plain(value))))
        return 0

    def table(self, value: object, columns: Sequence[str], rows: Iterable[Sequence[object]], empty: str = "") -> int:
        """Print ``value`` as JSON, or a table, and return the exit code of success."""
        self.show(value, lambda console: print_table(console, columns, rows, empty))
        return 0

    def job(self, job_id: str, value: Mapping[str, object]) -> int:
        """Report a job that was queued, and return the exit code of success."""
        self.message(describe_queued(job_id))
        return self.fields(value, value)

    def message(self, text: str) -> None:
        """Print a message to stderr unless it is empty."""
        with suppress(OSError):  # stderr is closed, or the disk is full
            if text:
                print(strip_control_chars(text), file=sys.stderr, flush=True)

    def console(self) -> Console:
        """Return a console on stdout without markup."""
        from rich.console import Console

        console = Console(markup=False, highlight=False, emoji=False, soft_wrap=False)
        if not console.is_terminal and "COLUMNS" not in os.environ:
            console.width = PIPED_COLUMNS
        return console

    @contextmanager
    def progress(self, title: str) -> Generator[OnProgress]:
        """Yield a function that shows progress on stderr if that is a terminal."""
        if not sys.stderr.isatty():
            yield lambda progress: None
            return
        from rich.console import Console
        from rich.progress import BarColumn, ProgressColumn, Task, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as Bar
        from rich.text import Text

        countdown = Countdown()

        class TimeLeftColumn(ProgressColumn):
            """The remaining time, which counts down between updates."""

            def render(self, task: Task) -> Text:
                return Text(time_left_text(countdown.seconds_left))

        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TextColumn("{task.fields[count]}", markup=False),
            TextColumn("{task.fields[message]}", markup=False),
            TimeElapsedColumn(),
            TimeLeftColumn(),
        )
        with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
            task = bar.add_task(title, total=None, count="", message="")

            def show(progress: Progress) -> None:
                countdown.take(progress)
                bar.update(
                    task,
                    completed=progress.done_share,
                    total=1.0 if progress.total else None,
                    count=f"{progress.done:,}/{progress.total:,}" if progress.total else f"{progress.done:,}",
                    message=strip_control_chars(progress.message),
                )

            yield show


def discard_output() -> None:
    """Discard further output to stdout."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def describe_queued(job_id: str) -> str:
    """Return a sentence on a job that was queued."""
    return f"Queued for a worker (the app, the MCP server or 'workbench worker'); see 'workbench jobs show {job_id}'."


def strip_control_chars(text: str) -> str:
    """Replace control characters of a text with spaces."""
    return "".join(char if char.isprintable() or char in "\n\t" else " " for char in text)


def format_own(own: int, family: int) -> int | str:
    """Return the cell of a number of documents or sources; conversations, articles and archives are counted apart."""
    return f"{own:,} + {family:,} conversations, articles, archives" if family else own


def print_table(
    console: Console, columns: Sequence[str], rows: Iterable[Sequence[object]], empty: str, yielding: int | None = None
) -> None:
    """Print a table, with numbers right-aligned.

    The first column is never wrapped; with ``yielding``, only the column with this number wraps.
    """
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    cells = [list(row) for row in rows]
    if not cells:
        console.print(empty)
        return
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for place, name in enumerate(columns):
        numbers = all(isinstance(row[place], int | float) for row in cells)
        no_wrap = place == 0 if yielding is None else place != yielding
        table.add_column(name, justify="right" if numbers else "left", no_wrap=no_wrap, overflow="fold")
    for row in cells:
        table.add_row(*(Text(format_cell(cell)) for cell in row))
    console.print(table)


def print_fields(console: Console, fields: Mapping[str, object]) -> None:
    """Print one field per line."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in fields.items():
        table.add_row(Text(name.replace("_", " ")), Text(format_cell(value)))
    console.print(table)


def format_cell(value: object) -> str:
    """Format a value for a table."""
    value = to_plain(value)
    if value is None or value == "" or value == []:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.3f}"
    if isinstance(value, list):
        return ", ".join(format_cell(item) for item in value)
    if isinstance(value, dict):
        return ", ".join(f"{key}={format_cell(item)}" for key, item in value.items()) or "-"
    return strip_control_chars(str(value))

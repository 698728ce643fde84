"""The output of a command: one JSON document or readable text on stdout, everything else on stderr."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from workbench.types import Countdown, OnProgress, Progress, plain, time_left

if TYPE_CHECKING:
    from rich.console import Console

PIPED_WIDTH = 120  # columns where there is no terminal to ask


class Out:
    """Where one command's output goes; ``as_json`` keeps stdout to one document."""

    def __init__(self, *, as_json: bool = False) -> None:
        self.as_json = as_json
        self._has_reader = True

    def show(self, value: object, human: Callable[[Console], None]) -> None:
        """Print ``value`` as JSON, or let ``human`` print it.

        A reader that leaves early (``| head -1``) does not end the command, whose exit code still counts; one that
        prints again, as when it watches, ends by BrokenPipeError.
        """
        if not self._has_reader:
            raise BrokenPipeError
        try:
            if self.as_json:
                print(json.dumps(plain(value), ensure_ascii=False, indent=2), flush=True)
            else:
                human(self.console())
                sys.stdout.flush()
        except (BrokenPipeError, SystemExit):  # the latter is rich's, which closes stdout
            forget_output()
            self._has_reader = False

    def message(self, text: str) -> None:
        """Print a message to stderr, beside the result."""
        with suppress(OSError):  # stderr has no reader, or its disk is full
            print(printable(text), file=sys.stderr, flush=True)

    def remark(self, text: str) -> None:
        """Print a message where there is one: nothing for ""."""
        if text:
            self.message(text)

    def console(self) -> Console:
        """Return a console on stdout that takes every text literally."""
        from rich.console import Console

        console = Console(markup=False, highlight=False, emoji=False, soft_wrap=False)
        if not console.is_terminal and "COLUMNS" not in os.environ:
            console.width = PIPED_WIDTH
        return console

    @contextmanager
    def progress(self, title: str) -> Generator[OnProgress]:
        """Yield a function that shows progress on stderr, where somebody watches it."""
        if not sys.stderr.isatty():
            yield lambda progress: None
            return
        from rich.console import Console
        from rich.progress import BarColumn, ProgressColumn, Task, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as Bar
        from rich.text import Text

        countdown = Countdown()

        class TimeLeftColumn(ProgressColumn):
            """The time left, which counts down also while there is no news."""

            def render(self, task: Task) -> Text:
                return Text(time_left(countdown.seconds_left))

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
                    message=printable(progress.message),
                )

            yield show


def forget_output() -> None:
    """Let what is still written to stdout go nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def printable(text: str) -> str:
    """Return a text without the characters that would steer a terminal."""
    return "".join(char if char.isprintable() or char in "\n\t" else " " for char in text)


def print_table(
    console: Console,
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    empty: str,
    yielding: int | None = None,
) -> None:
    """Print rows under headings; numbers to the right, the first column never broken, or all but the yielding one."""
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
        table.add_row(*(Text(cell_text(cell)) for cell in row))
    console.print(table)


def print_fields(console: Console, fields: Mapping[str, object]) -> None:
    """Print one thing, a field a line."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in fields.items():
        table.add_row(Text(name.replace("_", " ")), Text(cell_text(value)))
    console.print(table)


def cell_text(value: object) -> str:
    """Return a value as a person reads it in a table."""
    value = plain(value)
    if value is None or value == "" or value == []:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.3f}"
    if isinstance(value, list):
        return ", ".join(cell_text(item) for item in value)
    if isinstance(value, dict):
        return ", ".join(f"{key}={cell_text(item)}" for key, item in value.items()) or "-"
    return printable(str(value))

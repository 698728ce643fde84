"""``workbench doctor``: check everything that a search depends on."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from workbench.cli.output import Output
from workbench.cli.session import open_workbench
from workbench.errors import WorkbenchError

if TYPE_CHECKING:
    from rich.console import Console

    from workbench.services.health import Check


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare no arguments."""


def run(arguments: argparse.Namespace, out: Output) -> int:
    """Print one line per check; return 1 if one failed."""
    checks = _run_checks()
    well = all(check.ok for check in checks)
    out.show({"ok": well, "checks": checks}, lambda console: _print_checks(console, checks))
    return 0 if well else 1


def _run_checks() -> list[Check]:
    try:
        with open_workbench() as wb:
            return wb.health.doctor()
    except WorkbenchError as error:  # without a database nothing else can be checked
        from workbench.services.health import Check

        return [Check("database", False, str(error))]


def _print_checks(console: Console, checks: list[Check]) -> None:
    from rich.text import Text

    for check in checks:
        mark = Text("ok    " if check.ok else "FAILED", style="green" if check.ok else "bold red")
        console.print(Text.assemble(mark, f"  {check.name}: {check.detail}"), soft_wrap=True)

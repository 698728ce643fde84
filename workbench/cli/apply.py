"""``workbench apply``: make the workbench what a configuration file describes."""

from __future__ import annotations

import argparse

from workbench.cli.output import Output, print_table
from workbench.cli.session import cancel_on_sigint, open_workbench
from workbench.runtime import check_extra


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("file", metavar="FILE", help="TOML or YAML file (see docs/configuration.md)")
    parser.add_argument("--dry-run", action="store_true", help="show what would change, and change nothing")


def run(arguments: argparse.Namespace, out: Output) -> int:
    """Show the plan, then apply it unless ``--dry-run`` is given."""
    check_extra("eval")
    from evals.configuration import apply, make_plan, read_configuration

    with open_workbench() as wb, cancel_on_sigint(out) as should_stop:
        plan = make_plan(wb, read_configuration(wb, arguments.file))
        changes = [change for change, _ in plan]
        needed = sum(change.is_needed for change in changes)
        value = {"file": arguments.file, "dry_run": arguments.dry_run, "changed": needed, "changes": changes}
        rows = [(change.action, change.kind, change.name, change.detail) for change in changes]
        columns = ("Action", "Kind", "Name", "Detail")
        if not out.as_json:
            out.show(value, lambda console: print_table(console, columns, rows, "", yielding=3))
        if not arguments.dry_run:
            with out.progress("Apply") as show:
                apply(wb, plan, on_progress=show, should_stop=should_stop)
        if out.as_json:
            out.show(value, lambda console: None)
    counts = f"{needed:,} of {len(changes):,}"
    if not needed:
        out.message("Nothing to change.")
    else:
        out.message(f"Would change {counts}; nothing was changed." if arguments.dry_run else f"Changed {counts}.")
    return 0

"""``workbench apply`` and ``workbench check``: a configuration file, and its experiments against their bars."""

from __future__ import annotations

import argparse
from pathlib import Path

from workbench.cli.output import Output, print_table
from workbench.cli.session import cancel_on_sigint, open_workbench
from workbench.runtime import check_extra

FAILURE = 1  # exit code if a bar is missed or a run failed


class Apply:
    """Apply a configuration file."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the command's arguments."""
        parser.add_argument("file", metavar="FILE", help="TOML or YAML file (see docs/configuration.md)")
        parser.add_argument("--dry-run", action="store_true", help="show what would change, and change nothing")

    def run(self, arguments: argparse.Namespace, out: Output) -> int:
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


class Check:
    """Run the experiments of a file."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the command's arguments."""
        parser.add_argument("file", metavar="FILE", help="TOML or YAML file (see docs/configuration.md)")
        parser.add_argument("--save", action="store_true", help="write the baselines instead of comparing with them")
        parser.add_argument("--junit", type=Path, metavar="FILE", help="also write JUnit XML")
        parser.add_argument(
            "--markdown", type=Path, metavar="FILE", help="also write a Markdown table for a pull request"
        )

    def run(self, arguments: argparse.Namespace, out: Output) -> int:
        """Check; return 1 if a bar is missed or a run failed."""
        check_extra("eval")
        from evals.configuration import check, write_report

        with open_workbench() as wb, out.progress("Check") as show, cancel_on_sigint(out) as should_stop:
            report = check(wb, arguments.file, save=arguments.save, on_progress=show, should_stop=should_stop)
        for path, text in ((arguments.junit, report.to_junit()), (arguments.markdown, report.to_markdown())):
            if path is not None:
                write_report(path, text)
        rows = [
            (one.state, one.experiment, one.run, one.metric, one.value, one.bar, one.detail) for one in report.verdicts
        ]
        columns = ("State", "Experiment", "Run", "Metric", "Value", "Bar", "Detail")
        out.show(report.to_dict(), lambda console: print_table(console, columns, rows, "", yielding=6))
        for note in report.notes:
            out.message(note)
        out.message(report.summary)
        return 0 if report.is_passed else FAILURE


APPLY, CHECK = Apply(), Check()

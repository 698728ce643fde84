"""``workbench check``: run the experiments of a configuration file, and fail on a fall."""

from __future__ import annotations

import argparse
from pathlib import Path

from workbench.cli.output import Output, print_table
from workbench.cli.session import cancel_on_sigint, open_workbench
from workbench.runtime import check_extra

FAILURE = 1  # exit code if a bar is missed or a run failed


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("file", metavar="FILE", help="TOML or YAML file (see docs/configuration.md)")
    parser.add_argument("--save", action="store_true", help="write the baselines instead of comparing with them")
    parser.add_argument("--junit", type=Path, metavar="FILE", help="also write JUnit XML")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="also write a Markdown table for a pull request")


def run(arguments: argparse.Namespace, out: Output) -> int:
    """Check; return 1 if a bar is missed or a run failed."""
    check_extra("eval")
    from evals.checking import check, write_report

    with open_workbench() as wb, out.progress("Check") as show, cancel_on_sigint(out) as should_stop:
        report = check(wb, arguments.file, save=arguments.save, on_progress=show, should_stop=should_stop)
    for path, text in ((arguments.junit, report.to_junit()), (arguments.markdown, report.to_markdown())):
        if path is not None:
            write_report(path, text)
    rows = [(one.state, one.experiment, one.run, one.metric, one.value, one.bar, one.detail) for one in report.verdicts]
    columns = ("State", "Experiment", "Run", "Metric", "Value", "Bar", "Detail")
    out.show(report.to_dict(), lambda console: print_table(console, columns, rows, "", yielding=6))
    for note in report.notes:
        out.message(note)
    out.message(report.summary)
    return 0 if report.passed else FAILURE

"""``workbench eval``: measure strategies on a test set; tables on stderr, JSON on stdout."""

from __future__ import annotations

import argparse
import sys

from workbench.cli.options import add_scope, scope_of
from workbench.cli.output import Out
from workbench.cli.session import opened, stoppable
from workbench.runtime import check_extra


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    from evals.command import add_arguments as declare

    declare(parser)
    add_scope(parser)


def run(arguments: argparse.Namespace, out: Out) -> int:
    """Evaluate; return 1 if a strategy is significantly worse than the baseline."""
    check_extra("eval")
    from evals.command import evaluate

    with opened() as wb, out.progress("Evaluate") as show, stoppable(out) as should_stop:
        scope = scope_of(arguments)
        payload, code = evaluate(wb, arguments, say=out.message, scope=scope, on_progress=show, should_stop=should_stop)
    if out.as_json or not sys.stdout.isatty():  # no JSON in a terminal, which shows the tables
        Out(as_json=True).show(payload, lambda console: None)
    return code

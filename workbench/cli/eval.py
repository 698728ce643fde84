"""``workbench eval``: measure strategies on a test set; tables on stderr, JSON on stdout."""

from __future__ import annotations

import argparse
import sys

from workbench.cli.options import add_scope, read_scope
from workbench.cli.output import Output
from workbench.cli.session import cancel_on_sigint, open_workbench
from workbench.runtime import check_extra


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    from evals.command import add_arguments as declare

    declare(parser)
    add_scope(parser)


def run(arguments: argparse.Namespace, out: Output) -> int:
    """Evaluate; return 1 if a strategy is significantly worse than the baseline."""
    check_extra("eval")
    from evals.command import evaluate, pool

    with open_workbench() as wb, out.progress("Evaluate") as show, cancel_on_sigint(out) as should_stop:
        scope = read_scope(arguments)
        if arguments.pool:
            counts = pool(wb, arguments, say=out.message, scope=scope, on_progress=show, should_stop=should_stop)
            if out.as_json or not sys.stdout.isatty():
                Output(as_json=True).show(counts, lambda console: None)
            return 0
        payload, code = evaluate(wb, arguments, say=out.message, scope=scope, on_progress=show, should_stop=should_stop)
    if out.as_json or not sys.stdout.isatty():  # no JSON in a terminal, which shows the tables
        Output(as_json=True).show(payload, lambda console: None)
    return code

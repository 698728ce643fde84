"""``workbench bench``: speed beside bare baselines, in one run and as ratios."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.errors import InvalidInput
from workbench.extras import check_extra

if TYPE_CHECKING:
    from rich.console import Console

    from evals.bench.figures import Figures
    from workbench.cli.output import Out
    from workbench.types import JsonObject


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Say how large, and where the picture goes."""
    parser.add_argument(
        "--passages", type=int, action="append", metavar="N", help="size of the corpus; may be repeated"
    )
    parser.add_argument("--questions", type=int, default=60, metavar="N", help="questions a strategy is asked (60)")
    parser.add_argument("--keep", action="store_true", help="keep the loaded corpus: the next run loads nothing")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="write a picture of the medians (PNG)")
    parser.add_argument(
        "--no-trade", action="store_true", help="leave out the measurement of index size against quality"
    )
    parser.add_argument(
        "--no-mcp", action="store_true", help="leave out the measurement of the time that MCP adds to a search"
    )


def run(arguments: argparse.Namespace, out: Out) -> int:
    """Measure and print; takes about ten minutes at 100,000 passages. A load that was stopped goes on next time."""
    check_extra("eval")
    from evals.bench.figures import plot
    from evals.bench.measurement import SIZES, run_bench
    from workbench.settings import load_settings

    sizes = arguments.passages or list(SIZES)
    for name, least, value in (("--passages", 100, min(sizes)), ("--questions", 1, arguments.questions)):
        if value < least:
            raise InvalidInput(f"{name} cannot be {value}; use a whole number of at least {least}.")
    home, questions = load_settings().home, arguments.questions
    trade, keep = not arguments.no_trade, arguments.keep
    result = run_bench(home, sizes, say=out.message, questions=questions, with_trade=trade, keep=keep)
    if not arguments.no_mcp:
        out.message("measuring the time that MCP adds")
        result["mcp_overhead"] = _overhead(home)
    if arguments.plot:
        plot(result, arguments.plot)
    out.show(result, lambda console: _print(console, result))
    return 0


def _overhead(home: Path) -> JsonObject:
    """Ask the sample's questions over MCP and in Python, in turn, on the bench's own database."""
    import json

    from evals.bench.loading import open_bench
    from mcp_app.overhead import measure
    from workbench.sample import questions_dir
    from workbench.services.sample_corpus import load_sample

    lines = (questions_dir() / "queries.jsonl").read_text(encoding="utf-8").splitlines()
    with open_bench(home) as workbench:
        load_sample(workbench.documents)
        return measure(workbench, [json.loads(line)["text"] for line in lines[:30]])


def _print(console: Console, result: Figures) -> None:
    from evals.bench.figures import table

    console.print(table(result), markup=False, highlight=False, soft_wrap=True)

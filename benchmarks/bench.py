"""The command line of the benchmark: speed compared with bare baselines."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.errors import InvalidInput
from workbench.runtime import check_extra

if TYPE_CHECKING:
    from rich.console import Console

    from benchmarks.figures import Figures
    from workbench.cli.output import Output
    from workbench.types import JsonObject


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("--passages", type=int, action="append", metavar="N", help="size of the corpus; repeatable")
    parser.add_argument("--questions", type=int, default=60, metavar="N", help="questions per strategy (default: 60)")
    parser.add_argument("--keep", action="store_true", help="keep the corpus for the next run")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="write a chart of the medians (PNG)")
    parser.add_argument(
        "--walks",
        action="store_true",
        help="also measure recall and time of the graph by ef_search",
    )
    parser.add_argument(
        "--sizing", type=Path, nargs="+", metavar="FILE",
        help="only print estimates for larger corpora from files written by 'python -m benchmarks --json'",
    )  # fmt: skip
    parser.add_argument("--no-trade", action="store_true", help="skip the comparison of index size and quality")
    parser.add_argument("--no-mcp", action="store_true", help="skip the overhead of MCP")


def run(arguments: argparse.Namespace, out: Output) -> int:
    """Measure and print; takes about ten minutes for 100,000 passages. The next run resumes an interrupted load."""
    check_extra("eval")
    if arguments.sizing:
        return _print_sizing(arguments.sizing, out)
    from benchmarks.figures import plot_medians
    from benchmarks.measurement import CORPUS_SIZES, run_bench
    from workbench.settings import load_settings

    sizes = arguments.passages or list(CORPUS_SIZES)
    for name, least, value in (("--passages", 100, min(sizes)), ("--questions", 1, arguments.questions)):
        if value < least:
            raise InvalidInput(f"Invalid {name} {value}: use a whole number of at least {least}.")
    home, questions = load_settings().home, arguments.questions
    trade, keep, walks = not arguments.no_trade, arguments.keep, arguments.walks
    result = run_bench(home, sizes, say=out.message, questions=questions, with_trade=trade, keep=keep, with_walks=walks)
    if not arguments.no_mcp:
        out.message("measuring the overhead of MCP")
        result["mcp_overhead"] = _measure_overhead(home)
    if arguments.plot:
        plot_medians(result, arguments.plot)
    out.show(result, lambda console: _print_figures(console, result))
    return 0


def _print_sizing(files: Sequence[Path], out: Output) -> int:
    """Print the sizing table from files of earlier runs."""
    from benchmarks.sizing import estimate_sizes, format_sizes, read_figures

    rows = estimate_sizes([read_figures(file) for file in files])
    out.show(
        [row.to_dict() for row in rows],
        lambda console: console.print(format_sizes(rows), markup=False, highlight=False, soft_wrap=True),
    )
    return 0


def _measure_overhead(home: Path) -> JsonObject:
    """Ask the sample's questions over MCP and in Python, alternating, on the benchmark's database."""
    import json

    from benchmarks.loading import open_bench
    from benchmarks.overhead import measure_overhead
    from workbench.sample import questions_dir
    from workbench.services.sample_corpus import load_sample

    lines = (questions_dir() / "queries.jsonl").read_text(encoding="utf-8").splitlines()
    with open_bench(home) as wb:
        load_sample(wb.documents)
        return measure_overhead(wb, [json.loads(line)["text"] for line in lines[:30]])


def _print_figures(console: Console, result: Figures) -> None:
    from benchmarks.figures import format_table

    console.print(format_table(result), markup=False, highlight=False, soft_wrap=True)

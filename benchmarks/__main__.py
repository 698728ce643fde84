"""``python -m benchmarks``, which ``make bench`` runs."""

from __future__ import annotations

import sys

from benchmarks import bench
from workbench.cli.main import Command, catch_errors, parse_and_run

COMMAND = Command("Measure the speed of searches against plain SQL and other libraries", bench.add_arguments, bench.run)


def main() -> int:
    """Run the benchmark with the errors and exit codes of the ``workbench`` command."""
    words = sys.argv[1:]
    as_json = "--json" in words
    return catch_errors(
        lambda: parse_and_run(COMMAND, "python -m benchmarks", words, as_json),
        as_json=as_json,
        debug="--debug" in words,
    )


if __name__ == "__main__":
    sys.exit(main())

"""``workbench import``: read an exported file into an empty workbench."""

from __future__ import annotations

import argparse

from workbench.cli.output import Output
from workbench.cli.session import open_workbench
from workbench.formatting import count_text


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("file", metavar="FILE", help="a file written by 'workbench export'")


def run(arguments: argparse.Namespace, out: Output) -> int:
    """Import without embedding again; if it fails, nothing is changed."""
    with open_workbench() as wb, out.progress("Import") as show:
        report = wb.backups.read(arguments.file, on_progress=show)
    sentence = (
        f"Restored {count_text(report.documents, 'document')} in {count_text(report.sources, 'source')}, "
        f"including test sets ({report.rows:,} rows)."
    )
    return out.sentence(report, sentence)

"""``workbench export``: write everything into one file."""

from __future__ import annotations

import argparse

from workbench.cli.output import Output
from workbench.cli.session import open_workbench
from workbench.formatting import count_text, size_text


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("file", metavar="FILE", help="file to write, such as backup.zip")
    parser.add_argument("--force", action="store_true", help="replace an existing file")


def run(arguments: argparse.Namespace, out: Output) -> int:
    """Export documents, passages with vectors, projects, judgments and everything else."""
    with open_workbench() as wb, out.progress("Export") as show:
        report = wb.backups.write(arguments.file, replace=arguments.force, on_progress=show)
    sentence = (
        f"Wrote {count_text(report.documents, 'document')}, including test sets ({report.rows:,} rows, "
        f"{size_text(report.bytes)}), to {report.path}"
    )
    return out.sentence(report, sentence)

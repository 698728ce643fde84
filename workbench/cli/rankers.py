"""``workbench rankers``: the trained weights of the strategy ``learned``."""

from __future__ import annotations

import argparse
from pathlib import Path

from workbench.cli.options import Subcommands, add_yes_option, confirm, run_subcommand
from workbench.cli.output import Output
from workbench.cli.session import open_workbench
from workbench.errors import Conflict, NotFound
from workbench.types import Ranker

run = run_subcommand


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the subcommands."""
    verbs = Subcommands(parser)
    verbs.add("list", "List rankers with their training data.", _run_list)
    verbs.add("show", "Show one ranker with its weights.", _run_show).add_argument("name", metavar="NAME")
    export = verbs.add("export", "Write a ranker as a JSON file.", _run_export)
    export.add_argument("name", metavar="NAME")
    export.add_argument("file", metavar="FILE", help="file to write, such as ranker.json")
    export.add_argument("--force", action="store_true", help="replace an existing file")
    restore = verbs.add("import", "Store a ranker from a JSON file.", _run_import)
    restore.add_argument("file", metavar="FILE")
    restore.add_argument("--name", metavar="NAME", help="name to store it under, instead of the one in the file")
    delete = verbs.add("delete", "Delete a ranker.", _run_delete)
    delete.add_argument("name", metavar="NAME")
    add_yes_option(delete)


def _run_list(arguments: argparse.Namespace, out: Output) -> int:
    with open_workbench() as wb:
        rankers = wb.rankers.list()
    rows = [
        (ranker.name, ranker.trained_on, ranker.questions, ranker.index, _format_figure(ranker, "learned"),
         _format_figure(ranker, "rerank"), ranker.created_at.date().isoformat() if ranker.created_at else "")
        for ranker in rankers
    ]  # fmt: skip
    columns = ("Name", "Trained on", "Questions", "Index", "nDCG@10", "Rerank", "Created")
    value = {"rankers": rankers, "total": len(rankers)}
    return out.table(value, columns, rows)


def _run_show(arguments: argparse.Namespace, out: Output) -> int:
    with open_workbench() as wb:
        ranker = wb.rankers.get(arguments.name)
    return out.fields(ranker, ranker.to_dict())


def _run_export(arguments: argparse.Namespace, out: Output) -> int:
    target = Path(arguments.file)
    if target.exists() and not arguments.force:
        raise Conflict(f"The file {str(target)!r} already exists; use --force to replace it.")
    with open_workbench() as wb:
        text = wb.rankers.export(arguments.name)
    target.write_text(text, encoding="utf-8")
    value = {"ranker": arguments.name, "path": str(target)}
    return out.sentence(value, f"Wrote the ranker {arguments.name!r} to {target}")


def _run_import(arguments: argparse.Namespace, out: Output) -> int:
    source = Path(arguments.file)
    if not source.is_file():
        raise NotFound("file", str(source), "Use a file written by 'workbench rankers export'.")
    with open_workbench() as wb:
        ranker = wb.rankers.restore(source.read_text(encoding="utf-8", errors="replace"), arguments.name)
    return out.fields(ranker, ranker.to_dict())


def _run_delete(arguments: argparse.Namespace, out: Output) -> int:
    with open_workbench() as wb:
        ranker = wb.rankers.get(arguments.name)
        confirm(arguments, out, f"The ranker {ranker.name!r} was trained on {ranker.questions:,} questions.")
        wb.rankers.delete(ranker.name)
    return out.sentence(ranker, f"Deleted the ranker {ranker.name!r}.")


def _format_figure(ranker: Ranker, name: str) -> str:
    return f"{ranker.figures[name]:.4f}" if name in ranker.figures else ""

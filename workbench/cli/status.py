"""``workbench status``: what there is."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from workbench.cli.opening import opened
from workbench.cli.output import Out, print_fields, print_table, size_text

if TYPE_CHECKING:
    from rich.console import Console


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """It has none."""


def run(arguments: argparse.Namespace, out: Out) -> int:
    """Print counts, indexes, sizes and versions."""
    with opened() as workbench:
        status = workbench.status()
    out.show(status, lambda console: _print(console, status))
    return 0


def _print(console: Console, status: dict[str, Any]) -> None:
    database = status["database"]
    kind = "embedded" if database["embedded"] else "by URL"
    print_fields(
        console,
        {
            "version": status["version"],
            "home": status["home"],
            "database": f"{database['postgres']} with pgvector {database['pgvector']}, {kind}",
            "on disk": f"{size_text(database['bytes'])}; {size_text(status['disk_free_bytes'])} free",
            **status["corpus"],
            "python": status["python"],
            **status["packages"],
        },
    )
    columns = ("Index", "Chunker", "Model", "Documents", "Passages", "On disk")
    rows = [
        (
            f"{index['name']} (default)" if index["is_default"] else index["name"],
            index["chunker"],
            index["embedding_model"],
            index["documents_count"],
            index["passages_count"],
            size_text(index["bytes"]),
        )
        for index in status["indexes"]
    ]
    print_table(console, columns, rows, "There are no indexes.")

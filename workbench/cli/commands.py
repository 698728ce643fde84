"""Every command: its name, the module that serves it, and its line in the help.

A module has ``add_arguments(parser)`` and ``run(arguments, out) -> int``. All of them are imported for any command, so
each keeps its imports of engines and of the database inside the functions that need them; a test watches that.
"""

from __future__ import annotations

import argparse
from typing import Protocol

from workbench.cli import (
    answers,
    app,
    archives,
    articles,
    bench,
    compare,
    connect,
    crawl,
    doctor,
    documents,
    export,
    indexes,
    ingest,
    jobs,
    learn,
    mcp,
    notebooks,
    one_address,
    projects,
    rankers,
    restore,
    search,
    sources,
    status,
    strategies,
    worker,
    workspace,
)
from workbench.cli import eval as evaluate
from workbench.cli.output import Out


class CommandModule(Protocol):
    """A module that serves one command."""

    def add_arguments(self, parser: argparse.ArgumentParser, /) -> None:
        """Declare what the command takes."""

    def run(self, arguments: argparse.Namespace, out: Out, /) -> int:
        """Do it and return the exit code."""
        ...


COMMANDS: dict[str, tuple[CommandModule, str]] = {
    "ingest": (ingest, "Read files and folders into a source"),
    "search": (search, "Find the passages that answer a question"),
    "compare": (compare, "Answer a question by several strategies, side by side"),
    "ask": (answers, "Answer a question with numbered citations"),
    "sources": (sources, "List, show, create, update or delete sources"),
    "documents": (documents, "List, show, create, update or delete documents"),
    "projects": (projects, "List, show, create, update or delete projects and their folders"),
    "indexes": (indexes, "Make, build, switch and drop indexes over the same documents"),
    "strategies": (strategies, "List the ways to retrieve, with their parameters"),
    "eval": (evaluate, "Measure strategies on a test set, and hold them against a baseline"),
    "learn": (learn, "Train the strategy learned on judged questions"),
    "rankers": (rankers, "List, show, export, import or delete trained rankers"),
    "bench": (bench, "Measure the speed of searches against plain SQL and other libraries"),
    "crawl": (crawl, "Crawl a website into a source, or show what a crawl would fetch"),
    "jobs": (jobs, "List long work, and cancel, resume or retry it"),
    "worker": (worker, "Run jobs, here or on any machine that reaches the database"),
    "articles": (articles, "List, read and search the articles on disk"),
    "workspace": (workspace, "Embed conversations on disk, and search them"),
    "archives": (archives, "Search the archives, and follow citations"),
    "app": (app, "Serve the app in the browser"),
    "serve": (one_address, "Serve the app, MCP and the HTTP API behind one address"),
    "mcp": (mcp, "Serve the tools to agents over MCP"),
    "notebooks": (notebooks, "Copy the notebooks that come with it into a folder of your own"),
    "connect": (connect, "Let a desktop client start this workbench, or say which client has called"),
    "status": (status, "Show counts, sizes and versions"),
    "doctor": (doctor, "Try everything a search depends on and say how it went"),
    "export": (export, "Export everything into one file"),
    "import": (restore, "Read an exported file into an empty workbench"),
}

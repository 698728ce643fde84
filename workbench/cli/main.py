"""The command line: parses arguments, runs a command and returns its exit code.

0 success, 1 failure, 2 usage error, 130 interrupted.
"""

from __future__ import annotations

import argparse
import difflib
import errno
import functools
import json
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from typing import NamedTuple, Never

from workbench.cli import (
    documents,
    evaluation,
    files,
    folders,
    indexes,
    jobs,
    search,
    servers,
    sources,
    status,
    strategies,
)
from workbench.cli.options import Parser, add_common, run_subcommand
from workbench.cli.output import Output, discard_output
from workbench.errors import Cancelled, InvalidInput, NotFound, ScopeError, WorkbenchError
from workbench.retrieval.strategies import STRATEGIES
from workbench.runtime import exit_now, find_missing_extra, install_signal_handlers, limit_blas_threads, relax_gc

# Commands with their modules and help


class Command(NamedTuple):
    """A row of the table of commands."""

    purpose: str
    declare: Callable[[argparse.ArgumentParser], None]  # declares the arguments
    run: Callable[[argparse.Namespace, Output], int] = run_subcommand  # returns the exit code


COMMANDS: dict[str, Command] = {
    "ingest": Command("Read files and folders into a source", documents.declare_ingest, documents.run_ingest),
    "search": Command("Find the passages that answer a question", search.declare_search, search.run_search),
    "compare": Command(
        "Run several strategies on one question, side by side", search.declare_compare, search.run_compare
    ),
    "ask": Command("Answer a question with numbered citations", search.declare_ask, search.run_ask),
    "sources": Command("List, show, create, update or delete sources", sources.declare_sources),
    "documents": Command("List, show, create, update or delete documents", documents.declare_documents),
    "projects": Command("List, show, create, update or delete projects and their folders", sources.declare_projects),
    "indexes": Command("List, create, build, switch or delete indexes", indexes.declare_indexes),
    "strategies": Command("List strategies with their parameters, and promote one", strategies.declare_strategies),
    "eval": Command(
        "Measure strategies on a test set, and compare with a baseline", evaluation.declare_eval, evaluation.run_eval
    ),
    "experiments": Command(
        "List, show or resume experiments, and save notes, tags and views", evaluation.declare_experiments
    ),
    "judgments": Command(
        "Raters of a test set: agreement, disagreements, import and export", evaluation.declare_judgments
    ),
    "apply": Command(
        "Apply a configuration file: models, indexes, strategies and test sets",
        evaluation.declare_apply,
        evaluation.run_apply,
    ),
    "check": Command(
        "Run the experiments of a configuration file; fail if quality drops",
        evaluation.declare_check,
        evaluation.run_check,
    ),
    "learn": Command("Train a ranker on judged questions", evaluation.declare_learn, evaluation.run_learn),
    "rankers": Command("List, show, export, import or delete trained rankers", strategies.declare_rankers),
    "crawl": Command("Crawl a website into a source, or preview a crawl", jobs.declare_crawl, jobs.run_crawl),
    "jobs": Command("List, show, cancel, resume or retry jobs", jobs.declare_jobs),
    "worker": Command("Run jobs, on any machine that reaches the database", jobs.declare_worker, jobs.run_worker),
    "articles": Command("List, read and search the articles on disk", folders.declare_articles),
    "workspace": Command("Embed conversations on disk, and search them", folders.declare_workspace),
    "archives": Command("Search the archives, and follow citations", folders.declare_archives),
    "app": Command("Serve the app in the browser", servers.declare_app, servers.run_app),
    "serve": Command("Serve the app, MCP and the HTTP API on one port", servers.declare_serve, servers.run_serve),
    "mcp": Command("Serve the tools to agents over MCP", servers.declare_mcp, servers.run_mcp),
    "notebooks": Command("Copy the notebooks into a folder", files.declare_notebooks, files.run_notebooks),
    "connect": Command(
        "Configure an MCP client, or list clients that have called", servers.declare_connect, servers.run_connect
    ),
    "settings": Command(
        "List settings with their origins, change them in .env, or test a model", status.declare_settings
    ),
    "status": Command("Show counts, sizes and versions", status.declare_status, status.run_status),
    "doctor": Command("Check everything that a search depends on", status.declare_doctor, status.run_doctor),
    "export": Command("Export everything into one file", files.declare_export, files.run_export),
    "import": Command("Read an exported file into an empty workbench", files.declare_import, files.run_import),
}


SUCCESS, FAILURE, USAGE_ERROR, INTERRUPTED_EXIT_CODE = 0, 1, 2, 130
_OUTPUT_ERRNOS = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EBADF)
_USAGE_ERRORS = (InvalidInput, NotFound, ScopeError)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; never raises. Without ``argv``, end the process."""
    if argv is not None:
        return run_command(argv)
    _replace_closed_streams()
    _set_utf8()
    install_signal_handlers()
    relax_gc()
    limit_blas_threads()
    code = run_command(sys.argv[1:])
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        discard_output()
    except OSError as error:
        discard_output()
        code = code or _report(_describe_write_error(error), FAILURE, as_json=False, debug=False)
    return exit_now(code)  # a normal interpreter shutdown takes half a second


def _read_own_strategies() -> dict[str, Never]:
    """Register strategies from packages and ``workbench.toml``, for a command that has not opened the workbench."""
    from workbench.settings import load_settings
    from workbench.workbench import declare_strategies

    declare_strategies(load_settings())
    return {}


def run_command(words: Sequence[str]) -> int:
    """Run one command and return its exit code; errors become messages."""
    STRATEGIES.declare("the settings", _read_own_strategies)
    options = list(words[: words.index("--")]) if "--" in words else words  # those after it are not options
    as_json = "--json" in options
    return catch_errors(lambda: _dispatch(words, as_json=as_json), as_json=as_json, debug="--debug" in options)


def catch_errors(work: Callable[[], int], *, as_json: bool, debug: bool) -> int:
    """Run ``work`` and return the exit code; an error becomes a message and a code."""
    report = functools.partial(_report, as_json=as_json, debug=debug)
    try:
        return work()
    except BrokenPipeError:  # the reader of the output has closed it
        discard_output()
        return SUCCESS
    except SystemExit:  # the same, raised by rich after it closed stdout
        return SUCCESS
    except KeyboardInterrupt:
        return report("Interrupted; what was finished is kept.", INTERRUPTED_EXIT_CODE)
    except Cancelled as error:
        return report(str(error), INTERRUPTED_EXIT_CODE)
    except _USAGE_ERRORS as error:
        return report(str(error), USAGE_ERROR)
    except WorkbenchError as error:
        return report(str(error), FAILURE)
    except ModuleNotFoundError as error:
        return report(str(find_missing_extra(error) or describe_unexpected(error)), FAILURE)
    except OSError as error:
        is_disk = error.errno in _OUTPUT_ERRNOS
        if error.filename is None:
            return report(_describe_write_error(error) if is_disk else describe_unexpected(error), FAILURE)
        path = f"{error.filename!r} ({error.strerror})"  # such as a name that is too long
        if is_disk:
            return report(f"Cannot use {path}; free some space, or check the disk.", FAILURE)
        return report(f"Cannot use {path}; correct the path or its permissions.", USAGE_ERROR)
    except Exception as error:  # noqa: BLE001 - the last boundary: a message, with --debug a traceback
        return report(describe_unexpected(error), FAILURE)


def describe_unexpected(error: Exception) -> str:
    """Return the message for an unexpected error."""
    first = (str(error).strip().splitlines() or [""])[0]
    return f"Unexpected error ({type(error).__name__}: {first}); run it again with --debug for a traceback."


def _dispatch(words: Sequence[str], *, as_json: bool) -> int:
    _check_text(words)
    leading = []
    rest = list(words)
    while rest and rest[0].startswith("-"):
        leading.append(rest.pop(0))
    unknown = [flag for flag in leading if flag not in ("-h", "--help", "--version", "--json", "--debug")]
    if unknown:
        raise InvalidInput(f"Unknown option {unknown[0]!r} before the command; see 'workbench --help'.")
    if "--version" in leading:
        return _print_version(as_json)
    if "-h" in leading or "--help" in leading:
        print(make_help())
        return SUCCESS
    if not rest:
        if as_json:
            raise InvalidInput("No command given; see 'workbench --help'.")
        print(make_help())
        return USAGE_ERROR
    name, *others = rest
    if name not in COMMANDS:
        near = difflib.get_close_matches(name, COMMANDS, n=1)
        hint = f"did you mean {near[0]!r}?" if near else "see 'workbench --help'."
        raise InvalidInput(f"Unknown command {name!r}; {hint}")
    return parse_and_run(COMMANDS[name], f"workbench {name}", others, as_json)


def parse_and_run(command: Command, program: str, words: Sequence[str], as_json: bool) -> int:
    """Parse the arguments of a command, run it and return its exit code."""
    parser = Parser(prog=program, description=f"{command.purpose}.")
    add_common(parser)
    command.declare(parser)
    try:
        arguments = parser.parse_args(list(words))
    except SystemExit:  # after --help
        return SUCCESS
    return command.run(arguments, Output(as_json=as_json))


def make_help() -> str:
    """Return the text of ``workbench --help``."""
    lines = [f"  {name:<11} {purpose}" for name, (purpose, *_) in COMMANDS.items()]
    return "\n".join(
        [
            "usage: workbench COMMAND [ARGUMENT]... [--json] [--debug]",
            "",
            "One corpus, many ways to retrieve from it, and measurements of which is best.",
            "",
            *lines,
            "",
            "Every command accepts --json (one JSON document on stdout) and --help.",
            "Settings are read from WORKBENCH_* variables and .env; see .env.example.",
        ]
    )


def _print_version(as_json: bool) -> int:
    from workbench import __version__

    Output(as_json=as_json).show({"version": __version__}, lambda console: console.print(f"workbench {__version__}"))
    return SUCCESS


def _report(sentence: str, code: int, *, as_json: bool, debug: bool) -> int:
    out = Output(as_json=as_json)
    if debug:
        traceback.print_exc()
    out.message(sentence)
    if as_json:
        try:
            print(json.dumps({"error": sentence, "exit_code": code}, ensure_ascii=False), flush=True)
        except OSError:  # closed, or the disk is full: the exit code remains
            discard_output()
    return code


def _describe_write_error(error: OSError) -> str:
    return f"Cannot write the output ({error.strerror}); redirect it elsewhere."


def _check_text(words: Sequence[str]) -> None:
    for word in words:
        try:
            word.encode("utf-8")
        except UnicodeEncodeError:
            printable_word = word.encode("utf-8", "backslashreplace").decode()
            raise InvalidInput(
                f"The argument {printable_word!r} is not valid UTF-8; rename the file, or name its folder."
            ) from None


def _replace_closed_streams() -> None:
    """Open the null device for closed standard streams (``2>&-``); otherwise a socket could get their descriptor."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest free number, which is this one
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, "r" if number == 0 else "w", encoding="utf-8", closefd=False))  # noqa: SIM115 - open until the process ends


def _set_utf8() -> None:
    """Write UTF-8 regardless of the locale: JSON is UTF-8, and passages may contain any character."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")  # pyright: ignore[reportAttributeAccessIssue]

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
from typing import Never, Protocol

from workbench.cli import (
    app,
    archives,
    articles,
    ask,
    compare,
    configuration,
    connect,
    crawl,
    doctor,
    documents,
    export,
    import_,
    indexes,
    ingest,
    jobs,
    learn,
    mcp,
    notebooks,
    projects,
    rankers,
    search,
    serve,
    sources,
    status,
    strategies,
    worker,
    workspace,
)
from workbench.cli import eval as evaluate
from workbench.cli.options import Parser, add_common
from workbench.cli.output import Output, discard_output
from workbench.errors import Cancelled, InvalidInput, NotFound, ScopeError, WorkbenchError
from workbench.retrieval.strategies import STRATEGIES
from workbench.runtime import exit_now, find_missing_extra, install_signal_handlers, limit_blas_threads, relax_gc

# Commands with their modules and help


class CommandModule(Protocol):
    """A module that implements a command."""

    def add_arguments(self, parser: argparse.ArgumentParser, /) -> None:
        """Declare the arguments."""

    def run(self, arguments: argparse.Namespace, out: Output, /) -> int:
        """Run the command and return the exit code."""
        ...


COMMANDS: dict[str, tuple[CommandModule, str]] = {
    "ingest": (ingest, "Read files and folders into a source"),
    "search": (search, "Find the passages that answer a question"),
    "compare": (compare, "Run several strategies on one question, side by side"),
    "ask": (ask, "Answer a question with numbered citations"),
    "sources": (sources, "List, show, create, update or delete sources"),
    "documents": (documents, "List, show, create, update or delete documents"),
    "projects": (projects, "List, show, create, update or delete projects and their folders"),
    "indexes": (indexes, "List, create, build, switch or delete indexes"),
    "strategies": (strategies, "List strategies with their parameters, and promote one"),
    "eval": (evaluate, "Measure strategies on a test set, and compare with a baseline"),
    "apply": (configuration.APPLY, "Apply a configuration file: models, indexes, strategies and test sets"),
    "check": (configuration.CHECK, "Run the experiments of a configuration file; fail if quality drops"),
    "learn": (learn, "Train a ranker on judged questions"),
    "rankers": (rankers, "List, show, export, import or delete trained rankers"),
    "crawl": (crawl, "Crawl a website into a source, or preview a crawl"),
    "jobs": (jobs, "List, show, cancel, resume or retry jobs"),
    "worker": (worker, "Run jobs, on any machine that reaches the database"),
    "articles": (articles, "List, read and search the articles on disk"),
    "workspace": (workspace, "Embed conversations on disk, and search them"),
    "archives": (archives, "Search the archives, and follow citations"),
    "app": (app, "Serve the app in the browser"),
    "serve": (serve, "Serve the app, MCP and the HTTP API on one port"),
    "mcp": (mcp, "Serve the tools to agents over MCP"),
    "notebooks": (notebooks, "Copy the notebooks into a folder"),
    "connect": (connect, "Configure an MCP client, or list clients that have called"),
    "status": (status, "Show counts, sizes and versions"),
    "doctor": (doctor, "Check everything that a search depends on"),
    "export": (export, "Export everything into one file"),
    "import": (import_, "Read an exported file into an empty workbench"),
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
    options = _list_options(words)
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
        return report("Interrupted; documents stored so far are kept.", INTERRUPTED_EXIT_CODE)
    except Cancelled as error:
        return report(str(error), INTERRUPTED_EXIT_CODE)
    except _USAGE_ERRORS as error:
        return report(str(error), USAGE_ERROR)
    except WorkbenchError as error:
        return report(str(error), FAILURE)
    except ModuleNotFoundError as error:
        return report(str(find_missing_extra(error) or describe_unexpected(error)), FAILURE)
    except OSError as error:
        if error.filename is None and error.errno in _OUTPUT_ERRNOS:
            return report(_describe_write_error(error), FAILURE)
        return report(describe_unexpected(error), FAILURE)
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
    return _run_command(rest[0], rest[1:], as_json)


def _run_command(name: str, words: Sequence[str], as_json: bool) -> int:
    if name not in COMMANDS:
        near = difflib.get_close_matches(name, COMMANDS, n=1)
        hint = f"did you mean {near[0]!r}?" if near else "see 'workbench --help'."
        raise InvalidInput(f"Unknown command {name!r}; {hint}")
    module, purpose = COMMANDS[name]
    return run_module(module, f"workbench {name}", purpose, words, as_json)


def run_module(module: CommandModule, program: str, purpose: str, words: Sequence[str], as_json: bool) -> int:
    """Parse the arguments of a command, run it and return its exit code."""
    parser = Parser(prog=program, description=f"{purpose}.")
    add_common(parser)
    module.add_arguments(parser)
    try:
        arguments = parser.parse_args(list(words))
    except SystemExit:  # after --help
        return SUCCESS
    return module.run(arguments, Output(as_json=as_json))


def make_help() -> str:
    """Return the text of ``workbench --help``."""
    lines = [f"  {name:<11} {purpose}" for name, (_, purpose) in COMMANDS.items()]
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


def _list_options(words: Sequence[str]) -> list[str]:
    """Return the arguments before ``--``, since those after it are not options."""
    return list(words[: words.index("--")]) if "--" in words else list(words)


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
            raise InvalidInput(f"The argument {printable_word!r} is not valid UTF-8.") from None


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

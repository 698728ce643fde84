"""The entry point: help, mistakes, exit codes, and how little they load."""

from __future__ import annotations

import errno
import os
import shlex
import subprocess
import sys
from collections.abc import Callable

import pytest
from commands import COMMAND, Ran

from workbench.cli import main
from workbench.cli.main import COMMANDS, catch_errors

HEAVY = (
    "llama_index",
    "psycopg",
    "pydantic",
    "numpy",
    "pandas",
    "rich",
    "streamlit",
    "mcp",
    "onnxruntime",
    "sqlalchemy",
)


def list_imports(*words: str) -> set[str]:
    """Return the heavy packages that a command line imports, run as a separate process."""
    script = (
        "import sys; from workbench.cli import main; main(sys.argv[1:]); "
        f"print('HEAVY', *[name for name in {HEAVY!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script, *words], capture_output=True, text=True, timeout=60)
    return set(done.stdout.rpartition("HEAVY")[2].split())


def test_help_lists_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    shown = capsys.readouterr().out
    assert all(f"  {name} " in shown and purpose in shown for name, (purpose, *_) in COMMANDS.items())


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([command, "--help"]) == 0
    shown = capsys.readouterr().out
    assert f"usage: workbench {command}" in shown
    assert COMMANDS[command].purpose in " ".join(shown.split())


@pytest.mark.parametrize(
    "words", [("--help",), ("search",), ("sources", "list", "--nonsense"), ("strategies", "show"), ("nope",)]
)
def test_help_and_mistakes_load_nothing_heavy(words: tuple[str, ...]) -> None:
    assert list_imports(*words) == set()


def test_a_search_loads_no_reader_of_files() -> None:
    script = (
        "import sys, workbench.workbench; from workbench.services.corpus import import_framework; import_framework(); "
        "print(*sorted(name for name in sys.modules if name.startswith('workbench.ingestion.readers')))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.split() == []


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ((), ""),
        (("--json",), "No command given"),
        (("serach", "x"), "did you mean 'search'?"),
        (("search",), "arguments are required: QUERY; see 'workbench search --help'."),
        (("search", "x", "--nonsense"), "nrecognized arguments: --nonsense"),
        (("--nonsense", "search", "x"), "Unknown option '--nonsense'"),
        (("search", "x", "--strategy", "magic"), "use one of 'vector'"),
        (("search", "x", "--strategy", "hybrid", "--set", "vector_weight=2"), "from 0 to 1"),
        (("search", "x", "--set", "vector_weight"), "expected name=value"),
        (("search", "x", "--limit", "many"), "invalid int value: 'many'"),
        (("search", "x", "--since", "yesterday"), "YYYY-MM-DD"),
        (("search", "x", "--scope", "mine"), "choose from"),
        (("compare", "x", "--strategies", ","), "--strategies is empty"),
        (("compare", "x", "--set", "rerank.fusion=rrf", "--strategies", "vector"), "is not compared"),
        (("compare", "x", "--set", "fusion=rrf", "--strategies", "vector"), "None of the strategies"),
        (("sources",), "VERB"),
        (("sources", "burn"), "invalid choice"),
        (("search", "caf\udce9"), "not valid UTF-8"),
    ],
)
def test_a_mistake_is_one_sentence_and_exit_code_2(
    words: tuple[str, ...], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    said = capsys.readouterr()
    assert sentence in said.err
    assert len(said.err.splitlines()) <= 1
    assert "Traceback" not in said.err


def test_with_json_a_mistake_is_a_document_too(workbench: Callable[..., Ran]) -> None:
    ran = workbench("search", "x", "--strategy", "magic", "--json")
    assert ran.code == 2
    assert ran.json == {"error": ran.err.strip(), "exit_code": 2}


def test_debug_shows_where_it_failed(workbench: Callable[..., Ran]) -> None:
    ran = workbench("sources", "show", "nobody", "--debug")
    assert ran.code == 2
    assert "Traceback" in ran.err
    assert "Source not found: nobody." in ran.err


def test_flags_may_be_before_the_command(workbench: Callable[..., Ran]) -> None:
    assert workbench("--json", "strategies", "list").json == workbench("strategies", "list", "--json").json


def test_a_reader_that_leaves_early_is_no_error(environment: dict[str, str]) -> None:
    with subprocess.Popen([*COMMAND, "strategies", "list"], stdout=-1, stderr=-1, env=environment) as running:
        assert running.stdout is not None and running.stderr is not None
        running.stdout.close()
        assert (running.stderr.read(), running.wait(timeout=60)) == (b"", 0)


def test_a_database_that_is_down_is_a_sentence_and_exit_code_1(process: Callable[..., Ran]) -> None:
    ran = process("sources", "list", WORKBENCH_DATABASE_URL="postgresql://nobody@127.0.0.1:1/none")
    assert ran.code == 1
    assert ran.err.strip() == (
        "The database at 127.0.0.1:1/none is unreachable; start it or correct WORKBENCH_DATABASE_URL."
    )


def test_a_wrong_setting_is_named(process: Callable[..., Ran]) -> None:
    ran = process("status", WORKBENCH_POOL_SIZE="none")
    assert ran.code == 1
    assert "WORKBENCH_POOL_SIZE is not valid" in ran.err


@pytest.mark.parametrize(
    ("words", "code", "closed"),
    [
        ("strategies list --json", 0, "2>&-"),
        ("strategies list --json", 0, ">&-"),
        ("strategies list --json", 0, "| head -1"),
        ("strategies list --json", 0, "| true"),
        ("--help", 0, ">&- 2>&-"),
        ("--help", 0, "| true"),
        ("nope", 2, "2>&-"),
        ("nope", 2, ">&- 2>&-"),
        ("nope", 2, "2>/dev/full"),
        ("nope", 2, "2> >(true)"),
        ("status", 1, "2>&-"),
        ("status", 1, "2>/dev/full"),
        ("status", 1, "2> >(true)"),
    ],
)
def test_the_exit_code_does_not_depend_on_who_reads_the_output(words: str, code: int, closed: str) -> None:
    script = f"set -o pipefail; {' '.join(map(shlex.quote, COMMAND))} {words} {closed}"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=60)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("words", ["strategies list --json", "--help", "search --help", "sources list --help"])
def test_output_that_a_full_disk_cannot_take_is_a_sentence_and_exit_code_1(words: str) -> None:
    script = f"{' '.join(map(shlex.quote, COMMAND))} {words} > /dev/full"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr.strip()) == (
        1,
        "Cannot write the output (No space left on device); redirect it elsewhere.",
    )


@pytest.mark.parametrize(("number", "code"), [(errno.ENOSPC, 1), (errno.EIO, 1), (errno.EACCES, 2)])
def test_a_file_on_a_full_or_failing_disk_is_no_mistake_of_the_command(
    number: int, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    def work() -> int:
        raise OSError(number, os.strerror(number), "notes.json")

    assert catch_errors(work, as_json=False, debug=False) == code
    assert ("permissions" in capsys.readouterr().err) == (code == 2)

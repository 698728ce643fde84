"""The command as users run it: in this process, or as a separate process, on the test's database."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from commands import COMMAND, Ran

from workbench.cli import main


@pytest.fixture(autouse=True)
def nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a command fail if it opens a database that the test did not set, instead of the user's own."""
    monkeypatch.setenv("WORKBENCH_DATABASE_URL", "postgresql://nobody@127.0.0.1:1/nowhere")


@pytest.fixture
def environment(
    nowhere: None, database_url: str, test_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[dict[str, str]]:
    """Point the command at the test's database, with the hash model and no .env."""
    variables = {
        "WORKBENCH_HOME": str(test_home),
        "WORKBENCH_DATABASE_URL": database_url,
        "WORKBENCH_EMBEDDING_MODEL": "hash",
    }
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    yield {**os.environ}


@pytest.fixture
def workbench(environment: dict[str, str], capsys: pytest.CaptureFixture[str]) -> Callable[..., Ran]:
    """``workbench("search", "cats", "--json")`` in this process."""

    def run(*words: str) -> Ran:
        capsys.readouterr()
        code = main(list(words))
        said = capsys.readouterr()
        return Ran(code, said.out, said.err)

    return run


@pytest.fixture
def process(environment: dict[str, str]) -> Callable[..., Ran]:
    """Run the same command as a separate process."""

    def run(*words: str, **changes: str) -> Ran:
        done = subprocess.run([*COMMAND, *words], capture_output=True, env=environment | changes, timeout=120)
        return Ran(done.returncode, done.stdout.decode(), done.stderr.decode())

    return run


@pytest.fixture
def animals(folder: Callable[..., Path]) -> Path:
    """Three small documents."""
    return folder(
        {
            "cats.md": "# Cats\n\n## Sounds\n\nCats purr when they are content.",
            "dogs.md": "# Dogs\n\nDogs bark at strangers. A dog guards the house.",
            "fish.txt": "Fish swim in schools and breathe through gills.",
        },
        name="animals",
    )

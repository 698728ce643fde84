"""Fetching the suite never fails the tests, never runs forever, and always reports its result."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conformance.fetch import HERE, fetch, installed

SCRIPT = HERE / "fetch.py"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of the script next to a package.json without dependencies."""
    (tmp_path / "fetch.py").write_bytes(SCRIPT.read_bytes())
    (tmp_path / "package.json").write_text(json.dumps({"name": "nothing", "private": True}))
    return tmp_path


def run(folder: Path, *options: str, path: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, folder / "fetch.py", *options]
    return subprocess.run(command, env={**os.environ, "PATH": path}, capture_output=True, text=True, check=False)


def npm_that(does: str, folder: Path) -> str:
    """Return a PATH on which npm is another program."""
    programs = folder / "bin"
    programs.mkdir()
    (programs / "npm").write_text(f"#!/bin/sh\n{does}\n")
    (programs / "npm").chmod(0o755)
    return f"{programs}:/usr/bin:/bin"


def test_without_npm_one_line_reports_it_and_only_a_required_fetch_fails(folder: Path) -> None:
    told = "The MCP conformance suite and Inspector are left out of the tests: there is no npm here\n"
    for options, code in (((), 0), (("--required",), 1)):
        done = run(folder, *options, path=str(folder))
        assert (done.returncode, done.stderr) == (code, told)


def test_npm_errors_are_reported_and_half_an_installation_is_removed(folder: Path) -> None:
    path = npm_that("mkdir node_modules; echo 'npm error code ENOTFOUND' >&2; exit 1", folder)
    done = run(folder, path=path)
    assert done.returncode == 0
    assert done.stderr.splitlines()[-1].endswith("left out of the tests: npm failed: code ENOTFOUND")
    assert not (folder / "node_modules").exists()


def test_a_fetch_that_takes_too_long_is_ended(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", npm_that("sleep 600", folder))
    assert fetch(folder, longest=0.2) == "npm was not done after 0.2 seconds"


def test_what_was_fetched_counts_until_the_list_changes(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", npm_that("mkdir -p node_modules", folder))
    assert not installed(folder)
    assert fetch(folder) == ""
    assert installed(folder)
    (folder / "package.json").write_text("{}")
    assert not installed(folder)

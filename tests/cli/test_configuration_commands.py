"""``workbench apply`` and ``workbench check``: the steps of the CI jobs in the docs, and exit codes."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.metadata import metadata
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml

from tests.evals.conftest import ASKED, TEXTS, lines

GUIDE = (Path(__file__).parents[2] / "docs" / "configuration.md").read_text(encoding="utf-8")

Shell = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def shell(database_url: str, tmp_path: Path) -> Iterator[Shell]:
    """Run a line in bash, in a repository with the guide's file and a test set."""
    root = tmp_path / "repository"
    (root / "tests" / "support").mkdir(parents=True)
    corpus = [{"_id": key, "title": title, "text": text} for key, (title, text) in TEXTS.items()]
    files = {
        "tests/support/corpus.jsonl": lines(corpus),
        "tests/support/queries.jsonl": lines([{"_id": key, "text": text} for key, (text, _) in ASKED.items()]),
        "tests/support/qrels.tsv": "\n".join(f"{q}\t{d}\t{n}" for q, (_, ds) in ASKED.items() for d, n in ds.items()),
        "workbench.toml": re.findall(r"```toml\n(.*?)```", GUIDE, re.DOTALL)[0],
    }
    for name, text in files.items():
        (root / name).write_text(text)
    own = {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "WORKBENCH_HOME": str(tmp_path / "home"),
        "WORKBENCH_DATABASE_URL": database_url,
        "WORKBENCH_EMBEDDING_MODEL": "hash",
        "GITHUB_STEP_SUMMARY": str(root / "summary.md"),
    }

    def run(line: str) -> subprocess.CompletedProcess[str]:
        command = ["bash", "-e", "-o", "pipefail", "-c", line]
        return subprocess.run(command, cwd=root, env=os.environ | own, capture_output=True, text=True, check=False)

    yield run


def list_steps() -> dict[str, list[str]]:
    """The shell lines of the jobs in the guide."""
    github, gitlab = (yaml.safe_load(text) for text in re.findall(r"```yaml\n(.*?)```", GUIDE, re.DOTALL))
    steps = github["jobs"]["retrieval"]["steps"]
    return {"GitHub": [step["run"] for step in steps if "run" in step], "GitLab": gitlab["retrieval"]["script"]}


@pytest.mark.timeout(600)
def test_the_steps_of_the_jobs_run_and_fail_on_a_fall(shell: Shell, tmp_path: Path) -> None:
    root = tmp_path / "repository"
    github, gitlab = list_steps()["GitHub"], list_steps()["GitLab"]
    assert github[0] == gitlab[0] == "pip install 'rag-workbench[eval]'"
    assert "eval" in (metadata("rag-workbench").get_all("Provides-Extra") or [])
    assert github[1:3] == gitlab[1:]
    first = shell(github[1])
    assert (first.returncode, "Changed 2 of 3." in first.stderr) == (0, True), first.stderr
    missing = shell(github[2])
    assert (missing.returncode, "write it with: workbench check FILE --save" in missing.stderr) == (2, True)
    assert shell("workbench check workbench.toml --save").returncode == 0
    for line in github[1:]:
        ran = shell(line)
        assert ran.returncode == 0, ran.stdout + ran.stderr
    assert (root / "summary.md").read_text().startswith("### ✅ Retrieval checks of workbench.toml: 3 passed")
    assert ElementTree.parse(root / "retrieval.xml").getroot()[0].get("failures") == "0"
    file = root / "workbench.toml"
    file.write_text(file.read_text().replace("min = 0.7", "min = 1.1"))
    failed = shell(gitlab[2])
    assert (failed.returncode, "1 failed" in failed.stderr) == (1, True), failed.stderr
    assert ElementTree.parse(root / "retrieval.xml").getroot()[0].get("failures") == "1"
    file.write_text("[indexes.x]\nchunkr = 'token'\n")
    wrong = shell(github[1])
    assert (wrong.returncode, wrong.stderr) == (
        2,
        "workbench.toml, indexes.x.chunkr: unknown key; did you mean 'chunker'?\n",
    )

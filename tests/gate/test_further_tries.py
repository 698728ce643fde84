"""Browser tests have two retries, other tests with real processes one, and quick ones none."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
PLANTED = """
import time
from pathlib import Path

import pytest


def tries(name):
    with Path(name).open("a") as file:
        file.write("x")
    return Path(name).stat().st_size


@pytest.mark.browser
def test_passes_at_last():
    assert tries("page") == 3


@pytest.mark.slow
def test_beside_processes():
    assert tries("process") == 2


def test_quick():
    assert tries("plain") == 2


@pytest.mark.browser
@pytest.mark.timeout(1)
def test_hangs():
    tries("hanging")
    time.sleep(20)
"""


def test_a_test_next_to_processes_is_tried_again_and_the_summary_reports_it(tmp_path: Path) -> None:
    (tmp_path / "test_browser.py").write_text(PLANTED, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-c", str(ROOT / "pyproject.toml"), "--rootdir", str(ROOT)]
    options = ["-p", "tests.conftest", "-p", "no:cacheprovider", str(tmp_path / "test_browser.py")]
    run = subprocess.run(
        [*command, *options], cwd=tmp_path, env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True
    )
    assert "2 failed, 2 passed, 3 rerun" in run.stdout, run.stdout
    named = [line.rpartition("::")[2] for line in run.stdout.splitlines() if line.startswith("RERUN ")]
    assert named == ["test_beside_processes", "test_passes_at_last", "test_passes_at_last"]
    tries = {name: (tmp_path / name).stat().st_size for name in ("page", "process", "plain", "hanging")}
    assert tries == {"page": 3, "process": 2, "plain": 1, "hanging": 1}

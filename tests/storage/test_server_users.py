"""An embedded server stops with its last user, whoever that is and however the others ended."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from fasteners import InterProcessLock

from tests.shared_home import postmaster
from workbench.errors import ConfigurationError
from workbench.storage.postgres import start_embedded_server, start_in_background

pytestmark = pytest.mark.slow

USER = """
import sys
from workbench.storage.postgres import start_embedded_server
start_embedded_server(__import__("pathlib").Path(sys.argv[1]))
print("joined", flush=True)
sys.stdin.read()
"""
AHEAD = """
import sys
from workbench.runtime import exit_now
from workbench.storage.postgres import start_in_background
start_in_background(__import__("pathlib").Path(sys.argv[1]))
if sys.argv[2] == "now":
    exit_now()
"""
LONG = 60  # seconds: an upper bound that only failures reach


def joined(home: Path) -> subprocess.Popen[str]:
    """Start a process that uses the embedded server until its input closes."""
    command = [sys.executable, "-c", USER, str(home / "postgres")]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "joined\n"
    return process


def read_command(process: psutil.Process) -> list[str]:
    """Return the command line of a process, which may have ended."""
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def test_the_first_user_to_end_leaves_the_server_and_the_last_ends_it(shared_home: Path) -> None:
    first, second = joined(shared_home), joined(shared_home)
    server = postmaster(shared_home)
    assert server is not None
    first.communicate(timeout=LONG)
    assert postmaster(shared_home) == server
    second.communicate(timeout=LONG)
    assert postmaster(shared_home) is None


@pytest.mark.parametrize("end", ["now", "later"])
@pytest.mark.parametrize("first", [True, False], ids=["first start", "later start"])
def test_a_process_that_ends_while_its_server_starts_leaves_none_behind(
    shared_home: Path, end: str, first: bool
) -> None:
    if not first:
        joined(shared_home).communicate(timeout=LONG)
    subprocess.run([sys.executable, "-c", AHEAD, str(shared_home / "postgres"), end], timeout=LONG, check=True)
    until = time.monotonic() + LONG
    while any(part == str(shared_home / "postgres") for each in psutil.process_iter() for part in read_command(each)):
        assert time.monotonic() < until, "a process still works in the folder"
        time.sleep(0.1)
    assert postmaster(shared_home) is None
    joined(shared_home).communicate(timeout=LONG)


def test_a_process_that_ends_does_not_wait_for_its_server(shared_home: Path) -> None:
    joined(shared_home).communicate(timeout=LONG)
    with InterProcessLock(shared_home / "postgres" / "workbench.lock"):  # as while another process starts the server
        arguments = [sys.executable, "-c", AHEAD, str(shared_home / "postgres"), "now"]
        assert subprocess.run(arguments, timeout=LONG, check=False).returncode == 0


def test_a_failure_in_the_background_is_raised_when_the_url_is_requested(tmp_path: Path) -> None:
    folder = tmp_path / ("x" * 120) / ("y" * 250) / ("z" * 250) / ("a" * 250) / ("b" * 200) / "postgres"
    start_in_background(folder)
    with pytest.raises(ConfigurationError, match="is longer than 900 bytes"):
        start_embedded_server(folder)


def test_users_that_were_killed_keep_the_server_no_longer(shared_home: Path) -> None:
    before, last, beside = joined(shared_home), joined(shared_home), joined(shared_home)
    server = postmaster(shared_home)
    assert server is not None
    for killed in (before, beside):
        killed.kill()
        killed.communicate(timeout=LONG)
    assert postmaster(shared_home) == server
    last.communicate(timeout=LONG)
    assert postmaster(shared_home) is None


def test_a_server_that_another_user_started_again_ends_with_the_last_one_too(shared_home: Path) -> None:
    first = joined(shared_home)
    died = postmaster(shared_home)
    assert died is not None
    psutil.Process(died).kill()
    while postmaster(shared_home) is not None:
        time.sleep(0.05)
    second = joined(shared_home)  # starts it again
    again = postmaster(shared_home)
    assert again not in (None, died)
    second.communicate(timeout=LONG)
    assert postmaster(shared_home) == again  # the first one uses it still
    first.communicate(timeout=LONG)
    assert postmaster(shared_home) is None

"""Our processes multiply matrices on the calling thread: separate interpreters count their threads."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from workbench.runtime import BLAS_VARIABLES

COUNTED = """
import atexit, os, sys
def counted():
    before = len(os.listdir("/proc/self/task"))
    import numpy as np
    square = np.ones((500, 500))
    square @ square
    print(len(os.listdir("/proc/self/task")) - before, *(os.environ.get(name) for name in %r))
atexit.register(counted)
"""
pytestmark = [
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="threads are counted by Linux's /proc"),
    pytest.mark.skipif(os.cpu_count() == 1, reason="one core has one thread"),
]


def print_in_interpreter(script: str, **given: str) -> str:
    """Return the last line printed by a fresh interpreter, whose only thread setting is ``given``."""
    environment = {name: value for name, value in os.environ.items() if name not in BLAS_VARIABLES} | given
    command = [sys.executable, "-c", COUNTED % (BLAS_VARIABLES,) + script]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment)
    return done.stdout.strip().splitlines()[-1]


def test_a_command_has_one_thread_after_a_product() -> None:
    assert print_in_interpreter("sys.argv[1:] = ['--version']\nfrom workbench.cli import main\nmain()") == "0 1 1 1"


def test_the_server_of_tools_has_one_thread_after_a_product() -> None:
    refused = """sys.argv[1:] = ['--transport', 'http', '--host', '0.0.0.0']
from mcp_app.__main__ import main
from workbench import opening
opening.END_TIMEOUT_S = 60  # numpy is imported after the server's end, which may take longer than an end may
main()"""
    assert print_in_interpreter(refused, WORKBENCH_MCP_TOKEN="") == "0 1 1 1"


def test_the_environment_has_the_last_word() -> None:
    script = "sys.argv[1:] = ['--version']\nfrom workbench.cli import main\nmain()"
    assert print_in_interpreter(script, OPENBLAS_NUM_THREADS="2") == "1 2 1 1"

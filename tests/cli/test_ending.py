"""A process that is asked to stop shuts down cleanly, together with its embedded database, at any moment."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.shared_home import postmaster

pytestmark = pytest.mark.slow

LONG = 60  # seconds: an upper bound that only failures reach
ABOUT = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}


def started(home: Path, *command: str) -> subprocess.Popen[str]:
    """Start a command on a data folder."""
    settings = {"WORKBENCH_HOME": str(home), "WORKBENCH_EMBEDDING_MODEL": "hash"}
    others = {name: value for name, value in os.environ.items() if not name.startswith("WORKBENCH_")}
    return subprocess.Popen(
        [sys.executable, "-m", "workbench.cli", *command],
        env={**others, **settings},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def said(process: subprocess.Popen[str], message: dict[str, Any]) -> dict[str, Any]:
    """Send one message over stdio and return the answer."""
    assert process.stdin is not None and process.stdout is not None
    print(json.dumps({"jsonrpc": "2.0", **message}), file=process.stdin, flush=True)
    return json.loads(process.stdout.readline())


def called(process: subprocess.Popen[str], tool: str, **arguments: Any) -> dict[str, Any]:
    """Call a tool of a server over stdio."""
    answer = said(process, {"id": 2, "method": "tools/call", "params": {"name": tool, "arguments": arguments}})
    return json.loads(answer["result"]["content"][0]["text"])


def serving(home: Path) -> subprocess.Popen[str]:
    """Start a server over stdio and let it open its workbench."""
    process = started(home, "mcp")
    said(process, {"id": 1, "method": "initialize", "params": ABOUT})
    listed = called(process, "manage_source", action="list")
    assert listed["success"], listed
    return process


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def ends_with_its_server(process: subprocess.Popen[str], home: Path, number: signal.Signals) -> str:
    """Send a signal; returns the remaining output, once the process and the embedded server have ended."""
    assert postmaster(home) is not None
    process.send_signal(number)
    rest = process.communicate(timeout=LONG)[1]
    wait_for_end_of_server(home)
    assert "Traceback" not in rest, rest
    return rest


def wait_for_end_of_server(home: Path) -> None:
    """Wait for the embedded server, which another process stops if its last user has no time to."""
    until = time.monotonic() + LONG
    while postmaster(home) is not None:
        assert time.monotonic() < until
        time.sleep(0.05)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_server_over_stdio_that_is_asked_to_stop_takes_the_database_along(
    shared_home: Path, number: signal.Signals
) -> None:
    process = serving(shared_home)
    ends_with_its_server(process, shared_home, number)
    assert process.returncode == 0


@pytest.mark.parametrize(
    "command",
    [["mcp", "--transport", "http", "--port"], ["app", "--no-sample", "--port"]],
    ids=["mcp", "app"],
)
def test_a_server_over_http_that_is_asked_to_stop_takes_the_database_along(
    shared_home: Path, command: list[str]
) -> None:
    user = serving(shared_home)  # the database is there before the signal comes
    process = started(shared_home, *command, str(free_port()))
    assert process.stderr is not None
    assert "http://" in process.stderr.readline()
    ends_alone = user.communicate(timeout=LONG)[1]
    assert "Traceback" not in ends_alone
    if postmaster(shared_home) is None:  # this one had not joined yet and has to start it again
        process.terminate()
        process.communicate(timeout=LONG)
        wait_for_end_of_server(shared_home)
    else:
        ends_with_its_server(process, shared_home, signal.SIGTERM)
    assert process.returncode == 0


def test_a_job_on_its_way_does_not_hold_up_the_end_and_goes_back_into_the_queue(shared_home: Path) -> None:
    text = "\n\n".join(f"Paragraph {number} tells of this and that. " * 8 for number in range(600))
    process = serving(shared_home)
    job = called(process, "manage_document", action="create", content=text)["job"]["job_id"]
    while called(process, "get_job", job_id=job)["job"]["status"] == "queued":
        time.sleep(0.05)
    ends_with_its_server(process, shared_home, signal.SIGTERM)
    again = serving(shared_home)
    assert called(again, "get_job", job_id=job)["job"]["status"] in ("queued", "running", "completed")
    while (ended := called(again, "get_job", job_id=job)["job"])["status"] in ("queued", "running"):
        time.sleep(0.05)
    assert ended["status"] == "completed", ended
    assert called(again, "manage_document", action="list")["total_count"] == 1
    again.communicate(timeout=LONG)
    wait_for_end_of_server(shared_home)


def post(port: int, headers: dict[str, str], message: dict[str, Any]) -> http.client.HTTPResponse:
    """Send one message over HTTP."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=LONG)
    kinds = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
    connection.request("POST", "/mcp", json.dumps({"jsonrpc": "2.0", **message}), {**kinds, **headers})
    return connection.getresponse()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("command", [["mcp", "--transport", "http"], ["serve", "--no-sample"]], ids=["mcp", "serve"])
def test_a_call_and_a_stream_do_not_delay_the_end_of_a_server(
    shared_home: Path, command: list[str], number: signal.Signals
) -> None:
    port = free_port()
    process = started(shared_home, *command, "--port", str(port))
    assert process.stderr is not None
    assert "http://" in process.stderr.readline()
    until = time.monotonic() + LONG
    while True:
        try:
            opened = post(port, {}, {"id": 1, "method": "initialize", "params": ABOUT})
            break
        except ConnectionRefusedError:  # the app prints its address before it listens
            assert time.monotonic() < until
            time.sleep(0.05)
    session = {"mcp-session-id": opened.headers["mcp-session-id"], "mcp-protocol-version": ABOUT["protocolVersion"]}
    listing = {"name": "manage_source", "arguments": {"action": "list"}}
    assert b"success" in post(port, session, {"id": 2, "method": "tools/call", "params": listing}).read()
    stream = http.client.HTTPConnection("127.0.0.1", port, timeout=LONG)
    stream.request("GET", "/mcp", headers={**session, "accept": "text/event-stream"})
    assert stream.getresponse().status == 200
    text = "\n\n".join(f"Paragraph {part} tells of bridges and of number {part * 7}. " * 30 for part in range(900))
    creating = {"name": "manage_document", "arguments": {"action": "create", "content": text}}
    with ThreadPoolExecutor(1) as pool:
        pool.submit(post, port, session, {"id": 3, "method": "tools/call", "params": creating})
        time.sleep(0.3)  # the call is in progress
        began = time.monotonic()
        ends_with_its_server(process, shared_home, number)
        assert time.monotonic() - began < 5  # 0.6 on an idle machine; without a limit, until the client leaves


def test_a_signal_that_comes_while_the_process_ends_already_disturbs_nothing() -> None:
    code = (
        "import atexit, os, signal\n"
        "from workbench.runtime import ignore_signals, install_signal_handlers\n"
        "atexit.register(lambda: (os.kill(os.getpid(), signal.SIGTERM), print('closed')))\n"
        "install_signal_handlers()\n"
        "ignore_signals()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "closed\n", "")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_that_comes_in_a_destructor_which_may_raise_nothing_ends_the_process_all_the_same(number: int) -> None:
    code = (
        "import os, time\n"
        "from workbench.runtime import install_signal_handlers\n"
        "class Late:\n"
        f"    def __del__(self): os.kill(os.getpid(), {number}); time.sleep(0.01)\n"
        "install_signal_handlers()\n"
        "try: Late(); time.sleep(50)\n"
        "except KeyboardInterrupt: print('ended')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=40, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "ended\n", "")


@pytest.mark.parametrize("delay", [0.1, 0.2, 0.4])
def test_ctrl_c_during_the_first_imports_shows_no_traceback(delay: float) -> None:
    """Python itself starts in less than 0.1 s; the first imports are delayed so that the interrupt is during them."""
    code = (
        "import os, signal, sys, threading, time; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        f"threading.Timer({delay}, lambda: os.kill(os.getpid(), signal.SIGINT)).start()\n"
        "class Slow:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.startswith('workbench.') and name != 'workbench.cli': time.sleep(0.05)\n"
        "sys.meta_path.insert(0, Slow())\n"
        "from workbench.cli import main\n"
        "main(['--help'])\n"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=LONG)
    assert (ended.returncode, ended.stderr) == (130, "")

"""Standard streams: whole messages, an answer to every line, and no stray output."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from mcp_app.stdio import clean_message
from tests.mcp_app.processes import environment
from workbench.settings import Settings

PING = b'{"jsonrpc":"2.0","id":7,"method":"ping"}\n'


ECHO = """
import anyio
from mcp_app.stdio import open_standard_streams

async def main():
    async with open_standard_streams() as (incoming, outgoing), incoming, outgoing:
        async for message in incoming:
            await outgoing.send(message)

anyio.run(main)
"""


def echo(sent: bytes) -> list[str]:
    """Return what a server that sends every message back writes."""
    done = subprocess.run([sys.executable, "-c", ECHO], input=sent, capture_output=True, check=True, timeout=60)
    assert not done.stderr
    return done.stdout.decode().splitlines()


def message(text: str) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "method": "said", "params": {"text": text}}, ensure_ascii=False).encode()


@pytest.mark.parametrize(
    ("sent", "texts"),
    [
        (message("one") + b"\n" + message("two") + b"\n", ["one", "two"]),
        (message("one") + b"\n\n" + message("last without its end"), ["one", "last without its end"]),
        (message("Grüße 🌍") + b"\n", ["Grüße 🌍"]),
        (message("bad X byte").replace(b"X", b"\xff") + b"\n", ["bad � byte"]),
        (b"", []),
    ],
    ids=["lines", "no end", "not ASCII", "not UTF-8", "nothing"],
)
def test_messages_come_as_they_were_sent(sent: bytes, texts: list[str]) -> None:
    assert [json.loads(line)["params"]["text"] for line in echo(sent)] == texts


@pytest.mark.parametrize(
    ("sent", "cleaned"),
    [
        (r'{"cut": "a\ud83db", "whole": "\uD83D\uDE00"}', '{"cut": "a�b", "whole": "😀"}'),
        (r'{"written out": "\\ud83d"}', r'{"written out": "\\ud83d"}'),
        (r"no JSON \ud83d", r"no JSON \ud83d"),
        ('\ufeff {"a": 1}\r\n', '{"a": 1}'),
    ],
)
def test_a_message_is_cleaned(sent: str, cleaned: str) -> None:
    assert clean_message(sent) == cleaned


def test_a_text_larger_than_the_pipe_arrives_whole() -> None:
    text = "ä🌍" * 300_000  # 1.8 MB; a pipe holds 64 KB, and cuts fall inside characters
    [line] = echo(message(text) + b"\n")
    assert json.loads(line)["params"]["text"] == text


def test_writing_to_a_client_that_has_left_ends_without_noise() -> None:
    command = [sys.executable, "-c", ECHO]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as server:
        assert server.stdin and server.stdout and server.stderr
        server.stdout.close()
        server.stdin.write((message("too late") + b"\n") * 10)
        server.stdin.close()
        assert (server.wait(30), server.stderr.read()) == (0, b"")


@pytest.mark.slow
def test_what_a_library_prints_or_reads_misses_the_wire() -> None:
    code = (
        "import anyio, os, subprocess, sys\n"
        "from mcp_app.stdio import open_standard_streams\n"
        "async def main():\n"
        "    async with open_standard_streams() as streams:\n"
        "        print('stray', flush=True)\n"
        "        subprocess.run(['echo', 'stray child'], check=True)\n"
        "        print(repr(os.read(0, 9)), file=sys.stderr)\n"
        "        [await stream.aclose() for stream in streams]\n"
        "    print('free again')\n"
        "anyio.run(main)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], input=b"", capture_output=True, check=False)
    assert done.stdout == b"free again\n", done.stderr
    assert done.stderr.decode().splitlines() == ["stray", "stray child", "b''"]


def test_streams_that_are_files_are_served_too(make_settings: Callable[..., Settings], tmp_path: Path) -> None:
    asked, answered = tmp_path / "asked", tmp_path / "answered"
    asked.write_bytes(PING)
    with asked.open("rb") as given, answered.open("wb") as taken:
        command = [sys.executable, "-m", "mcp_app"]
        subprocess.run(command, env=environment(make_settings()), stdin=given, stdout=taken, check=True)
    assert b'"id":7' in answered.read_bytes()


@pytest.mark.parametrize("kind", ["pipe", "socket"])
@pytest.mark.parametrize("command", [["-m", "mcp_app"], ["-m", "workbench.cli", "mcp"]], ids=["module", "command"])
def test_a_client_that_leaves_before_it_has_written_anything_ends_the_server_during_its_imports(
    make_settings: Callable[..., Settings], command: list[str], kind: str
) -> None:
    ours, theirs = os.pipe() if kind == "pipe" else [end.detach() for end in socket.socketpair()]
    os.close(theirs)
    env = environment(make_settings(), PYTHONPROFILEIMPORTTIME="1")
    done = subprocess.run([sys.executable, *command], env=env, stdin=ours, capture_output=True, text=True, check=True)
    os.close(ours)
    assert "mcp_app" in done.stderr
    assert not re.search(r"\bmcp_app\.server$", done.stderr, re.MULTILINE)


def test_a_client_that_writes_and_leaves_at_once_is_answered(make_settings: Callable[..., Settings]) -> None:
    command = [sys.executable, "-m", "mcp_app"]
    given = PING * 2  # the SDK answers the first message once there is a second one
    done = subprocess.run(command, env=environment(make_settings()), input=given, capture_output=True, check=True)
    assert b'"id":7' in done.stdout

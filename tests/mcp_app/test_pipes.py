"""Standard streams without threads: whole lines, whole texts, and no stray output."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import anyio
import pytest

from mcp_app.stdio import StreamWriter, clean_message, read_lines
from tests.mcp_app.processes import environment
from workbench.settings import Settings

PING = b'{"jsonrpc":"2.0","id":7,"method":"ping"}\n'


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    ends = os.pipe()
    yield ends
    for end in ends:
        try:
            os.close(end)
        except OSError:  # closed by the test
            continue


def lines_of(reading: int) -> list[str]:
    async def read() -> list[str]:
        return [line async for line in read_lines(reading)]

    return anyio.run(read)


@pytest.mark.parametrize(
    ("sent", "lines"),
    [
        (b"one\ntwo\n", ["one", "two"]),
        (b"one\n\nlast without its end", ["one", "", "last without its end"]),
        ("Grüße 🌍\n".encode(), ["Grüße 🌍"]),
        (b"bad \xff byte\n", ["bad � byte"]),
        (b"", []),
    ],
)
def test_lines_come_as_they_were_sent(pipe: tuple[int, int], sent: bytes, lines: list[str]) -> None:
    reading, writing = pipe
    os.write(writing, sent)
    os.close(writing)
    assert lines_of(reading) == lines


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


def test_a_text_larger_than_the_pipe_arrives_whole_while_it_is_read(pipe: tuple[int, int]) -> None:
    reading, writing = pipe
    os.set_blocking(writing, False)
    text = "ä🌍" * 300_000  # 1.8 MB; a pipe holds 64 KB, and cuts fall inside characters

    async def both() -> list[str]:
        got: list[str] = []

        async def read() -> None:
            got.extend([line async for line in read_lines(reading)])

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(read)
            await StreamWriter(writing).write(f"{text}\n")
            os.close(writing)
        return got

    assert anyio.run(both) == [text]


def test_writing_to_a_client_that_has_left_ends_like_a_closed_stream(pipe: tuple[int, int]) -> None:
    reading, writing = pipe
    os.close(reading)
    with pytest.raises(anyio.ClosedResourceError):
        anyio.run(StreamWriter(writing).write, "too late")


@pytest.mark.slow
def test_what_a_library_prints_or_reads_misses_the_wire(pipe: tuple[int, int]) -> None:
    code = (
        "import anyio, os, subprocess, sys\n"
        "from mcp_app.stdio import clean_message, open_standard_streams\n"
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

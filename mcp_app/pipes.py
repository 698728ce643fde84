"""The standard streams as the event loop itself reads and writes them: no thread stands between a call and its answer.

The SDK reads and writes them through worker threads, which costs every call four changes of thread. Where the streams
are no pipes or sockets (a terminal, a file, Windows), the SDK's own way serves.
"""

from __future__ import annotations

import json
import os
import re
import stat
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Generator
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, cast

import anyio
from mcp.server.stdio import stdio_server

from workbench.ending import TOLD, end_in_order

if TYPE_CHECKING:
    from mcp.shared._stream_protocols import ReadStream, WriteStream
    from mcp.shared.message import SessionMessage

    Streams = tuple[ReadStream[SessionMessage | Exception], WriteStream[SessionMessage]]

_ESCAPED_HALF = re.compile(r"\\u[dD][89a-fA-F]")
_CHUNK = 2**18  # bytes read at once; a pipe holds 2**16


@asynccontextmanager
async def standard_streams() -> AsyncGenerator[Streams]:
    """Yield the streams that a server reads from and writes to while it serves over stdio."""
    if not _suit():
        async with stdio_server() as streams:
            yield streams
        return
    with _claimed(0, os.devnull) as wire_in, _claimed(1, None) as wire_out:
        lines = cast("anyio.AsyncFile[str]", LineReader(wire_in))  # the SDK uses only what these two can do
        writer = cast("anyio.AsyncFile[str]", Writer(wire_out))
        async with stdio_server(stdin=lines, stdout=writer) as streams:
            yield streams


async def cancel_when_told(scope: anyio.CancelScope) -> None:
    """Cancel a scope when a signal asks the process to end: an interrupt would come up in whatever task then runs."""
    try:
        with anyio.open_signal_receiver(*TOLD) as signals:
            async for _ in signals:
                scope.cancel()
    except NotImplementedError:  # Windows
        await anyio.sleep_forever()
    finally:
        end_in_order()  # the event loop puts the interpreter's own way back, which closes nothing


class LineReader:
    """A reader of UTF-8 lines from a descriptor, however long; bytes that are no character become U+FFFD."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    async def __aiter__(self) -> AsyncIterator[str]:
        """Yield lines until the other side closes; a last one may lack its end."""
        begun: list[bytes] = []
        while True:
            await anyio.wait_readable(self._descriptor)
            chunk = os.read(self._descriptor, _CHUNK)
            if not chunk:
                break
            *ended, rest = chunk.split(b"\n")
            for line in ended:
                yield whole(b"".join((*begun, line)).decode(errors="replace"))
                begun.clear()
            if rest:
                begun.append(rest)
        if begun:
            yield whole(b"".join(begun).decode(errors="replace"))


def whole(line: str) -> str:
    """Return a line of JSON with U+FFFD for every escaped half of a character.

    JavaScript writes such halves where a text was cut within an emoji, and the SDK leaves the whole call unanswered.
    """
    if not _ESCAPED_HALF.search(line):
        return line
    try:
        text = json.dumps(json.loads(line), ensure_ascii=False)
    except (ValueError, RecursionError):
        return line
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


class Writer:
    """A writer of text to a descriptor that does not block; it waits where the other side is slow to read."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    async def write(self, text: str) -> None:
        """Write all of a text. Raises ClosedResourceError where the other side is gone."""
        remainder = memoryview(text.encode())
        while remainder:
            try:
                remainder = remainder[os.write(self._descriptor, remainder) :]
            except BlockingIOError:
                await anyio.wait_writable(self._descriptor)
            except BrokenPipeError as error:
                raise anyio.ClosedResourceError from error

    async def flush(self) -> None:
        """Do nothing: every written text is with the system already."""


def _suit() -> bool:
    """Tell whether both streams can be waited for, and stderr is another one: it must go on blocking."""
    if sys.platform == "win32":
        return False
    try:
        states = [os.fstat(descriptor) for descriptor in (0, 1)]
    except OSError:
        return False
    if not all(stat.S_ISFIFO(state.st_mode) or stat.S_ISSOCK(state.st_mode) for state in states):
        return False
    try:
        return not os.path.samestat(states[1], os.fstat(2))
    except OSError:  # there is no stderr
        return False


@contextmanager
def _claimed(descriptor: int, instead: str | None) -> Generator[int]:
    """Yield a private duplicate; meanwhile a stray read or print meets ``instead``, or stderr where that is None."""
    assert sys.platform != "win32"  # whose pipes do not suit
    private = os.dup(descriptor)
    other = os.open(instead, os.O_RDONLY) if instead else os.dup(2)
    os.dup2(other, descriptor)
    os.close(other)
    blocking = os.get_blocking(private)
    if instead is None:
        os.set_blocking(private, False)
    try:
        yield private
    finally:
        os.set_blocking(private, blocking)
        os.dup2(private, descriptor)
        os.close(private)

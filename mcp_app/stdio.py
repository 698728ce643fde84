"""The standard streams as the event loop itself reads and writes them: no thread stands between a call and its answer.

The SDK reads and writes them through worker threads, which costs every call four changes of thread. Streams that are
no pipes or sockets (a terminal, a file, Windows) are read and written through threads here too.

The SDK gives no answer to a line that is no message of the protocol. Here such a line gets a JSON-RPC error, and the
session continues.
"""

from __future__ import annotations

import json
import os
import re
import stat
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, cast

import anyio
import anyio.to_thread
from mcp.server.stdio import stdio_server
from mcp.types import INVALID_REQUEST, PARSE_ERROR, JSONRPCNotification, jsonrpc_message_adapter

from workbench.runtime import TOLD, end_in_order

if TYPE_CHECKING:
    from mcp.shared._stream_protocols import ReadStream, WriteStream
    from mcp.shared.message import SessionMessage

    Streams = tuple[ReadStream[SessionMessage | Exception], WriteStream[SessionMessage]]

_ESCAPED_HALF = re.compile(r"\\u[dD][89a-fA-F]")
_CHUNK = 2**18  # bytes read at once; a pipe holds 2**16


@asynccontextmanager
async def standard_streams() -> AsyncGenerator[Streams]:
    """Yield the streams that a server reads from and writes to while it serves over stdio."""
    waits = _can_be_waited_for()
    with _claimed(0, os.devnull) as wire_in, _claimed(1, None, blocking=not waits) as wire_out:
        writer = Writer(wire_out) if waits else ThreadWriter(wire_out)
        reader = MessageReader(LineReader(wire_in, in_thread=not waits), writer)
        stdin = cast("anyio.AsyncFile[str]", reader)  # the SDK uses only what these two can do
        async with stdio_server(stdin=stdin, stdout=cast("anyio.AsyncFile[str]", writer)) as streams:
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
    """A reader of UTF-8 lines from a descriptor, however long; bytes that are no character become U+FFFD.

    With ``in_thread`` the descriptor may be any; else the event loop has to be able to wait for it.
    """

    def __init__(self, descriptor: int, *, in_thread: bool = False) -> None:
        self._descriptor, self._in_thread = descriptor, in_thread

    async def __aiter__(self) -> AsyncIterator[str]:
        """Yield lines until the other side closes; a last one may lack its end."""
        begun: list[bytes] = []
        while chunk := await self._chunk():
            *ended, rest = chunk.split(b"\n")
            for line in ended:
                yield whole(b"".join((*begun, line)).decode(errors="replace"))
                begun.clear()
            if rest:
                begun.append(rest)
        if begun:
            yield whole(b"".join(begun).decode(errors="replace"))

    async def _chunk(self) -> bytes:
        if self._in_thread:
            return await anyio.to_thread.run_sync(os.read, self._descriptor, _CHUNK)
        await anyio.wait_readable(self._descriptor)
        return os.read(self._descriptor, _CHUNK)


class MessageReader:
    """A reader of messages that answers every other line itself; a byte order mark and blank lines are skipped."""

    def __init__(self, lines: LineReader, writer: Writer | ThreadWriter) -> None:
        self._lines, self._writer = lines, writer

    async def __aiter__(self) -> AsyncIterator[str]:
        """Yield the lines that are messages of the protocol."""
        async for line in self._lines:
            text = line.removeprefix("\ufeff").strip()
            if not text:
                continue
            answers = errors_for(text)
            for answer in answers:
                await self._writer.write(answer + "\n")
            if not answers:
                yield text


def errors_for(line: str) -> Sequence[str]:
    """Return the JSON-RPC errors that answer a line which is no message of the protocol; none for a message.

    An error has the id of its request, or null if that is unknown. Each request of a batch gets one.
    """
    try:
        message = jsonrpc_message_adapter.validate_json(line, by_name=False)
    except (ValueError, RecursionError):
        pass
    else:
        if not (isinstance(message, JSONRPCNotification) and '"id"' in line and "id" in json.loads(line)):
            return ()
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return (_error(None, PARSE_ERROR, "Parse error: the line is not JSON. Send one message as JSON on each line."),)
    if isinstance(value, list):
        ids = [item["id"] for item in value if isinstance(item, dict) and "method" in item and "id" in item]
        said = "Invalid request: MCP has no batches. Send each message on a line of its own."
        return [_error(key, INVALID_REQUEST, said) for key in ids or [None]]
    if isinstance(value, dict) and value.get("id", 0) is None:
        said = "Invalid request: the id is null. Give each request an id, a text or a whole number."
    else:
        said = "Invalid request: not a JSON-RPC 2.0 message with jsonrpc, method and, for a request, an id."
    return (_error(value.get("id") if isinstance(value, dict) else None, INVALID_REQUEST, said),)


def _error(key: object, code: int, message: str) -> str:
    known = key if isinstance(key, str | int) and not isinstance(key, bool) else None
    return json.dumps({"jsonrpc": "2.0", "id": known, "error": {"code": code, "message": message}})


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
        self._turn = anyio.Lock()  # two tasks write whole lines

    async def write(self, text: str) -> None:
        """Write all of a text. Raises ClosedResourceError where the other side is gone."""
        remainder = memoryview(text.encode())
        async with self._turn:
            while remainder:
                try:
                    remainder = remainder[os.write(self._descriptor, remainder) :]
                except BlockingIOError:
                    await anyio.wait_writable(self._descriptor)
                except BrokenPipeError as error:
                    raise anyio.ClosedResourceError from error

    async def flush(self) -> None:
        """Do nothing: every written text is with the system already."""


class ThreadWriter:
    """A writer of text to any descriptor, through a thread."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._turn = anyio.Lock()

    async def write(self, text: str) -> None:
        """Write all of a text. Raises ClosedResourceError if the other side is gone."""
        remainder = memoryview(text.encode())
        async with self._turn:
            while remainder:
                try:
                    remainder = remainder[await anyio.to_thread.run_sync(os.write, self._descriptor, remainder) :]
                except BrokenPipeError as error:
                    raise anyio.ClosedResourceError from error

    async def flush(self) -> None:
        """Do nothing: every written text has reached the system already."""


def _can_be_waited_for() -> bool:
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
def _claimed(descriptor: int, instead: str | None, *, blocking: bool = True) -> Generator[int]:
    """Yield a private duplicate; meanwhile a stray read or print meets ``instead``, or stderr where that is None."""
    private = os.dup(descriptor)
    other = os.open(instead, os.O_RDONLY) if instead else _other_output()
    os.dup2(other, descriptor)
    os.close(other)
    _rebind(descriptor)
    if not blocking:
        os.set_blocking(private, False)
    try:
        yield private
    finally:
        if not blocking:
            os.set_blocking(private, True)
        os.dup2(private, descriptor)
        os.close(private)
        _rebind(descriptor)


def _other_output() -> int:
    """Return a duplicate of stderr, or the null device if there is no stderr."""
    try:
        return os.dup(2)
    except OSError:
        return os.open(os.devnull, os.O_WRONLY)


def _rebind(descriptor: int) -> None:
    """Let Windows' own handle of a standard stream, which child processes get, follow its descriptor."""
    if sys.platform == "win32":
        from mcp.os.win32.utilities import rebind_std_handle_to_fd

        rebind_std_handle_to_fd(descriptor)

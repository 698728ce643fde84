"""Standard input and output, read and written by the event loop without threads.

The SDK uses worker threads, which costs four thread switches per call. Streams other than pipes and sockets (a
terminal, a file, Windows) also use threads here.

The SDK ignores a line that is not a protocol message. Here it is answered with a JSON-RPC error, and the session
continues.
"""

from __future__ import annotations

import json
import os
import re
import stat
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, cast

import anyio
import anyio.to_thread
from mcp.server.stdio import stdio_server
from mcp.types import INVALID_REQUEST, PARSE_ERROR, JSONRPCNotification, jsonrpc_message_adapter

from workbench.runtime import STOP_SIGNALS, install_signal_handlers

if TYPE_CHECKING:
    from mcp.shared._stream_protocols import ReadStream, WriteStream
    from mcp.shared.message import SessionMessage

    Streams = tuple[ReadStream[SessionMessage | Exception], WriteStream[SessionMessage]]

_ESCAPED_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_CHUNK_BYTES = 2**18  # bytes per read; a pipe holds 2**16


@asynccontextmanager
async def open_standard_streams(on_close: Callable[[], None] = lambda: None) -> AsyncGenerator[Streams]:
    """Yield the message streams of a server over stdio; ``on_close`` is called when the client closes its side."""
    can_wait = _can_wait_on_streams()
    with _claim_stream(0, os.devnull) as wire_in, _claim_stream(1, None, blocking=not can_wait) as wire_out:
        writer = StreamWriter(wire_out, in_thread=not can_wait)
        reader = read_messages(read_lines(wire_in, in_thread=not can_wait), writer, on_close)
        stdin = cast("anyio.AsyncFile[str]", reader)  # the SDK uses only the methods that these two have
        async with stdio_server(stdin=stdin, stdout=cast("anyio.AsyncFile[str]", writer)) as streams:
            yield streams


async def cancel_on_signal(scope: anyio.CancelScope, on_close: Callable[[], None]) -> None:
    """Cancel a scope on a termination signal, because a KeyboardInterrupt would be raised in an arbitrary task."""
    try:
        with anyio.open_signal_receiver(*STOP_SIGNALS) as signals:
            async for _ in signals:
                on_close()
                scope.cancel()
    except NotImplementedError:  # Windows
        await anyio.sleep_forever()
    finally:
        install_signal_handlers()  # the event loop restores the default handlers, which close nothing


async def read_lines(descriptor: int, *, in_thread: bool = False) -> AsyncIterator[str]:
    """Yield the UTF-8 lines of a descriptor until the other side closes; invalid bytes become U+FFFD.

    The last line may lack its newline. ``in_thread`` is required if the event loop cannot wait for the descriptor.
    """
    partial: list[bytes] = []
    while True:
        if in_thread:
            chunk = await anyio.to_thread.run_sync(os.read, descriptor, _CHUNK_BYTES)
        else:
            await anyio.wait_readable(descriptor)
            chunk = os.read(descriptor, _CHUNK_BYTES)
        if not chunk:
            break
        *complete, rest = chunk.split(b"\n")
        for line in complete:
            yield b"".join((*partial, line)).decode(errors="replace")
            partial.clear()
        if rest:
            partial.append(rest)
    if partial:
        yield b"".join(partial).decode(errors="replace")


async def read_messages(
    lines: AsyncIterator[str], writer: StreamWriter, on_close: Callable[[], None]
) -> AsyncIterator[str]:
    """Yield the lines that are protocol messages; answer others with errors, except empty ones."""
    async for line in lines:
        text = clean_message(line)
        answers = make_errors(text) if text else ()
        for answer in answers:
            await writer.write(answer + "\n")
        if text and not answers:
            yield text
    on_close()


def make_errors(line: str) -> Sequence[str]:
    """Return the JSON-RPC errors for a line; [] if it is a protocol message.

    Each request of a batch gets an error. An error has the id of its request, or null if that is unknown.
    """
    try:
        parsed = jsonrpc_message_adapter.validate_json(line, by_name=False)
    except (ValueError, RecursionError):
        pass
    else:
        if not (isinstance(parsed, JSONRPCNotification) and '"id"' in line and "id" in json.loads(line)):
            return ()
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return (_make_error(None, PARSE_ERROR, "Parse error: not JSON. Send one JSON message at a time."),)
    if isinstance(value, list):
        ids = [item["id"] for item in value if isinstance(item, dict) and "method" in item and "id" in item]
        message = "Invalid request: MCP has no batches. Send one message at a time."
        return [_make_error(key, INVALID_REQUEST, message) for key in ids or [None]]
    if isinstance(value, dict) and value.get("id", 0) is None:
        message = "Invalid request: the id is null. Set the id of each request to a string or an integer."
    else:
        message = "Invalid request: not a JSON-RPC 2.0 message with jsonrpc, method and, for a request, id."
    return (_make_error(value.get("id") if isinstance(value, dict) else None, INVALID_REQUEST, message),)


def _make_error(key: object, code: int, message: str) -> str:
    known = key if isinstance(key, str | int) and not isinstance(key, bool) else None
    return json.dumps({"jsonrpc": "2.0", "id": known, "error": {"code": code, "message": message}})


def clean_message(line: str) -> str:
    """Remove a byte order mark and whitespace, and replace escaped unpaired surrogates with U+FFFD.

    JavaScript writes them if a string was cut inside an emoji, and the SDK would not answer such a call at all.
    """
    line = line.removeprefix("\ufeff").strip()
    if not _ESCAPED_SURROGATE.search(line):
        return line
    try:
        text = json.dumps(json.loads(line), ensure_ascii=False)
    except (ValueError, RecursionError):
        return line
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


class StreamWriter:
    """Writes text to a descriptor; waits if the reader is slow.

    Args:
        descriptor: File descriptor to write to, non-blocking unless ``in_thread``.
        in_thread: Write in a thread; required if the event loop cannot wait for the descriptor.
    """

    def __init__(self, descriptor: int, *, in_thread: bool = False) -> None:
        self._descriptor, self._in_thread = descriptor, in_thread
        self._lock = anyio.Lock()  # tasks take turns, so that lines stay whole

    async def write(self, text: str) -> None:
        """Write a text. Raises ClosedResourceError if the other side closed the stream."""
        remainder = memoryview(text.encode())
        async with self._lock:
            while remainder:
                try:
                    if self._in_thread:
                        written = await anyio.to_thread.run_sync(os.write, self._descriptor, remainder)
                    else:
                        written = os.write(self._descriptor, remainder)
                    remainder = remainder[written:]
                except BlockingIOError:
                    await anyio.wait_writable(self._descriptor)
                except BrokenPipeError as error:
                    raise anyio.ClosedResourceError from error

    async def flush(self) -> None:
        """Do nothing; writes are not buffered."""


def _can_wait_on_streams() -> bool:
    """Return whether the event loop can wait for both streams, and stderr, which must stay blocking, is separate."""
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
    except OSError:  # no stderr
        return False


@contextmanager
def _claim_stream(descriptor: int, instead: str | None, *, blocking: bool = True) -> Generator[int]:
    """Yield a private duplicate of a descriptor and redirect the original.

    Args:
        descriptor: 0 or 1.
        instead: File for stray reads and prints; None for stderr.
        blocking: False makes the duplicate non-blocking.
    """
    private = os.dup(descriptor)
    other = os.open(instead, os.O_RDONLY) if instead else _open_stray_output()
    os.dup2(other, descriptor)
    os.close(other)
    _rebind(descriptor)
    if not blocking and sys.platform != "win32":
        os.set_blocking(private, False)
    try:
        yield private
    finally:
        if not blocking and sys.platform != "win32":
            os.set_blocking(private, True)
        os.dup2(private, descriptor)
        os.close(private)
        _rebind(descriptor)


def _open_stray_output() -> int:
    """Return a duplicate of stderr, or the null device if there is no stderr."""
    try:
        return os.dup(2)
    except OSError:
        return os.open(os.devnull, os.O_WRONLY)


def _rebind(descriptor: int) -> None:
    """Point the Windows handle of a standard stream, which child processes inherit, to its descriptor."""
    if sys.platform == "win32":
        from mcp.os.win32.utilities import rebind_std_handle_to_fd

        rebind_std_handle_to_fd(descriptor)

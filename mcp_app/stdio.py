"""Standard input and output: the SDK's transport, with an answer to every line.

The SDK ignores a line that is not a protocol message. Here it is answered with a JSON-RPC error, and the session
continues.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, BinaryIO, cast

import anyio
import anyio.to_thread
from mcp.os.win32.utilities import rebind_std_handle_to_fd
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from mcp.types import (
    INVALID_REQUEST,
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCNotification,
    jsonrpc_message_adapter,
)

from workbench.runtime import STOP_SIGNALS, install_signal_handlers

if TYPE_CHECKING:
    from mcp.shared._stream_protocols import ReadStream, WriteStream

    Streams = tuple[ReadStream[SessionMessage | Exception], WriteStream[SessionMessage]]

_ESCAPED_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


@asynccontextmanager
async def open_standard_streams(on_close: Callable[[], None] = lambda: None) -> AsyncGenerator[Streams]:
    """Yield the message streams of a server over stdio; ``on_close`` is called when the client closes its side.

    Libraries and child processes find an empty stdin, and what they print goes to stderr.
    """
    private, nothing = os.dup(0), os.open(os.devnull, os.O_RDONLY)
    replies: list[WriteStream[SessionMessage]] = []
    # not closed at the end, because an abandoned thread may still read it
    reader = read_messages(os.fdopen(private, "rb", closefd=False), replies, on_close)
    _replace_stdin(nothing)
    os.close(nothing)
    try:
        # the SDK only iterates over it
        async with stdio_server(cast("anyio.AsyncFile[str]", reader)) as streams:
            replies.append(streams[1])
            yield streams
    except* (BrokenPipeError, anyio.BrokenResourceError):  # the client has left
        pass
    finally:
        _replace_stdin(private)


def _replace_stdin(descriptor: int) -> None:
    os.dup2(descriptor, 0)
    if sys.platform == "win32":
        rebind_std_handle_to_fd(0)


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


async def read_messages(
    stdin: BinaryIO, replies: Sequence[WriteStream[SessionMessage]], on_close: Callable[[], None]
) -> AsyncIterator[str]:
    """Yield the lines that are protocol messages; answer others with errors in the first of ``replies``.

    Empty lines are skipped. Invalid bytes become U+FFFD.
    """
    while line := await anyio.to_thread.run_sync(stdin.readline, abandon_on_cancel=True):
        text = clean_message(line.decode(errors="replace"))
        errors = make_errors(text) if text else ()
        for error in errors:
            await replies[0].send(SessionMessage(error))
        if text and not errors:
            yield text
    on_close()


def make_errors(line: str) -> Sequence[JSONRPCError]:
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


def _make_error(key: object, code: int, message: str) -> JSONRPCError:
    known = key if isinstance(key, str | int) and not isinstance(key, bool) else None
    return JSONRPCError(jsonrpc="2.0", id=known, error=ErrorData(code=code, message=message))


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

"""The process in which files are read: ``python -m workbench.ingestion.readers.parser_process [BYTES]``.

Requests come in as pickles, and frames go out as such: "ready" once, "page" (page, pages) before each page that takes
long, then "draft" with the document, "pages" after a trial of a few pages, or "error" with a sentence. It takes no more
memory than BYTES, where the system has such a limit: asking for more ends it. It ends when its input does, so that it
never outlives the process that started it, however that one ended.
"""

from __future__ import annotations

import ctypes
import os
import pickle
import queue
import signal
import sys
import threading
from collections.abc import Callable
from typing import BinaryIO

from workbench.errors import UnreadableDocument
from workbench.formatting import MB
from workbench.ingestion.readers.formats import draft_of
from workbench.ingestion.readers.isolation import OUT_OF_MEMORY, Frame, ParserRequest
from workbench.ingestion.readers.pdf.pages import try_pages

LARGE_PIECES = -3  # M_MMAP_THRESHOLD of glibc's mallopt
KEEP_NOTHING = ("MIMALLOC_PURGE_DELAY", "0")  # the PDF parser's own allocator reads it when the parser is imported


def main() -> None:
    """Answer requests until the input ends."""
    if len(sys.argv) > 1:
        _limit(int(sys.argv[1]))
    give_back = _thrift()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches it, too; the process that started it decides
    frames = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # a parser that prints does not print among the frames
    requests: queue.SimpleQueue[ParserRequest] = queue.SimpleQueue()
    threading.Thread(target=_take, args=(sys.stdin.buffer, requests), daemon=True).start()
    _send(frames, ("ready", os.getpid()))
    while True:
        request = requests.get()
        try:
            _send(frames, _answer(frames, request, give_back))
        except MemoryError:
            os._exit(OUT_OF_MEMORY)
        del request


def _limit(memory: int) -> None:
    """Let this process take no more bytes than ``memory``, and leave no image of it where it crashes."""
    if sys.platform == "win32":
        return
    import resource

    for kind, most in ((resource.RLIMIT_DATA, memory), (resource.RLIMIT_CORE, 0)):
        _, hard = resource.getrlimit(kind)
        resource.setrlimit(kind, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))


def _thrift() -> Callable[[], object]:
    """Let memory that is freed go back to the system, large pieces at once; returns what gives the small ones back.

    OCR asks for pieces of many sizes: kept for the next time, as glibc does, they take twice as much as is ever used.
    The PDF parser's allocator keeps the pixels of a picture that was drawn.
    """
    os.putenv(*KEEP_NOTHING)
    try:
        library = ctypes.CDLL(None)
        library.mallopt(LARGE_PIECES, MB // 4)
        return lambda: library.malloc_trim(0)
    except (OSError, TypeError, AttributeError):  # a system with another allocator
        return lambda: None


def _take(stream: BinaryIO, requests: queue.SimpleQueue[ParserRequest]) -> None:
    while True:
        try:
            requests.put(pickle.load(stream))
        except MemoryError:
            os._exit(OUT_OF_MEMORY)
        except (EOFError, pickle.UnpicklingError):
            os._exit(0)


def _answer(frames: BinaryIO, request: ParserRequest, give_back: Callable[[], object]) -> Frame:
    def on_page(page: int, pages: int) -> None:
        give_back()
        _send(frames, ("page", (page, pages)))

    try:
        if request.only is not None:
            return "pages", try_pages(request.data, request.name, *request.only)
        return "draft", draft_of(request.data, request.name, on_page, request.left_out)
    except UnreadableDocument as error:
        return "error", str(error)


def _send(frames: BinaryIO, frame: Frame) -> None:
    pickle.dump(frame, frames, pickle.HIGHEST_PROTOCOL)
    frames.flush()


if __name__ == "__main__":
    main()

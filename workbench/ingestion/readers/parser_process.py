"""The parser process: ``python -m workbench.ingestion.readers.parser_process [BYTES]``.

Requests and frames are pickles on stdin and stdout. It sends "ready" once, "page" (page, pages, is_slow) for each page,
then "draft" with the document, "pages" after trying some pages, or "error" with a message. BYTES limits its memory on
systems that support limits; exceeding it ends the process. It exits when its input closes, so it never outlives the
process that started it, even if that one was killed.
"""

from __future__ import annotations

import ctypes
import os
import pickle
import queue
import signal
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from workbench.errors import UnreadableDocument
from workbench.formatting import MB
from workbench.ingestion.readers.formats import find_reader, read_draft
from workbench.ingestion.readers.isolation import (
    FILE_MEMORY_LIMIT_BYTES,
    MEMORY_PER_FILE_BYTE,
    OUT_OF_MEMORY_EXIT_CODE,
    Frame,
    ParserRequest,
)
from workbench.ingestion.readers.pdf.pages import parse_trial_pages

M_MMAP_THRESHOLD = -3  # M_MMAP_THRESHOLD of glibc's mallopt
PURGE_AT_ONCE = ("MIMALLOC_PURGE_DELAY", "0")  # read by the PDF parser's allocator on import


def main() -> None:
    """Answer requests until the input closes."""
    if len(sys.argv) > 1:
        _limit_memory(int(sys.argv[1]))
    give_back = _return_freed_memory()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C also reaches this process; its parent decides
    frames = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # output of a parser must not mix with the frames
    requests: queue.SimpleQueue[ParserRequest] = queue.SimpleQueue()
    threading.Thread(target=_read_requests, args=(sys.stdin.buffer, requests), daemon=True).start()
    _send_frame(frames, ("ready", os.getpid()))
    while True:
        request = requests.get()
        try:
            _send_frame(frames, _answer_request(frames, request, give_back))
        except MemoryError:
            os._exit(OUT_OF_MEMORY_EXIT_CODE)
        del request


def _limit_memory(memory: int) -> None:
    """Limit the memory of this process and disable core dumps."""
    if sys.platform == "win32":
        return
    import resource

    for kind, most in ((resource.RLIMIT_DATA, memory), (resource.RLIMIT_CORE, 0)):
        _, hard = resource.getrlimit(kind)
        resource.setrlimit(kind, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))


@contextmanager
def _limit_file_memory(name: str, size: int) -> Generator[Callable[[], object]]:
    """Limit this process to less memory while it reads a file, until the yielded function is called; only on Linux.

    A file of ``size`` bytes may take 20 times as much, as tables of many small cells do, and at least 500 MB. The limit
    counts reserved memory, so what is reserved but not used is added to it. Images are not limited, nor is OCR.
    """
    reader = find_reader(name)
    if sys.platform != "linux" or reader is None or reader.needs_ocr:
        yield lambda: None
        return
    import resource

    fields = Path("/proc/self/statm").read_text(encoding="ascii").split()
    used, reserved = (int(fields[place]) * resource.getpagesize() for place in (1, 5))
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    limit = max(FILE_MEMORY_LIMIT_BYTES, MEMORY_PER_FILE_BYTE * size) + reserved - used
    limit = limit if soft == resource.RLIM_INFINITY else min(limit, soft)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, hard))

    def lift() -> None:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))

    try:
        yield lift
    finally:
        lift()


def _return_freed_memory() -> Callable[[], object]:
    """Make the allocator return freed memory to the system; return a function that releases small blocks.

    glibc keeps freed blocks for reuse. OCR allocates blocks of many sizes, so keeping them doubles its memory use. The
    PDF parser's allocator keeps the pixels of rendered images.
    """
    os.putenv(*PURGE_AT_ONCE)
    try:
        library = ctypes.CDLL(None)
        library.mallopt(M_MMAP_THRESHOLD, MB // 4)
        return lambda: library.malloc_trim(0)
    except (OSError, TypeError, AttributeError):  # not glibc
        return lambda: None


def _read_requests(stream: BinaryIO, requests: queue.SimpleQueue[ParserRequest]) -> None:
    while True:
        try:
            requests.put(pickle.load(stream))
        except MemoryError:
            os._exit(OUT_OF_MEMORY_EXIT_CODE)
        except (EOFError, pickle.UnpicklingError):
            os._exit(0)


def _answer_request(frames: BinaryIO, request: ParserRequest, give_back: Callable[[], object]) -> Frame:
    try:
        with _limit_file_memory(request.name, len(request.data)) as lift:
            if request.only is not None:
                return "pages", parse_trial_pages(request.data, request.name, *request.only)

            def on_page(page: int, pages: int, is_slow: bool) -> None:
                if is_slow:
                    lift()
                    give_back()
                _send_frame(frames, ("page", (page, pages, is_slow)))

            return "draft", read_draft(request.data, request.name, on_page, request.left_out, request.options)
    except UnreadableDocument as error:
        return "error", str(error)


def _send_frame(frames: BinaryIO, frame: Frame) -> None:
    pickle.dump(frame, frames, pickle.HIGHEST_PROTOCOL)
    frames.flush()


if __name__ == "__main__":
    main()

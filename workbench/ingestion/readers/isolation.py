"""Reading files in a separate process, so that a parser cannot exhaust memory or block this process.

If the parser crashes, or needs too much memory or time for a page, only that page is lost: the process is restarted and
continues without it. For formats without pages, the file is lost.
"""

from __future__ import annotations

import pickle
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import PurePath
from typing import IO, TYPE_CHECKING, Literal, Self, TypeAlias

from workbench.errors import UnreadableDocument
from workbench.formatting import GB, MB
from workbench.ingestion.raw import Draft
from workbench.types import mark_slow_step

if TYPE_CHECKING:
    from workbench.ingestion.ocr.document import OnPage

# --- Search for pages that crash the parser ---

TRIAL_PAGES = 16  # pages tried at once
MAX_LOST_PAGES = 5  # lost pages before a file with more lost than readable pages is given up
UNKNOWN_PAGE_COUNT = 1_000_000_000  # page count before the parser has reported it


def find_lost_pages(try_pages: Callable[[int, int], int | None]) -> tuple[int, ...] | None:
    """Return the pages (from 1) that crash the parser, or None if most of them do.

    Args:
        try_pages: Function from (first, last) to the number of pages in the file, or None if the process crashed.
    """
    lost: list[int] = []
    first, total, singly = 1, UNKNOWN_PAGE_COUNT, 0
    while first <= total:
        last = first if first <= singly else min(first + TRIAL_PAGES - 1, total)
        count = try_pages(first, last)
        if count is not None:
            total, first = count, last + 1
        elif last > first:
            singly = last
        else:
            lost.append(first)
            if is_hopeless(len(lost), first):
                return None
            first += 1
    return tuple(lost)


def is_hopeless(lost: int, pages: int) -> bool:
    """Return whether to give up on a file of whose first ``pages`` pages ``lost`` could not be read."""
    return lost >= MAX_LOST_PAGES and 2 * lost > pages


# --- Messages to and from the parser process ---

OUT_OF_MEMORY_EXIT_CODE = 77  # exit code of a process that reached its memory limit


@dataclass(frozen=True, slots=True)
class ReadingOptions:
    """How the files of a source are read."""

    encoding: str = ""  # encoding of its texts; "" to detect it for each file
    skip_hidden: bool = False  # True to leave out comments and what is hidden in a file instead of marking it


DEFAULT_OPTIONS = ReadingOptions()


@dataclass(frozen=True, slots=True)
class ParserRequest:
    """A request to the parser process."""

    name: str  # file name
    data: bytes  # contents of the file
    left_out: tuple[int, ...] = ()  # pages to skip
    only: tuple[int, int] | None = None  # first and last page to try instead of reading the whole file
    options: ReadingOptions = DEFAULT_OPTIONS  # how to read it


# "ready" (the process id) is sent once, "page" (page, pages, is_slow) after each page that was parsed and before each
# slow page, and "pages" (the page count) after a trial of some pages.
Frame: TypeAlias = (
    tuple[Literal["ready"], int]
    | tuple[Literal["page"], tuple[int, int, bool]]
    | tuple[Literal["draft"], Draft]
    | tuple[Literal["pages"], int]
    | tuple[Literal["error"], str]
)


MAX_BYTES_PER_PROCESS = 16 * MB  # bytes read after which the process is replaced, because parsers rarely release memory
MEMORY_LIMIT_BYTES = 2 * GB  # memory limit of the process for PDFs and images, on systems that support one
FILE_MEMORY_LIMIT_BYTES = 500 * MB  # memory of the process for a file of another format, on Linux
MEMORY_PER_FILE_BYTE = 20  # for files whose size in memory would otherwise exceed that
WINDOW_TIMEOUT_S = 300.0  # timeout in seconds for a window of pages or one OCR page
TRIAL_TIMEOUT_S = 60.0  # timeout in seconds for a trial of a few pages
CANCEL_CHECK_INTERVAL_S = 0.1  # seconds between checks for cancellation
KILL_TIMEOUT_S = 5.0  # seconds to wait for a killed process
_Frames: TypeAlias = queue.SimpleQueue[Frame | None]


class ParserCrashed(Exception):
    """The process ended during a request. ``page`` is the last slow page that it reported, or None."""

    def __init__(self, cause: str, page: int | None) -> None:
        super().__init__(cause)
        self.cause, self.page = cause, page


class ParserProcess:
    """A process that reads files. It starts with the first file and serves one thread at a time."""

    def __init__(
        self, ask: Callable[[], None], memory: int = MEMORY_LIMIT_BYTES, patience: float = WINDOW_TIMEOUT_S
    ) -> None:
        """Args:
        ask: Called while a file is being read; may raise to stop.
        memory: Memory limit in bytes.
        patience: Timeout in seconds for a window of pages.
        """
        self._ask, self._memory, self._patience = ask, memory, patience
        self._process: subprocess.Popen[bytes] | None = None
        self._frames: _Frames = queue.SimpleQueue()
        self._read = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    @property
    def process_id(self) -> int | None:
        """The process id; None before the first file and after ``close``."""
        return None if self._process is None else self._process.pid

    def draft(
        self, data: bytes, name: str, on_page: OnPage | None = None, options: ReadingOptions = DEFAULT_OPTIONS
    ) -> Draft:
        """Read a file as ``formats.draft_of`` does. A thread receives the frames, so this call can be stopped.

        Raises:
            UnreadableDocument: The file is unreadable, or it or most of its pages crash the parser.
        """
        lost: set[int] = set()
        searched = False
        while True:
            request = ParserRequest(name, data, tuple(sorted(lost)), options=options)
            try:
                frame = self._answer(request, on_page, self._patience)
            except ParserCrashed as end:
                if end.page is not None and end.page not in lost and not is_hopeless(len(lost), end.page):
                    lost.add(end.page)
                    continue
                pages = (
                    None if searched or PurePath(name).suffix.lower() != ".pdf" else self._lost_pages(request, on_page)
                )
                if pages is None:
                    message = f"Parsing '{name}' crashed the parser ({end.cause}). Re-save or split the file."
                    raise UnreadableDocument(message) from None
                searched = True
                lost.update(pages)
                continue
            if frame[0] == "draft":
                self._read += len(data)
                if self._read > MAX_BYTES_PER_PROCESS:
                    self.close()
                return frame[1]

    def close(self) -> None:
        """Kill the process."""
        process, self._process, self._read = self._process, None, 0
        if process is not None:
            process.kill()
            process.wait(KILL_TIMEOUT_S)
            if process.stdin is not None:
                with suppress(OSError):  # unwritten bytes remain in its buffer
                    process.stdin.close()

    def _lost_pages(self, request: ParserRequest, on_page: OnPage | None) -> tuple[int, ...] | None:
        """Return the pages that crash the parser, or None if most of them do."""

        def try_pages(first: int, last: int) -> int | None:
            trial = ParserRequest(request.name, request.data, only=(first, last))
            try:
                frame = self._answer(trial, on_page, min(self._patience, TRIAL_TIMEOUT_S))
            except ParserCrashed:
                return None
            return frame[1] if frame[0] == "pages" else None

        return find_lost_pages(try_pages)

    def _start(self) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "workbench.ingestion.readers.parser_process", str(self._memory)]

        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        self._frames = queue.SimpleQueue()
        threading.Thread(
            target=_receive_frames, args=(self._process.stdout, self._frames), name="parser-frames", daemon=True
        ).start()
        return self._process

    def _answer(self, request: ParserRequest, on_page: OnPage | None, patience: float) -> Frame:
        """Return the frame that answers a request."""
        first = WINDOW_TIMEOUT_S if self._process is None else patience  # a new process first reports that it is ready
        process = self._process or self._start()
        try:
            with mark_slow_step():  # killed after its timeout
                return self._exchange(process, request, on_page, patience, first)
        except UnreadableDocument:
            raise
        except BaseException:  # also when cancelled: no caller waits for the answer
            self.close()
            raise

    def _exchange(
        self,
        process: subprocess.Popen[bytes],
        request: ParserRequest,
        on_page: OnPage | None,
        patience: float,
        first: float,
    ) -> Frame:
        page: int | None = None
        try:
            if process.stdin is not None:
                pickle.dump(request, process.stdin, pickle.HIGHEST_PROTOCOL)
                process.stdin.flush()
        except (OSError, ValueError):
            raise self._end(process, page) from None
        ends = time.monotonic() + first
        while True:
            try:
                frame = self._frames.get(timeout=CANCEL_CHECK_INTERVAL_S)
            except queue.Empty:
                self._ask()
                if time.monotonic() > ends:
                    raise ParserCrashed(f"no answer in {patience:,.0f} seconds", page) from None
                continue
            if frame is None:
                raise self._end(process, page)
            if frame[0] == "error":
                raise UnreadableDocument(frame[1])
            if frame[0] == "page":
                page = frame[1][0] if frame[1][2] else page
                if on_page is not None:
                    on_page(*frame[1])
            elif frame[0] != "ready":
                return frame
            ends = time.monotonic() + patience

    def _end(self, process: subprocess.Popen[bytes], page: int | None) -> ParserCrashed:
        self.close()
        code = process.returncode
        if code == OUT_OF_MEMORY_EXIT_CODE:
            return ParserCrashed("out of memory", page)
        return ParserCrashed(signal.Signals(-code).name if code < 0 else f"code {code}", page)


def _receive_frames(stream: IO[bytes], frames: _Frames) -> None:
    """Put each frame on the queue, then None."""
    with stream:
        while True:
            try:
                frames.put(pickle.load(stream))
            except (EOFError, OSError, pickle.UnpicklingError):
                frames.put(None)
                return

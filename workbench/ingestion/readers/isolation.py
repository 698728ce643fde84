"""Reading of files in a process beside this one, so that their parsers take neither its memory nor its turn.

A page over which the parser crashes, or asks for too much memory or time, costs that page: the process is started
again and goes on without it. In files without pages it costs the file.
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
from dataclasses import dataclass
from pathlib import PurePath
from typing import IO, TYPE_CHECKING, Literal, Self, TypeAlias

from workbench.errors import UnreadableDocument
from workbench.formatting import GB, MB
from workbench.ingestion.raw import Draft
from workbench.types.progress import slow_step

if TYPE_CHECKING:
    from workbench.ingestion.ocr.document import OnPage

# --- The search for the pages of a file over which the process that reads it ends ---

STEP = 16  # pages tried at once
FEW = 5  # lost pages from which on a file is given up of which more than half is lost
UNKNOWN = 1_000_000_000  # pages of a file whose number nobody has told yet


def lost_pages(try_pages: Callable[[int, int], int | None]) -> tuple[int, ...] | None:
    """Return the pages, from 1, over which the process ends; None where it ends over most of them.

    ``try_pages(first, last)`` reads some pages; it returns how many the file has, or None where the process ended.
    """
    lost: list[int] = []
    first, total, singly = 1, UNKNOWN, 0
    while first <= total:
        last = first if first <= singly else min(first + STEP - 1, total)
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
    """Tell whether a file is given up of whose first ``pages`` so many are lost."""
    return lost >= FEW and 2 * lost > pages


# --- The messages between an ingest and the process that reads its files ---

OUT_OF_MEMORY = 77  # the exit code of a process that may take no more memory


@dataclass(frozen=True, slots=True)
class ParserRequest:
    """A file to read but for the pages in ``left_out``; with ``only``, pages (first, last) of it are tried instead."""

    name: str
    data: bytes
    left_out: tuple[int, ...] = ()
    only: tuple[int, int] | None = None


# "ready" (the id of the process) comes once, "page" (page, pages) before each page that takes long; "pages" says how
# many a file has of which some were tried.
Frame: TypeAlias = (
    tuple[Literal["ready"], int]
    | tuple[Literal["page"], tuple[int, int]]
    | tuple[Literal["draft"], Draft]
    | tuple[Literal["pages"], int]
    | tuple[Literal["error"], str]
)


ANEW = 16 * MB  # bytes of files after which another process goes on: what a parser took it seldom gives back
MEMORY = 2 * GB  # bytes that the process may take, where the system has such a limit
PATIENCE = 300.0  # seconds that a window of pages, or a page that is read by OCR, may take
PATIENCE_FOR_FEW = 60.0  # seconds that a few pages may take which are tried
ASK = 0.1  # seconds between two looks whether to stop
ENDS_WITHIN = 5.0  # seconds that a killed process is waited for
_Frames: TypeAlias = queue.SimpleQueue[Frame | None]


class ProcessEnded(Exception):
    """The process ended over a request; ``page`` is the one that it had told of last, None where it had not."""

    def __init__(self, cause: str, page: int | None) -> None:
        super().__init__(cause)
        self.cause, self.page = cause, page


class ParserProcess:
    """A process that reads files, started with the first one; one thread at a time uses it."""

    def __init__(self, ask: Callable[[], None], memory: int = MEMORY, patience: float = PATIENCE) -> None:
        """Take ``ask``, which is called while a file is read and may raise to stop.

        ``memory`` is in bytes; ``patience`` in seconds, for a window of pages.
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
        """The id of the process; None before the first file and after the end."""
        return None if self._process is None else self._process.pid

    def draft(self, data: bytes, name: str, on_page: OnPage | None = None) -> Draft:
        """Read a file as ``formats.draft_of`` does; its frames come in a thread, so that nothing here blocks.

        Raises:
            UnreadableDocument: it cannot be read, or the process ended over it, or over most of its pages.
        """
        lost: set[int] = set()
        searched = False
        while True:
            request = ParserRequest(name, data, tuple(sorted(lost)))
            try:
                frame = self._answer(request, on_page, self._patience)
            except ProcessEnded as end:
                if end.page is not None and end.page not in lost and not is_hopeless(len(lost), end.page):
                    lost.add(end.page)
                    continue
                pages = None if searched or not _has_windows(name) else self._lost_pages(request, on_page)
                if pages is None:
                    raise _unreadable(name, end) from None
                searched = True
                lost.update(pages)
                continue
            if frame[0] == "draft":
                self._read += len(data)
                if self._read > ANEW:
                    self.close()
                return frame[1]

    def close(self) -> None:
        """End the process at once."""
        process, self._process, self._read = self._process, None, 0
        if process is not None:
            process.kill()
            process.wait(ENDS_WITHIN)
            if process.stdin is not None:
                _close(process.stdin)

    def _lost_pages(self, request: ParserRequest, on_page: OnPage | None) -> tuple[int, ...] | None:
        """Return the pages over which the process ends when it parses them; None where it ends over most of them."""

        def try_pages(first: int, last: int) -> int | None:
            trial = ParserRequest(request.name, request.data, only=(first, last))
            try:
                frame = self._answer(trial, on_page, min(self._patience, PATIENCE_FOR_FEW))
            except ProcessEnded:
                return None
            return frame[1] if frame[0] == "pages" else None

        return lost_pages(try_pages)

    def _start(self) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "workbench.ingestion.readers.parser_process", str(self._memory)]

        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        self._frames = queue.SimpleQueue()
        threading.Thread(
            target=_receive, args=(self._process.stdout, self._frames), name="parser-frames", daemon=True
        ).start()
        return self._process

    def _answer(self, request: ParserRequest, on_page: OnPage | None, patience: float) -> Frame:
        """Return the frame that answers a request.

        Raises:
            ProcessEnded: the process did, or it was ended because it took too long.
            UnreadableDocument: the file cannot be read.
        """
        first = PATIENCE if self._process is None else patience  # a new process says when it is ready
        process = self._process or self._start()
        try:
            with slow_step():  # it is ended when it takes longer than its patience
                return self._exchange(process, request, on_page, patience, first)
        except UnreadableDocument:
            raise
        except BaseException:  # also when stopped: nobody waits for its answer any more
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
                frame = self._frames.get(timeout=ASK)
            except queue.Empty:
                self._ask()
                if time.monotonic() > ends:
                    raise ProcessEnded(f"no answer in {patience:,.0f} seconds", page) from None
                continue
            if frame is None:
                raise self._end(process, page)
            if frame[0] == "error":
                raise UnreadableDocument(frame[1])
            if frame[0] == "page":
                page = frame[1][0]
                if on_page is not None:
                    on_page(*frame[1])
            elif frame[0] != "ready":
                return frame
            ends = time.monotonic() + patience

    def _end(self, process: subprocess.Popen[bytes], page: int | None) -> ProcessEnded:
        self.close()
        code = process.returncode
        if code == OUT_OF_MEMORY:
            return ProcessEnded("out of memory", page)
        return ProcessEnded(signal.Signals(-code).name if code < 0 else f"code {code}", page)


def _has_windows(name: str) -> bool:
    """Tell whether a file is of a kind whose pages can be tried a few at a time."""
    return PurePath(name).suffix.lower() == ".pdf"


def _unreadable(name: str, end: ProcessEnded) -> UnreadableDocument:
    return UnreadableDocument(f"'{name}' ended the process that read it ({end.cause}). Save it anew, or in parts.")


def _receive(stream: IO[bytes], frames: _Frames) -> None:
    """Put each frame into the queue, and None after the last one."""
    with stream:
        while True:
            try:
                frames.put(pickle.load(stream))
            except (EOFError, OSError, pickle.UnpicklingError):
                frames.put(None)
                return


def _close(stream: IO[bytes]) -> None:
    try:
        stream.close()
    except OSError:  # it has bytes left that nobody takes
        return

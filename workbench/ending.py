"""Ending in order: on SIGTERM and SIGHUP as on Ctrl-C, and at once where native threads would hold the process up.

Either way what was registered for the process's end is done, so that the embedded database ends with its last user.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
from contextlib import suppress
from types import FrameType
from typing import NoReturn

TOLD = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))


def end_in_order() -> None:
    """Let a signal that asks this process to end raise KeyboardInterrupt, once: ``make`` passes its own on.

    By default such a signal ends the interpreter without a word to what has to be closed.
    """
    if threading.current_thread() is not threading.main_thread():
        return
    for number in TOLD:
        signal.signal(number, _interrupt)


def begin_to_end() -> None:
    """Let further signals that ask this process to end pass: it ends already, and has doors to close."""
    for number in TOLD:
        if signal.getsignal(number) is _interrupt:
            signal.signal(number, _wait)


def end_now(code: int = 0) -> NoReturn:
    """End the process although threads of it still work, whose native code would not survive the interpreter's end."""
    atexit._run_exitfuncs()  # pyright: ignore[reportPrivateUsage]
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):  # closed, without a reader, or on a full disk
            stream.flush()
    os._exit(code)


def _interrupt(number: int, frame: FrameType | None) -> None:
    del number, frame
    for ending in TOLD:
        signal.signal(ending, _wait)
    raise KeyboardInterrupt


def _wait(number: int, frame: FrameType | None) -> None:
    """Do nothing: the process ends already."""
    del number, frame

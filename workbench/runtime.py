"""The extras of the package, and process-wide settings: signals, garbage collection and BLAS threads."""

from __future__ import annotations

import atexit
import errno
import gc
import glob
import os
import select
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from types import FrameType
from typing import NoReturn

from workbench.errors import ConfigurationError

# One thread for numpy's matrix products

# numpy from wheels, conda, on a Mac
BLAS_VARIABLES = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")


def limit_blas_threads() -> None:
    """Limit numpy's BLAS to one thread, unless the environment sets a number; call it before numpy is imported."""
    for variable in BLAS_VARIABLES:
        os.environ.setdefault(variable, "1")


# Shutdown on signals

STOP_SIGNALS = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))


def install_signal_handlers() -> None:
    """Raise KeyboardInterrupt on the first SIGTERM or SIGHUP; later ones are ignored (``make`` forwards its own).

    By default such a signal ends the interpreter without closing anything.
    """
    if threading.current_thread() is not threading.main_thread():
        return
    for number in STOP_SIGNALS:
        signal.signal(number, _interrupt)
    sys.unraisablehook = _interrupt_again


def ignore_signals() -> None:
    """Ignore further SIGTERM and SIGHUP: shutdown is already in progress."""
    for number in STOP_SIGNALS:
        if signal.getsignal(number) is _interrupt:
            signal.signal(number, _ignore)


def exit_now(code: int = 0) -> NoReturn:
    """Exit even though threads are still running: their native code would crash during the interpreter's shutdown."""
    atexit._run_exitfuncs()  # pyright: ignore[reportPrivateUsage]
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):  # closed, without a reader, or on a full disk
            stream.flush()
    os._exit(code)


CLOSED_INPUT_INTERVAL_MS = 20  # between checks


@contextmanager
def exit_on_closed_input(is_enabled: bool = True) -> Generator[None]:
    """Exit at once if the client closes standard input inside the block and has written nothing.

    For slow imports, after which no client would be left. Nothing may be open that has to be closed.
    """
    if sys.platform == "win32" or not is_enabled:  # Windows has no poll
        yield
        return
    import fcntl
    import termios

    closed, is_over = select.poll(), threading.Event()
    closed.register(0, getattr(select, "POLLRDHUP", 0))  # a socket that is half closed; a pipe is always reported

    def watch() -> None:
        while not is_over.is_set():
            if closed.poll(CLOSED_INPUT_INTERVAL_MS):
                unread = bytearray(4)
                with suppress(OSError):
                    fcntl.ioctl(0, termios.FIONREAD, unread)
                    if not any(unread) and not is_over.is_set():
                        os._exit(0)
                return

    watching = threading.Thread(target=watch, name="closed-input", daemon=True)
    watching.start()
    try:
        yield
    finally:
        is_over.set()
        watching.join()


def _interrupt(number: int, frame: FrameType | None) -> None:
    for ending in STOP_SIGNALS:
        signal.signal(ending, _ignore)
    raise KeyboardInterrupt


AGAIN_S = 0.05  # seconds after which an interrupt that had no effect is repeated


def _interrupt_again(ignored: sys.UnraisableHookArgs) -> None:
    """Repeat an interrupt that arrived in a destructor or a callback, such as an import has: Python ignores those."""
    if sys.platform == "win32" or ignored.exc_type is not KeyboardInterrupt:
        sys.__unraisablehook__(ignored)
        return
    signal.signal(signal.SIGALRM, _interrupt)
    signal.setitimer(signal.ITIMER_REAL, AGAIN_S)


def _ignore(number: int, frame: FrameType | None) -> None:
    """Do nothing: shutdown is already in progress."""


@dataclass(frozen=True, slots=True)
class Extra:
    """An optional dependency group of the package."""

    name: str
    work: str
    modules: tuple[str, ...]

    @property
    def is_installed(self) -> bool:
        """True if its first module can be imported; pip installs the others with it."""
        return find_spec(self.modules[0]) is not None

    @property
    def sentence(self) -> str:
        """A sentence asking the user to install it."""
        return f"{self.work} needs the extra '{self.name}'; run: pip install 'rag-workbench[{self.name}]'."


EXTRAS: dict[str, Extra] = {
    extra.name: extra
    for extra in (
        Extra(
            "app",
            "The app (and results as tables or plots)",
            ("streamlit", "altair", "pandas", "latex2mathml", "markdown_it", "mdit_py_plugins"),
        ),
        Extra("crawl", "Reading web pages", ("crawl4ai", "playwright", "protego")),
        Extra("eval", "Measuring quality or speed", ("ir_measures", "tiktoken", "bm25s", "matplotlib")),
        Extra("ragas", "Judging with ragas' own prompts", ("ragas", "langchain_community")),
        Extra("local-llm", "A language model on this machine", ("xllamacpp",)),
        Extra("otel", "Telemetry", ("opentelemetry.sdk", "opentelemetry.exporter")),
        Extra("llm", "A language model", ("openai", "llama_index.llms", "llama_index.embeddings")),
    )
}


def check_extra(name: str) -> None:
    """Check that an extra is installed.

    Raises:
        ConfigurationError: The extra is missing; the message has the install command.
    """
    extra = EXTRAS[name]
    if not extra.is_installed:
        raise ConfigurationError(extra.sentence)


def find_missing_extra(error: ModuleNotFoundError) -> ConfigurationError | None:
    """Return the error that names the extra of a missing module, or None if the module belongs to no extra."""
    module = f"{error.name or ''}."
    brings = (extra for extra in EXTRAS.values() if module.startswith(tuple(f"{name}." for name in extra.modules)))
    extra = next(brings, None)
    return ConfigurationError(extra.sentence) if extra else None


# Fewer garbage collections

GC_THRESHOLD = 50_000  # objects: with Python's 700 a search spends a tenth of its time collecting what imports made


def relax_gc() -> None:
    """Raise the collector's threshold; for processes that belong to the workbench."""
    gc.set_threshold(GC_THRESHOLD)


@contextmanager
def pause_gc() -> Generator[None]:
    """Disable collection inside the block; objects made in it count as old, so only full collections examine them."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if not gc.get_freeze_count():  # else the caller has frozen objects of its own, which would thaw
            gc.freeze()
            gc.unfreeze()  # into the oldest generation, whichever they were in
        if collects:
            gc.enable()


# Version, kept here so that lower layers need not import the package root

__version__ = "0.1.0"


def replace_file(path: Path, data: bytes, mode: int | None = None) -> None:
    """Write a file atomically: readers find the old file or the whole new one.

    Args:
        path: The file; missing folders are created.
        data: Its content.
        mode: Its permissions; by default only its owner can read it.

    Raises:
        OSError: The folder is not writable, or the disk is full.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with write_aside(path) as temporary:
        temporary.write_bytes(data)
        if mode is not None:
            temporary.chmod(mode)


ABANDONED_AFTER_S = 86_400.0  # seconds after the last write to an unfinished file


@contextmanager
def write_aside(target: Path) -> Generator[Path]:
    """Yield a new file in the folder of ``target``, which it replaces once it is complete and on the disk.

    Several processes may write the same target: each has a file of its own. One that a killed process left is
    deleted by the first write a day later. A link is followed.

    Raises:
        OSError: The folder is not writable, the disk is full, or the target is a folder, device or pipe.
    """
    if target.exists() and not target.is_file():
        raise OSError(errno.EINVAL, "it is not a file")
    target = target.resolve()
    for abandoned in target.parent.glob(f".{glob.escape(target.name)}.????????.part"):
        with suppress(OSError):
            if time.time() - abandoned.stat().st_mtime > ABANDONED_AFTER_S:
                abandoned.unlink()
    number, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".part", dir=target.parent)
    os.close(number)
    temporary = Path(name)
    try:
        yield temporary
        with temporary.open("rb+") as written:
            os.fsync(written.fileno())
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)

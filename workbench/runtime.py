"""The extras of the package, and the sentence that names the one which a piece of work needs."""

from __future__ import annotations

import atexit
import gc
import os
import signal
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from types import FrameType
from typing import NoReturn

from workbench.errors import ConfigurationError

# --- Matrix products of numpy on the thread that asks for them, in the processes that are ours ---

VARIABLES = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")  # numpy from wheels, conda, on a Mac


def multiply_on_one_thread() -> None:
    """Set numpy's threads to one, before numpy is imported; what the environment says already stays."""
    for variable in VARIABLES:
        os.environ.setdefault(variable, "1")


# --- Ending in order: on SIGTERM and SIGHUP as on Ctrl-C, and at once where native threads would hold the ---

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


@dataclass(frozen=True, slots=True)
class Extra:
    """An extra: the work that needs it, as the subject of a sentence, and the modules that it brings."""

    name: str
    work: str
    modules: tuple[str, ...]

    @property
    def is_installed(self) -> bool:
        """True when its first module is there; the others come with it."""
        return find_spec(self.modules[0]) is not None

    @property
    def sentence(self) -> str:
        """The sentence for a person without it."""
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
        Extra(
            "eval",
            "Measuring quality or speed",
            ("ir_measures", "ragas", "langchain_core", "langchain_community", "tiktoken", "bm25s", "matplotlib"),
        ),
        Extra("local-llm", "A language model on this machine", ("xllamacpp",)),
        Extra("otel", "Telemetry", ("opentelemetry.sdk", "opentelemetry.exporter")),
        Extra("llm", "A language model", ("openai", "llama_index.llms", "llama_index.embeddings")),
    )
}


def check_extra(name: str) -> None:
    """Let work begin that needs an extra.

    Raises:
        ConfigurationError: the extra is not installed; the sentence says how to install it.
    """
    extra = EXTRAS[name]
    if not extra.is_installed:
        raise ConfigurationError(extra.sentence)


def missing_extra(error: ModuleNotFoundError) -> ConfigurationError | None:
    """Return the error that names the extra of a module that could not be imported; None for any other module."""
    module = f"{error.name or ''}."
    brings = (extra for extra in EXTRAS.values() if module.startswith(tuple(f"{name}." for name in extra.modules)))
    extra = next(brings, None)
    return ConfigurationError(extra.sentence) if extra else None


# --- Python's garbage collector, kept from looking again and again at what imports made and what stays ---

COLLECT_AFTER = 50_000  # objects: with Python's 700 a search spends a tenth of its time collecting what imports made


def collect_seldom() -> None:
    """Let the collector wait for more objects than by default; for a process that is ours."""
    gc.set_threshold(COLLECT_AFTER)


@contextmanager
def nothing_is_garbage() -> Generator[None]:
    """Collect nothing meanwhile, and let all there is count as old at the end: only full collections look at it."""
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


# --- The version of the workbench, for every layer: the package's front door may not be opened from below ---

__version__ = "0.1.0"

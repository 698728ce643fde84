"""A progress bar on stderr, or in a notebook's cell."""

from __future__ import annotations

import warnings
from collections.abc import Generator
from contextlib import contextmanager

from workbench.types import Countdown, OnProgress, Progress, time_left


@contextmanager
def progress_bar(title: str, instead: OnProgress | None = None, *, unit: str = "doc") -> Generator[OnProgress]:
    """Yield a function that shows progress; ``instead`` takes its place where a caller shows its own.

    ``unit`` is what is counted, empty where that changes on the way.
    """
    if instead is not None:
        yield instead
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # in a notebook without ipywidgets, which the bar can do without
        from tqdm.auto import tqdm

    countdown = Countdown()
    with tqdm(total=0, desc=title, unit=unit, leave=False) as bar:

        def show(progress: Progress) -> None:
            bar.total = progress.total
            bar.n = int(progress.done_share * progress.total) if progress.total else progress.done
            parts = (progress.message, time_left(countdown.take(progress)))
            bar.set_postfix_str(", ".join(filter(None, parts)), refresh=True)

        yield show

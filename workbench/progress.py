"""A progress bar on stderr, or in a notebook's cell."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from workbench.types import Progress

OnProgress = Callable[[Progress], None]


@contextmanager
def progress_bar(title: str, instead: OnProgress | None = None) -> Iterator[OnProgress]:
    """Yield a function that shows progress; ``instead`` takes its place where a caller shows its own."""
    if instead is not None:
        yield instead
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # in a notebook without ipywidgets, which the bar can do without
        from tqdm.auto import tqdm

    with tqdm(total=0, desc=title, unit="doc", leave=False) as bar:

        def show(progress: Progress) -> None:
            bar.total = progress.total
            bar.n = progress.done
            bar.set_postfix_str(progress.message, refresh=True)

        yield show

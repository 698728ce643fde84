"""Human-readable formatting: progress bars, sizes and counts; also parsing of ``name=value`` options."""

from __future__ import annotations

import warnings
from collections.abc import Generator, Sequence
from contextlib import contextmanager

from workbench.errors import InvalidInput
from workbench.types import Countdown, OnProgress, Progress, time_left_text

# Options of the form name=value


def parse_assignments(texts: Sequence[str], option: str) -> dict[str, str]:
    """Parse ``name=value`` texts. Raises InvalidInput if a text has another form; the message names the option."""
    pairs = {}
    for text in texts:
        name, sign, value = text.partition("=")
        if not sign or not name.strip():
            raise InvalidInput(f"Invalid {option} {text!r}: expected name=value.")
        pairs[name.strip()] = value.strip()
    return pairs


@contextmanager
def progress_bar(title: str, instead: OnProgress | None = None) -> Generator[OnProgress]:
    """Yield a function that shows progress on stderr or in a notebook's cell.

    Args:
        title: Text before the bar.
        instead: Callback of a caller that shows progress itself; it replaces the bar.
    """
    if instead is not None:
        yield instead
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about ipywidgets, which is optional
        from tqdm.auto import tqdm

    countdown = Countdown()
    with tqdm(total=0, desc=title, leave=False) as bar:

        def show(progress: Progress) -> None:
            bar.total = progress.total
            bar.n = int(progress.done_share * progress.total) if progress.total else progress.done
            parts = (progress.message, time_left_text(countdown.take(progress)))
            bar.set_postfix_str(", ".join(filter(None, parts)), refresh=True)

        yield show


# Sizes in decimal multiples of bytes, and counts

KB, MB, GB = 1_000, 1_000_000, 1_000_000_000  # bytes


def size_text(count: int) -> str:
    """Return a human-readable size: ``812 bytes``, ``12.3 MB``."""
    for unit, name in ((GB, "GB"), (MB, "MB"), (KB, "kB")):
        if count >= unit:
            return f"{count / unit:,.1f} {name}"
    return f"{count:,} bytes"


def count_text(number: int, noun: str) -> str:
    """Return "1 source", "2 sources"."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def sources_text(own: int, family: int) -> str:
    """Return "2 sources", and how many others have conversations, articles or archives, if any."""
    others = f" and {family:,} with conversations, articles or archives" if family else ""
    return count_text(own, "source") + others


def format_dollars(amount: float) -> str:
    """Return an amount of money with two digits that count, such as "$12.30" or "$0.0042"."""
    return f"${amount:,.2f}" if amount >= 1 else f"${float(f'{amount:.2g}'):.10f}".rstrip("0").rstrip(".")

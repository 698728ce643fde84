"""Options of one crawl; every field has a default that suits a documentation site."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Literal, cast

from workbench.errors import InvalidInput, choices
from workbench.formatting import KB, MB
from workbench.types import Value

MOST_PAGES = 100_000
MOST_PATTERNS, LONGEST_PATTERN = 200, 500  # patterns of one option; characters of one
WORDS: dict[str, tuple[str, ...]] = {
    "within": ("path", "host", "domain"), "browser": ("auto", "always", "never"), "gone": ("remove", "keep"),
}  # fmt: skip
SWITCHES = ("recursive", "sitemaps", "refresh", "accept_removals")
COUNTS: dict[str, tuple[int, int]] = {
    "max_pages": (1, MOST_PAGES), "max_depth": (0, 1000), "max_bytes": (KB, 200 * MB), "retries": (0, 10),
    "concurrency": (1, 32),
}  # fmt: skip
MEASURES: dict[str, tuple[float, float]] = {
    "rate": (0.01, 1000), "timeout": (0.1, 600), "backoff": (0, 60), "longest_wait": (0, 3600),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class CrawlOptions(Value):
    """How far a crawl goes and how it behaves.

    ``within``: "path" (the start page's folder), "host", or "domain" (its subdomains, too). ``include`` and
    ``exclude`` are substrings of the address, or globs where they hold ``*``, ``?`` or ``[``; exclude wins.
    ``browser``: "auto" renders pages that come empty without JavaScript. ``gone``: what becomes of a document whose
    page answers 404 or 410. ``refresh`` asks for every page in full, whatever an earlier crawl knows of it.
    ``accept_removals`` lets a crawl remove or replace more of a source than it would without being asked. ``rate``:
    requests a second and host (0 is the polite rate, unlimited for allowed local hosts); a delay that robots.txt asks
    for holds beside it. ``concurrency``: requests at once over all hosts. ``timeout`` in seconds for a whole page,
    ``max_bytes`` of its body after decompression. ``backoff``: seconds before the first retry, doubled for each
    further one; ``longest_wait``: the longest Retry-After in seconds that is obeyed.
    """

    recursive: bool = True
    max_pages: int = 500
    max_depth: int = 25
    within: Literal["path", "host", "domain"] = "path"
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    sitemaps: bool = True
    browser: Literal["auto", "always", "never"] = "auto"
    gone: Literal["remove", "keep"] = "remove"
    refresh: bool = False
    accept_removals: bool = False
    rate: float = 0.0
    concurrency: int = 8
    timeout: float = 30.0
    max_bytes: int = 20 * MB
    retries: int = 3
    backoff: float = 1.0
    longest_wait: float = 120.0

    @classmethod
    def read(cls, given: Mapping[str, object]) -> CrawlOptions:
        """Return options from plain values, checked.

        Raises:
            InvalidInput: an unknown name, or a value out of its range.
        """
        names = {item.name for item in fields(cls)}
        for name in given:
            if name not in names:
                raise InvalidInput(f"A crawl has no option {name!r}; its options are {choices(sorted(names), 20)}.")
        checked = {name: CHECKS[name](name, value) for name, value in given.items() if value is not None}
        return replace(cls(), **checked)  # pyright: ignore[reportArgumentType] - each field has the check of its type

    def excludes(self, url: str) -> str | None:
        """Return which pattern excludes an address, or None; this holds for the start page too."""
        for pattern in self.exclude:
            if matches(pattern, url):
                return f"excluded by the pattern {pattern!r}"
        return None

    def refuses(self, url: str) -> str | None:
        """Return the reason for which the patterns leave an address out, or None."""
        if excluded := self.excludes(url):
            return excluded
        if self.include and not any(matches(pattern, url) for pattern in self.include):
            return f"not included by {choices(self.include, 5)}"
        return None


def matches(pattern: str, url: str) -> bool:
    """Tell whether a pattern (substring, or glob over the whole address) fits an address."""
    if any(char in pattern for char in "*?["):
        return fnmatch.fnmatchcase(url, pattern) or fnmatch.fnmatchcase(url, f"*{pattern}")
    return pattern in url


def _pattern_list(name: str, value: object) -> tuple[str, ...]:
    patterns = list(cast("Sequence[object]", value)) if isinstance(value, list | tuple) else [None]
    texts = [pattern for pattern in patterns if isinstance(pattern, str)]
    if len(texts) < len(patterns):
        raise InvalidInput(f"{name} is a list of patterns, such as ['/archive/', '*/tag/*']; it cannot be {value!r}.")
    if len(texts) > MOST_PATTERNS or any(len(text) > LONGEST_PATTERN for text in texts):
        raise InvalidInput(
            f"{name} holds at most {MOST_PATTERNS} patterns of at most {LONGEST_PATTERN} characters each; use fewer."
        )
    return tuple(text for text in texts if text.strip())


def _word(name: str, value: object) -> str:
    if not isinstance(value, str) or value not in WORDS[name]:
        raise InvalidInput(f"{name} cannot be {value!r}; use one of {choices(WORDS[name])}.")
    return value


def _switch(name: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise InvalidInput(f"{name} cannot be {value!r}; use true or false.")
    return value


def _count(name: str, value: object) -> int:
    low, high = COUNTS[name]
    number = _number(value)
    if number is None or not low <= number <= high or number != int(number):
        raise InvalidInput(f"{name} cannot be {value!r}; use a whole number from {low:,} to {high:,}.")
    return int(number)


def _measure(name: str, value: object) -> float:
    low, high = MEASURES[name]
    number = _number(value)
    if name == "rate" and number == 0:
        return 0.0
    if number is None or not low <= number <= high:
        polite = ", or 0 for a polite rate" if name == "rate" else ""
        raise InvalidInput(f"{name} cannot be {value!r}; use a number from {low:g} to {high:g}{polite}.")
    return float(number)


def _number(value: object) -> int | float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


CHECKS: dict[str, Callable[[str, object], tuple[str, ...] | str | bool | int | float]] = {
    **dict.fromkeys(("include", "exclude"), _pattern_list),
    **dict.fromkeys(WORDS, _word),
    **dict.fromkeys(SWITCHES, _switch),
    **dict.fromkeys(COUNTS, _count),
    **dict.fromkeys(MEASURES, _measure),
}

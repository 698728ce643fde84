"""What one crawl may do; every field has a default that suits a documentation site."""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal

from workbench.errors import InvalidInput, choices
from workbench.types import Value

MOST_PAGES = 100_000
WITHIN = ("path", "host", "domain")
BROWSER = ("auto", "always", "never")
GONE = ("remove", "keep")
RANGES: dict[str, tuple[float, float]] = {
    "max_pages": (1, MOST_PAGES), "max_depth": (0, 1000), "timeout": (0.1, 600), "max_bytes": (1_000, 200_000_000),
    "retries": (0, 10), "backoff": (0, 60), "longest_wait": (0, 3600), "concurrency": (1, 32),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class CrawlOptions(Value):
    """How far a crawl goes and how it behaves.

    ``within``: "path" (the start page's folder), "host", or "domain" (its subdomains, too). ``include`` and
    ``exclude`` are substrings of the address, or globs where they hold ``*``, ``?`` or ``[``; exclude wins.
    ``browser``: "auto" renders what comes back empty without JavaScript. ``gone``: what becomes of a document whose
    page answers 404 or 410. ``rate``: requests a second and host (0: what is polite; unlimited for allowed local
    hosts). ``timeout`` in seconds for a whole page, ``max_bytes`` of its body after decompression.
    ``backoff``: seconds before the first retry, doubled for each further one; ``longest_wait``: the longest
    Retry-After that is waited for.
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
    rate: float = 0.0
    concurrency: int = 8
    timeout: float = 30.0
    max_bytes: int = 20_000_000
    retries: int = 3
    backoff: float = 1.0
    longest_wait: float = 120.0

    @classmethod
    def read(cls, given: Mapping[str, Any]) -> CrawlOptions:
        """Return options from plain values, checked.

        Raises:
            InvalidInput: an unknown name, or a value out of its range.
        """
        known = {item.name for item in fields(cls)}
        for name in given:
            if name not in known:
                raise InvalidInput(f"A crawl has no option {name!r}; its options are {choices(sorted(known), 20)}.")
        values = {name: value for name, value in given.items() if value is not None}
        for name in ("include", "exclude"):
            values[name] = _patterns(name, values.get(name, ()))
        for name, valid in (("within", WITHIN), ("browser", BROWSER), ("gone", GONE)):
            if values.get(name, valid[0]) not in valid:
                raise InvalidInput(f"{name} cannot be {values[name]!r}; use one of {choices(valid)}.")
        for name, (low, high) in RANGES.items():
            value = values.get(name, low)
            if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
                raise InvalidInput(f"{name} cannot be {value!r}; use a number from {low:g} to {high:g}.")
        return cls(**values)

    def refuses(self, url: str) -> str | None:
        """Say which pattern keeps an address out, or None."""
        for pattern in self.exclude:
            if matches(pattern, url):
                return f"excluded by the pattern {pattern!r}"
        if self.include and not any(matches(pattern, url) for pattern in self.include):
            return f"not included by {choices(self.include, 5)}"
        return None


def matches(pattern: str, url: str) -> bool:
    """Tell whether a pattern (substring, or glob over the whole address) fits an address."""
    if any(char in pattern for char in "*?["):
        return fnmatch.fnmatchcase(url, pattern) or fnmatch.fnmatchcase(url, f"*{pattern}")
    return pattern in url


def _patterns(name: str, value: Any) -> tuple[str, ...]:
    if isinstance(value, str) or not isinstance(value, Sequence) or not all(isinstance(item, str) for item in value):
        raise InvalidInput(f"{name} is a list of patterns, such as ['/archive/', '*/tag/*'].")
    return tuple(item for item in value if item.strip())

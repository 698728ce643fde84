"""Options of a crawl, with defaults that suit a documentation site."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Literal, cast

from workbench.errors import InvalidInput, list_choices
from workbench.formatting import KB, MB
from workbench.types import Value

MAX_PAGES = 100_000
MAX_PATTERNS, MAX_PATTERN_CHARS = 200, 500  # patterns per option; characters per pattern
CHOICE_OPTIONS: dict[str, tuple[str, ...]] = {
    "within": ("path", "host", "domain"), "browser": ("auto", "always", "never"), "gone": ("remove", "keep"),
}  # fmt: skip
BOOL_OPTIONS = ("recursive", "sitemaps", "refresh", "accept_removals")
INT_OPTION_RANGES: dict[str, tuple[int, int]] = {
    "max_pages": (1, MAX_PAGES), "max_depth": (0, 1000), "max_bytes": (KB, 200 * MB), "retries": (0, 10),
    "concurrency": (1, 32),
}  # fmt: skip
FLOAT_OPTION_RANGES: dict[str, tuple[float, float]] = {
    "rate": (0.01, 1000), "timeout": (0.1, 600), "backoff": (0, 60), "longest_wait": (0, 3600),
}  # fmt: skip
UNFETCHED_OUTCOMES = ("forbidden", "not_allowed", "left_out")  # outcomes of addresses that are not fetched


@dataclass(frozen=True, slots=True)
class CrawlOptions(Value):
    """Extent and behaviour of a crawl.

    Attributes:
        recursive: Whether to follow links.
        max_pages: Maximum number of pages.
        max_depth: Maximum number of links from the start page.
        within: "path" (the start page's folder), "host", or "domain" (also its subdomains).
        include: Patterns of addresses to fetch: substrings, or globs if they contain ``*``, ``?`` or ``[``.
        exclude: Patterns of addresses not to fetch; they take precedence.
        sitemaps: Whether to read sitemaps and llms.txt.
        browser: "auto" renders pages that are empty without JavaScript.
        gone: What to do with a document whose page answers 404 or 410.
        refresh: Whether to fetch every page in full, even if unchanged since an earlier crawl.
        accept_removals: Whether the crawl may remove or replace a large share of a source.
        rate: Requests per second and host; 0 selects a polite rate, which is unlimited for allowed local hosts. A delay
            in robots.txt also applies.
        concurrency: Simultaneous requests over all hosts.
        timeout: Seconds for a whole page.
        max_bytes: Maximum size of a decompressed body.
        retries: Number of retries.
        backoff: Seconds before the first retry; doubled for each subsequent one.
        longest_wait: Longest Retry-After, in seconds, that is honoured.
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
        """Return checked options from plain values.

        Raises:
            InvalidInput: A name is unknown, or a value out of range.
        """
        names = {item.name for item in fields(cls)}
        for name in given:
            if name not in names:
                raise InvalidInput(f"Unknown crawl option {name!r}. Choose from {list_choices(sorted(names), 20)}.")
        checked = {name: OPTION_CHECKS[name](name, value) for name, value in given.items() if value is not None}
        return replace(cls(), **checked)  # pyright: ignore[reportArgumentType] - types are checked above

    def excludes(self, url: str) -> str | None:
        """Return a message with the pattern that excludes an address, or None. The start page is checked, too."""
        for pattern in self.exclude:
            if matches_pattern(pattern, url):
                return f"excluded by the pattern {pattern!r}"
        return None

    def refuses(self, url: str) -> str | None:
        """Return why the patterns exclude an address, or None."""
        if excluded := self.excludes(url):
            return excluded
        if self.include and not any(matches_pattern(pattern, url) for pattern in self.include):
            return f"not included by {list_choices(self.include, 5)}"
        return None


def matches_pattern(pattern: str, url: str) -> bool:
    """Return whether a pattern (substring, or glob over the whole address) matches an address."""
    if any(char in pattern for char in "*?["):
        return fnmatch.fnmatchcase(url, pattern) or fnmatch.fnmatchcase(url, f"*{pattern}")
    return pattern in url


def _check_patterns(name: str, value: object) -> tuple[str, ...]:
    patterns = list(cast("Sequence[object]", value)) if isinstance(value, list | tuple) else [None]
    texts = [pattern for pattern in patterns if isinstance(pattern, str)]
    if len(texts) < len(patterns):
        raise InvalidInput(f"Invalid {name} {value!r}: expected a list of patterns, such as ['/archive/', '*/tag/*'].")
    if len(texts) > MAX_PATTERNS or any(len(text) > MAX_PATTERN_CHARS for text in texts):
        raise InvalidInput(
            f"Too many or too long patterns in {name}: at most {MAX_PATTERNS} of {MAX_PATTERN_CHARS} characters."
        )
    return tuple(text for text in texts if text.strip())


def _check_choice(name: str, value: object) -> str:
    if not isinstance(value, str) or value not in CHOICE_OPTIONS[name]:
        raise InvalidInput(f"Invalid {name} {value!r}: choose one of {list_choices(CHOICE_OPTIONS[name])}.")
    return value


def _check_bool(name: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise InvalidInput(f"Invalid {name} {value!r}: expected true or false.")
    return value


def _check_int(name: str, value: object) -> int:
    low, high = INT_OPTION_RANGES[name]
    number = _parse_number(value)
    if number is None or not low <= number <= high or number != int(number):
        raise InvalidInput(f"Invalid {name} {value!r}: expected an integer from {low:,} to {high:,}.")
    return int(number)


def _check_float(name: str, value: object) -> float:
    low, high = FLOAT_OPTION_RANGES[name]
    number = _parse_number(value)
    if name == "rate" and number == 0:
        return 0.0
    if number is None or not low <= number <= high:
        polite = ", or 0 for a polite rate" if name == "rate" else ""
        raise InvalidInput(f"Invalid {name} {value!r}: expected a number from {low:g} to {high:g}{polite}.")
    return float(number)


def _parse_number(value: object) -> int | float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


OPTION_CHECKS: dict[str, Callable[[str, object], tuple[str, ...] | str | bool | int | float]] = {
    **dict.fromkeys(("include", "exclude"), _check_patterns),
    **dict.fromkeys(CHOICE_OPTIONS, _check_choice),
    **dict.fromkeys(BOOL_OPTIONS, _check_bool),
    **dict.fromkeys(INT_OPTION_RANGES, _check_int),
    **dict.fromkeys(FLOAT_OPTION_RANGES, _check_float),
}

"""Options of a crawl, with defaults that suit a documentation site, and its status messages for every interface."""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from math import nan
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
NUMBER_OPTION_RANGES: dict[str, tuple[float, float]] = {  # integers if the range has integers
    "max_pages": (1, MAX_PAGES), "max_depth": (0, 1000), "max_bytes": (KB, 200 * MB), "retries": (0, 10),
    "concurrency": (1, 32), "rate": (0.01, 1000), "timeout": (0.1, 600), "backoff": (0.0, 60),
    "longest_wait": (0.0, 3600),
}  # fmt: skip
UNFETCHED_OUTCOMES = ("forbidden", "not_allowed", "left_out")  # outcomes of addresses that are not fetched


@dataclass(frozen=True, slots=True)
class CrawlOptions(Value):
    """Extent and behaviour of a crawl."""

    recursive: bool = True  # whether to follow links
    max_pages: int = 500
    max_depth: int = 25  # links from the start page
    within: Literal["path", "host", "domain"] = "path"  # the start page's folder, its host, or also its subdomains
    include: tuple[str, ...] = ()  # addresses to fetch: substrings, or globs if they contain ``*``, ``?`` or ``[``
    exclude: tuple[str, ...] = ()  # addresses not to fetch; they take precedence
    sitemaps: bool = True  # whether to read sitemaps and llms.txt
    browser: Literal["auto", "always", "never"] = "auto"  # "auto" renders pages that are empty without JavaScript
    gone: Literal["remove", "keep"] = "remove"  # a document whose page answers 404 or 410
    refresh: bool = False  # whether to fetch every page in full, even if unchanged since an earlier crawl
    accept_removals: bool = False  # whether the crawl may remove or replace a large share of a source
    # Requests per second and host; 0 selects a polite rate, which is unlimited for allowed local hosts. A delay in
    # robots.txt also applies.
    rate: float = 0.0
    concurrency: int = 8  # simultaneous requests over all hosts
    timeout: float = 30.0  # seconds for a whole page
    max_bytes: int = 20 * MB  # of a decompressed body
    retries: int = 3
    backoff: float = 1.0  # seconds before the first retry; doubled for each subsequent one
    longest_wait: float = 120.0  # longest Retry-After, in seconds, that is honoured

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
        checked = {name: _check(name, value) for name, value in given.items() if value is not None}
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


def _check(name: str, value: object) -> tuple[str, ...] | str | bool | float:
    """Return the value of an option, checked."""
    if name in ("include", "exclude"):
        return _check_patterns(name, value)
    if name in CHOICE_OPTIONS:
        if not isinstance(value, str) or value not in CHOICE_OPTIONS[name]:
            raise InvalidInput(f"Invalid {name} {value!r}: choose one of {list_choices(CHOICE_OPTIONS[name])}.")
        return value
    if name in BOOL_OPTIONS:
        if not isinstance(value, bool):
            raise InvalidInput(f"Invalid {name} {value!r}: expected true or false.")
        return value
    low, high = NUMBER_OPTION_RANGES[name]
    number = value if isinstance(value, int | float) and not isinstance(value, bool) else nan
    if name == "rate" and number == 0:
        return 0.0
    if isinstance(low, int):
        if not low <= number <= high or number != int(number):
            raise InvalidInput(f"Invalid {name} {value!r}: expected an integer from {low:,} to {high:,}.")
        return int(number)
    if not low <= number <= high:
        polite = ", or 0 for a polite rate" if name == "rate" else ""
        raise InvalidInput(f"Invalid {name} {value!r}: expected a number from {low:g} to {high:g}{polite}.")
    return float(number)


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


# Status messages

_WORDS = {
    "left_out": "left out", "not_allowed": "not allowed", "held": "not removed yet",
    "fetched": "to be stored", "queued": "to be fetched",
}  # fmt: skip


def outcome_label(outcome: str) -> str:
    """Return the display name of a page's outcome or state."""
    return _WORDS.get(outcome, outcome)


def describe_progress(done: int, total: int, *, stored_next: int, fetched_next: int, failed: int) -> str:
    """Return the status of a running crawl; ``failed`` pages are among those done."""
    return (
        f"{done:,} of {total:,} pages done, {stored_next:,} {outcome_label('fetched')}, {fetched_next:,} "
        f"{outcome_label('queued')}, "
        f"{failed:,} failed"
    )


def describe_held_removals(count: int, documents: int) -> str:
    """Return the message about removals that wait for confirmation."""
    return (
        f"Nothing was removed: {count:,} of {documents:,} documents would be, more than 20%. "
        "If this is expected, accept the removals."
    )


def describe_result(done: int, total: int, outcomes: Mapping[str, int]) -> str:
    """Return the final status of a crawl: pages by outcome, which add up to those done, then pages not fetched.

    Args:
        done: Pages that were visited.
        total: Pages to visit.
        outcomes: Number of pages by outcome.
    """
    parts = {name: f"{count:,} {outcome_label(name)}" for name, count in outcomes.items() if count}
    settled = ", ".join(part for name, part in parts.items() if name not in UNFETCHED_OUTCOMES)
    kept_out = ", ".join(part for name, part in parts.items() if name in UNFETCHED_OUTCOMES)
    message = f"{done:,} of {total:,} pages done: {settled or 'nothing new'}."
    return f"{message} Not fetched: {kept_out}." if kept_out else message

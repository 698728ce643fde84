"""robots.txt as Protego reads it (RFC 9309), with the rule that forbids an address, which people are told."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

from protego import Protego

from workbench.crawling.urls import path_of

LONGEST = 512_000  # characters that are read; the RFC asks for at least 500 KiB
LONGEST_DELAY = 60.0  # seconds; a site that asks for more gets this: slower than any crawl can use
MOST_NAMED = 1_000  # rules of one file that are told apart; with more of them the address alone is told
DISALLOW = re.compile(r"^([ \t]*disallow[ \t]*:[ \t]*)([^\s#][^\n#]*)", re.IGNORECASE | re.MULTILINE)
HOST = "http://robots.invalid"  # rules are about paths: the host does not matter


@dataclass(frozen=True)
class Robots:
    """The rules of one host's robots.txt for a user agent's product token; an empty text forbids nothing."""

    text: str = ""
    agent: str = ""
    trouble: str = ""  # why the site could not be asked for the file; nothing is fetched, and nothing removed
    barred: str = ""  # why this workbench may not connect to the host

    @property
    def crawl_delay(self) -> float:
        """Seconds between two requests that the host asks for, by Crawl-delay or Request-rate; 0 where by neither."""
        rate = self._protego.request_rate(self.agent)
        delays = [self._protego.crawl_delay(self.agent) or 0.0, rate.seconds / rate.requests if rate else 0.0]
        return min(LONGEST_DELAY, max(delays))

    @property
    def sitemaps(self) -> tuple[str, ...]:
        """The sitemaps it names, as they stand there."""
        return tuple(self._protego.sitemaps)

    def refuses(self, url: str) -> str | None:
        """Return the rule that forbids an address, or None."""
        if self._protego.can_fetch(url, self.agent):
            return None
        matching = [rule for rule, alone in self._rules if not alone.can_fetch(url, self.agent)]
        return f"robots.txt forbids {max(matching, key=len, default=path_of(url))}"

    @cached_property
    def _protego(self) -> Protego:
        return Protego.parse(self.text)

    @cached_property
    def _rules(self) -> list[tuple[str, Protego]]:
        """The rules that are for this agent, each as a file of its own.

        Protego tells whether an address is forbidden and not by which rule. So each rule's path is replaced by a
        number, and the numbers that are forbidden are the rules of the groups that apply.
        """
        rules = [match.group(2).strip() for match in DISALLOW.finditer(self.text)][:MOST_NAMED]
        numbers = iter(range(len(rules) + 1))
        numbered = DISALLOW.sub(lambda match: f"{match.group(1)}/{next(numbers, '')}$", self.text, count=len(rules))
        groups = Protego.parse(re.sub(r"(?im)^\s*allow\s*:.*$", "", numbered))
        ours = [rule for n, rule in enumerate(rules) if not groups.can_fetch(f"{HOST}/{n}", self.agent)]
        return [(rule, Protego.parse(f"User-agent: *\nDisallow: {rule}")) for rule in ours]


def unreadable(reason: str) -> Robots:
    """Return the rules of a host that cannot answer for them now: it is not crawled."""
    return Robots(trouble=f"robots.txt could not be read, so nothing is fetched there. {reason}")


def parse(text: str, agent: str) -> Robots:
    """Read a robots.txt for a user agent's product token. Lines that make no sense are skipped."""
    return Robots(text[:LONGEST].lstrip("\ufeff"), agent)

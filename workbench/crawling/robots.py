"""robots.txt as RFC 9309 reads it: the most specific agent's group, the longest matching rule, allow wins ties."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from urllib.parse import quote, unquote

from workbench.crawling.urls import path_of

LONGEST = 512_000  # bytes that are read; the RFC asks for at least 500 KiB
LONGEST_DELAY = 60.0  # seconds; a site that asks for more gets this: slower than any crawl can use


@dataclass(frozen=True, slots=True)
class Rule:
    """One allow or disallow line."""

    allow: bool
    path: str


Group = tuple[list[str], list[Rule], list[float]]  # agents, rules, delays


@dataclass(frozen=True, slots=True)
class Robots:
    """What one host's robots.txt says to us; ``crawl_delay`` in seconds between two requests."""

    rules: tuple[Rule, ...] = ()
    crawl_delay: float = 0.0
    sitemaps: tuple[str, ...] = ()
    trouble: str = ""  # why the file could not be read, where that forbids everything

    def refuses(self, url: str) -> str | None:
        """Say which rule forbids an address, or None."""
        if self.trouble:
            return self.trouble
        path = _normal(path_of(url))
        best = max(
            (rule for rule in self.rules if _pattern(rule.path).match(path)),
            key=lambda rule: (len(rule.path), rule.allow),
            default=None,
        )
        return None if best is None or best.allow else f"robots.txt forbids {best.path}"


def unreadable(reason: str) -> Robots:
    """Return the rules of a host that cannot answer for them now: it is not crawled."""
    return Robots(trouble=f"robots.txt could not be read, so nothing is fetched there. {reason}")


def parse(text: str, agent: str) -> Robots:
    """Read a robots.txt for a user agent's product token. Lines that make no sense are skipped."""
    groups: list[Group] = []
    sitemaps: list[str] = []
    in_agents = False
    for line in text[:LONGEST].lstrip("\ufeff").splitlines():
        name, colon, value = line.split("#", 1)[0].partition(":")
        name, value = name.strip().lower(), value.strip()
        if not colon:
            continue
        if name == "sitemap":
            sitemaps.append(value)
        elif name == "user-agent":
            if not in_agents:
                groups.append(([], [], []))
            groups[-1][0].append(value.lower())
            in_agents = True
        elif groups and name in ("allow", "disallow"):
            in_agents = False
            if value:
                groups[-1][1].append(Rule(name == "allow", _normal(value)))
        elif groups and name == "crawl-delay":
            in_agents = False
            groups[-1][2].extend(_seconds(value))
    chosen = _groups_for(groups, agent.lower())
    delays = [delay for _, _, found in chosen for delay in found]
    return Robots(tuple(rule for _, rules, _ in chosen for rule in rules), max(delays, default=0.0), tuple(sitemaps))


def _groups_for(groups: list[Group], agent: str) -> list[Group]:
    ours = [group for group in groups if any(name != "*" and name and agent.startswith(name) for name in group[0])]
    return ours or [group for group in groups if "*" in group[0]]


def _seconds(value: str) -> list[float]:
    try:
        return [min(LONGEST_DELAY, max(0.0, float(value)))]
    except ValueError:
        return []


def _normal(path: str) -> str:
    return quote(unquote(path), safe="/*$?&=:;,+@!'()~%")


@cache
def _pattern(path: str) -> re.Pattern[str]:
    end = path.endswith("$")
    pieces = (re.escape(piece) for piece in path.removesuffix("$").split("*"))
    return re.compile(".*".join(pieces) + (r"\Z" if end else ""), re.DOTALL)

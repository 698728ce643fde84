"""Manners towards each host: how many requests at once, how far apart, and when it asked for a pause."""

from __future__ import annotations

import asyncio
import email.utils
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime

POLITE_INTERVAL = 0.5  # seconds between two requests to a host that is not ours
POLITE_CONCURRENCY = 2


class Turnstile:
    """A turnstile that lets ``concurrency`` requests to one host through at once, ``interval`` seconds apart."""

    def __init__(self, concurrency: int, interval: float) -> None:
        self.concurrency, self.interval = concurrency, interval
        self.turns = 0  # requests let through so far
        self._room = asyncio.Semaphore(concurrency)
        self._next = self._paused_until = 0.0

    @asynccontextmanager
    async def turn(self) -> AsyncGenerator[None]:
        """Wait for a turn and hold it while inside."""
        async with self._room:
            while (wait := max(self._next, self._paused_until) - time.monotonic()) > 0:
                await asyncio.sleep(wait)
            self._next = time.monotonic() + self.interval
            self.turns += 1
            yield

    def slow_down(self, interval: float) -> None:
        """Let one request through at a time, ``interval`` seconds apart at least: the host's robots.txt asks for it."""
        if interval > self.interval:
            self.interval, self.concurrency = interval, 1
            self._room = asyncio.Semaphore(1)

    def pause(self, seconds: float) -> None:
        """Let nothing through for a while: the host asked for it."""
        self._paused_until = max(self._paused_until, time.monotonic() + seconds)


class Manners:
    """One turnstile a host, made when the host is first met."""

    def __init__(self, concurrency: int, rate: float, is_ours: Callable[[str], bool]) -> None:
        """Take ``rate`` in requests a second (0: a polite one); hosts that are ours need no politeness."""
        self._concurrency, self._rate, self._is_ours = concurrency, rate, is_ours
        self._hosts: dict[str, Turnstile] = {}

    def of(self, host: str, crawl_delay: float = 0.0) -> Turnstile:
        """Return a host's turnstile, slowed down where its robots.txt asks for a delay."""
        if host not in self._hosts:
            ours = self._is_ours(host)
            interval = 1 / self._rate if self._rate else (0.0 if ours else POLITE_INTERVAL)
            concurrency = self._concurrency if ours else min(self._concurrency, POLITE_CONCURRENCY)
            self._hosts[host] = Turnstile(concurrency, interval)
        self._hosts[host].slow_down(crawl_delay)
        return self._hosts[host]


def retry_after(header: str | None) -> float | None:
    """Return the seconds a Retry-After header asks to wait: a number, or the time until a date; None without one."""
    if not header:
        return None
    try:
        return max(0.0, float(header))
    except ValueError:
        pass
    try:
        moment = email.utils.parsedate_to_datetime(header)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0.0, (moment - datetime.now(UTC)).total_seconds())

"""Progress from a worker thread to the client; reports that the client did not ask for go nowhere."""

from __future__ import annotations

import asyncio
from typing import Protocol

from workbench.types import Countdown, OnProgress, Progress, time_left


class ProgressClient(Protocol):
    """The part of the SDK's context that tells a client how far its call is."""

    async def report_progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Send one report."""


class Reports:
    """The sender of reports, in the order in which they were made, from the running event loop."""

    def __init__(self, client: ProgressClient | None) -> None:
        self._client, self._loop = client, asyncio.get_running_loop()
        self._steps, self._countdown = 0, Countdown()
        self._last: asyncio.Task[None] | None = None

    @property
    def report(self) -> OnProgress | None:
        """The function that work calls, or None where there is no client to tell."""
        return self._take if self._client is not None else None

    async def sent(self) -> None:
        """Wait until everything reported is with the client, so that no report follows the answer."""
        if self._last is not None:
            await self._last

    def _take(self, progress: Progress) -> None:
        self._loop.call_soon_threadsafe(self._queue, progress)

    def _queue(self, progress: Progress) -> None:
        self._steps += 1
        left = self._countdown.take(progress)
        self._last = self._loop.create_task(self._send(self._steps, progress, left, self._last))

    async def _send(self, step: int, progress: Progress, left: float | None, before: asyncio.Task[None] | None) -> None:
        if before is not None:
            await before
        assert self._client is not None
        message = f"{progress.done} of {progress.total}: {progress.message}" if progress.total > 1 else progress.message
        message = ", ".join(filter(None, (message, time_left(left))))
        await self._client.report_progress(step, None, message)

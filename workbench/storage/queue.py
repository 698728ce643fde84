"""The queue: procrastinate on the workbench's database; one task, which runs a job by its id."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

TASK = "workbench.run_job"
QUEUE = "workbench"


class Queue:
    """Puts jobs into the queue, and builds the app with which a worker takes them out."""

    def __init__(self, url: str) -> None:
        """``url`` is a libpq URL; nothing is connected."""
        self._url = url
        self._lock = threading.Lock()
        self._deferring: Any = None

    def defer(self, connection: Any, job_id: str) -> None:
        """Put a job into the queue, in the caller's transaction: it is there exactly when the job is."""
        app = self._app_to_defer()
        options = {"queue": QUEUE, "lock": job_id, "connection": connection}
        app.configure_task(TASK, **options).defer(job_id=job_id)

    def worker_app(self, run: Callable[[str], None], retry_on: type[Exception]) -> Any:
        """Return a procrastinate app whose one task is ``run(job_id)``; raising ``retry_on`` puts the job back."""
        import procrastinate

        connector = procrastinate.PsycopgConnector(conninfo=self._url, min_size=1, max_size=4)
        app = procrastinate.App(connector=connector)
        # A high limit in place of none: each worker that is stopped in an orderly way takes one.
        again = procrastinate.RetryStrategy(max_attempts=10_000, wait=1, retry_exceptions=[retry_on])
        app.task(name=TASK, queue=QUEUE, retry=again)(run)
        return app

    def _app_to_defer(self) -> Any:
        import procrastinate

        with self._lock:
            if self._deferring is None:  # never opened: every statement runs on the caller's connection
                self._deferring = procrastinate.App(connector=procrastinate.SyncPsycopgConnector(conninfo=self._url))
            return self._deferring

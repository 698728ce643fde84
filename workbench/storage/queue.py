"""The queue: procrastinate on the workbench's database; one task runs a job by its id, one takes parts of it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from workbench.storage.database import Connection, check_reachable, session_arguments

if TYPE_CHECKING:
    from procrastinate import App

TASK = "workbench.run_job"
JOIN = "workbench.join_job"
CONNECT_TIMEOUT = 10.0  # seconds
QUEUE = "workbench"  # the queues begin with it, one for each kind of job; without a kind: jobs of former versions


class AlreadyInvited(Exception):
    """An event, not an error: an invitation to the job waits already."""


class Queue:
    """The way of jobs into the queue, and the app with which a worker takes them out."""

    def __init__(self, url: str) -> None:
        """Take ``url``, a libpq URL; nothing is connected."""
        self._url = url
        self._lock = threading.Lock()
        self._deferring: App | None = None

    def defer(self, connection: Connection, job_id: str, kind: str) -> None:
        """Put a job into the queue, in the caller's transaction: it is there exactly when the job is."""
        app = self._app_to_defer()
        task = app.configure_task(TASK, queue=f"{QUEUE}.{kind}", lock=job_id, connection=connection)
        task.defer(job_id=job_id)

    def invite(self, connection: Connection, job_id: str, kind: str, seconds: int) -> None:
        """Ask a worker to take parts of a job, in the caller's transaction, not before so many seconds have passed.

        Raises:
            AlreadyInvited: an invitation waits; the transaction is to be given up.
        """
        from procrastinate.exceptions import AlreadyEnqueued

        app = self._app_to_defer()
        task = app.configure_task(
            JOIN,
            queue=f"{QUEUE}.{kind}",
            queueing_lock=invitation(job_id),
            schedule_in={"seconds": seconds},
            connection=connection,
        )
        try:
            task.defer(job_id=job_id)
        except AlreadyEnqueued as error:
            raise AlreadyInvited(job_id) from error

    def worker_app(
        self, run: Callable[[str], None], join: Callable[[str], None], retry_on: type[Exception], *, pooled: bool
    ) -> App:
        """Return a procrastinate app with the tasks ``run(job_id)`` and ``join(job_id)``; ``pooled`` as asked.

        Raising ``retry_on`` puts a job back; an invitation to join is never put back.
        """
        import procrastinate

        arguments = session_arguments(pooled)
        connector = procrastinate.PsycopgConnector(conninfo=self._url, min_size=1, max_size=4, kwargs=arguments)
        app = procrastinate.App(connector=connector)
        # A high limit in place of none: each worker that is stopped in an orderly way takes one.
        again = procrastinate.RetryStrategy(max_attempts=10_000, wait=1, retry_exceptions=[retry_on])
        app.task(name=TASK, queue=QUEUE, retry=again)(run)
        app.task(name=JOIN, queue=QUEUE)(join)
        return app

    def is_pooled(self) -> bool:
        """Tell whether a pooler stands between: nobody is notified of new jobs through it. Raises StorageError."""
        return check_reachable(self._url, CONNECT_TIMEOUT)

    def _app_to_defer(self) -> App:
        import procrastinate

        with self._lock:
            if self._deferring is None:  # never opened: every statement runs on the caller's connection
                self._deferring = procrastinate.App(connector=procrastinate.SyncPsycopgConnector(conninfo=self._url))
            return self._deferring


def queues_of(kinds: Iterable[str]) -> list[str]:
    """Return the queues in which jobs of these kinds wait."""
    return [QUEUE, *(f"{QUEUE}.{kind}" for kind in kinds)]


def invitation(job_id: str) -> str:
    """Return the name under which the invitation to a job's parts waits, once at a time."""
    return f"join {job_id}"

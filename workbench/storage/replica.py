"""A read replica for searches: its lag, and fallback to the primary while it is unreachable."""

from __future__ import annotations

import time
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import psycopg

from workbench.errors import StorageError
from workbench.formatting import size_text
from workbench.storage.database import Connection, Database, check_reachable, statement
from workbench.types import Value

RETRY_DELAY_S = 30.0  # seconds before a replica that failed is tried again
CONNECT_TIMEOUT_S = 3.0  # seconds; short, because there is another database to ask


@dataclass(frozen=True, slots=True)
class ReplicaState(Value):
    """The state of a replica.

    ``bytes_behind`` is the part of the primary's log not yet replayed, None if it is not a streaming replica or is
    unreachable; ``seconds_behind`` is the age of its last change, 0 if it has all of them.
    """

    place: str
    is_reachable: bool
    bytes_behind: int | None = None
    seconds_behind: float | None = None

    @property
    def sentence(self) -> str:
        if not self.is_reachable:
            return f"{self.place} is unreachable; searches use the primary"
        if self.bytes_behind is None:
            return f"{self.place} is not a streaming replica; its lag is unknown"
        if not self.bytes_behind:
            return f"{self.place} is up to date"
        behind = size_text(self.bytes_behind)
        return f"{self.place} is {behind} behind; its last change is {self.seconds_behind:g} s old"


class Replica(Database):
    """A pool on a replica; while the replica is unavailable, it uses connections to the primary."""

    def __init__(self, url: str, primary: Database, pool_size: int) -> None:
        super().__init__(url, pool_size=pool_size, connect_timeout=CONNECT_TIMEOUT_S)
        self._primary = primary
        self._rests_until: float | None = None  # monotonic time; None while the replica is used

    @property
    def is_away(self) -> bool:
        """True while the primary is used instead."""
        return self._rests_until is not None

    def state(self) -> ReplicaState:
        """Return its lag; an unavailable replica is queried, too."""
        try:
            self.check()
            with super()._connection() as connection:
                at = connection.execute(statement("replica_position")).fetchone() or {}
        except StorageError:
            return ReplicaState(self.place, is_reachable=False)
        if at.get("position") is None:
            return ReplicaState(self.place, is_reachable=True)
        row = self._primary.row(statement("log_beyond"), {"position": at["position"]}) or {}
        behind = max(0, int(row["bytes"]))
        return ReplicaState(self.place, True, behind, round(float(at["seconds"] or 0), 1) if behind else 0.0)

    @contextmanager
    def detect_loss(self) -> Generator[None]:
        """Stop using the replica for a while if a statement fails because it died or cancelled it during recovery."""
        try:
            yield
        except psycopg.errors.QueryCanceled:  # the caller cancelled it
            raise
        except psycopg.OperationalError:
            self._rest()
            raise

    @contextmanager
    def _connection(self) -> Generator[Connection]:
        with ExitStack() as stack:
            yield self._enter(stack)

    def _enter(self, stack: ExitStack) -> Connection:
        if self._may_serve():
            try:
                connection = stack.enter_context(super()._connection())
            except StorageError:
                self._rest()
            else:
                self._rests_until = None
                stack.enter_context(self.detect_loss())
                return connection
        return stack.enter_context(self._primary.reading())

    def _may_serve(self) -> bool:
        """Return whether to use the replica: if it has not failed, or if it is reachable again after a pause."""
        if self._rests_until is None:
            return True
        if time.monotonic() < self._rests_until:
            return False
        try:
            check_reachable(self.url, CONNECT_TIMEOUT_S)
        except StorageError:
            self._rest()
            return False
        return True

    def _rest(self) -> None:
        self._rests_until = time.monotonic() + RETRY_DELAY_S

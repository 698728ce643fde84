"""A replica that searches read: how far it is behind, and the primary in its place while it cannot be reached."""

from __future__ import annotations

import time
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import psycopg

from workbench.errors import StorageError
from workbench.formatting import size_text
from workbench.storage.database import Connection, Database, check_reachable
from workbench.storage.statements import statement
from workbench.types import Value

REST = 30.0  # seconds for which a replica that could not serve is not asked
CONNECT_TIMEOUT = 3.0  # seconds; there is another database to ask


@dataclass(frozen=True, slots=True)
class ReplicaState(Value):
    """The state of a replica.

    ``bytes_behind`` of the primary's log are not replayed yet, None where it is no streaming replica or cannot be
    reached; ``seconds_behind`` is the age of the last change that it has, 0 where it has all of them.
    """

    place: str
    is_reachable: bool
    bytes_behind: int | None = None
    seconds_behind: float | None = None

    @property
    def sentence(self) -> str:
        """The state in a sentence."""
        if not self.is_reachable:
            return f"{self.place} cannot be reached; the primary is searched in its place"
        if self.bytes_behind is None:
            return f"{self.place}, which is no streaming replica; how far it is behind is not known"
        if not self.bytes_behind:
            return f"{self.place} has everything"
        behind = size_text(self.bytes_behind)
        return f"{self.place} is {behind} behind; its last change is {self.seconds_behind:g} s old"


class Replica(Database):
    """A pool on a replica; while that is away it lends connections of the primary."""

    def __init__(self, url: str, primary: Database, pool_size: int) -> None:
        super().__init__(url, pool_size=pool_size, connect_timeout=CONNECT_TIMEOUT)
        self._primary = primary
        self._rests_until: float | None = None  # by the monotonic clock; None while the replica serves

    @property
    def is_away(self) -> bool:
        """True while the primary is read in its place."""
        return self._rests_until is not None

    def state(self) -> ReplicaState:
        """Ask how far it is behind; a replica that is away is asked, too."""
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
    def spare(self) -> Generator[Connection | None]:
        """Yield a connection that is free now, of the primary while the replica is away; None where there is none."""
        if self.is_away:
            with self._primary.spare() as connection:
                yield connection
        else:
            with super().spare() as connection, self.noticing_loss():
                yield connection

    @contextmanager
    def noticing_loss(self) -> Generator[None]:
        """Let it rest if a statement breaks: it died, or what it replays cancelled the statement."""
        try:
            yield
        except psycopg.errors.QueryCanceled:  # whoever asked wants it no more
            raise
        except psycopg.OperationalError:
            self._rest()
            raise

    @contextmanager
    def _connection(self) -> Generator[Connection]:
        with ExitStack() as stack:
            yield self._entered(stack)

    def _entered(self, stack: ExitStack) -> Connection:
        if self._may_serve():
            try:
                connection = stack.enter_context(super()._connection())
            except StorageError:
                self._rest()
            else:
                self._rests_until = None
                stack.enter_context(self.noticing_loss())
                return connection
        return stack.enter_context(self._primary.reading())

    def _may_serve(self) -> bool:
        """Tell whether to ask it: always, or after a rest if it can be reached."""
        if self._rests_until is None:
            return True
        if time.monotonic() < self._rests_until:
            return False
        try:
            check_reachable(self.url, CONNECT_TIMEOUT)
        except StorageError:
            self._rest()
            return False
        return True

    def _rest(self) -> None:
        self._rests_until = time.monotonic() + REST

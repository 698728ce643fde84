"""Long work that outlives the page that started it: a thread each, kept by the process until it is put away."""

from __future__ import annotations

import itertools
import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from workbench.app.engine import ENGINE
from workbench.errors import Cancelled, WorkbenchError

RowState = Literal["waiting", "busy", "done", "same", "failed"]
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Row:
    """One part of the work: a file and what became of it."""

    name: str
    state: RowState = "waiting"
    text: str = "waiting"


class Work:
    """One piece of long work; the thread that does it writes, every page may read."""

    def __init__(self, title: str, rows: Sequence[str] = (), weights: Sequence[float] = ()) -> None:
        """``weights`` say how much of the whole each row is (a file's bytes); the time left is judged by them."""
        self.title = title
        self.rows = [Row(name) for name in rows]
        self._weights = list(weights) or [1.0] * len(self.rows)
        self.began = time.monotonic()
        self.seconds: float | None = None  # set when it has ended
        self.message = ""
        self.outcome = ""
        self.error = ""
        self._part = 0.0  # of the row that is busy, 0..1
        self._stop = threading.Event()

    @property
    def running(self) -> bool:
        """True until it has ended, by itself or by being stopped."""
        return self.seconds is None

    @property
    def share(self) -> float:
        """How much is done, 0..1."""
        if not self.rows:
            return self._part
        settled = sum(
            weight * (1.0 if row.state in ("done", "same", "failed") else self._part if row.state == "busy" else 0.0)
            for row, weight in zip(self.rows, self._weights, strict=True)
        )
        return min(1.0, settled / (sum(self._weights) or 1.0))

    @property
    def seconds_left(self) -> float | None:
        """How long still, judged by the pace so far; None while too little is done to say."""
        elapsed = time.monotonic() - self.began
        return elapsed * (1 - self.share) / self.share if self.share > 0.02 and elapsed > 1 else None

    def stop(self) -> None:
        """Ask it to end; what is finished stays."""
        self._stop.set()

    def stopping(self) -> bool:
        """True once somebody asked it to end."""
        return self._stop.is_set()

    def mark(self, place: int, state: RowState, text: str) -> None:
        """Say what became of one row."""
        self.rows[place] = Row(self.rows[place].name, state, text)
        self._part = 0.0

    def tell(self, part: float, message: str) -> None:
        """Say how far the present row (or the whole, without rows) is, and what happens."""
        self._part, self.message = min(1.0, max(0.0, part)), message


class Works:
    """The pieces of work of this process, oldest first."""

    def __init__(self) -> None:
        self._works: dict[str, Work] = {}
        self._numbers = itertools.count(1)

    def start(self, work: Work, do: Callable[[Work], str]) -> str:
        """Do it in a thread; ``do`` returns the outcome in one sentence. Returns the work's id."""
        key = f"work{next(self._numbers)}"
        self._works[key] = work
        threading.Thread(target=_run, args=(work, do), name=key, daemon=True).start()
        return key

    def all(self) -> dict[str, Work]:
        """Return every piece of work that was not put away, by id."""
        return dict(self._works)

    def put_away(self, key: str) -> None:
        """Forget a piece of work that has ended."""
        if key in self._works and not self._works[key].running:
            del self._works[key]


def _run(work: Work, do: Callable[[Work], str]) -> None:
    try:
        work.outcome = do(work)
    except Cancelled as stopped:
        work.outcome = str(stopped)
    except WorkbenchError as error:
        work.error = str(error)
    except Exception:  # noqa: BLE001 - a thread's last chance to tell a person; the trace goes to the log
        _log.exception("%s failed", work.title)
        work.error = "Something unforeseen went wrong; the server's log has the details. Try again."
    finally:
        ENGINE.changed()
        work.seconds = time.monotonic() - work.began


WORKS = Works()

"""The progress of long work, and the two callbacks that long work takes: one is told, the other is asked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from workbench.types.value import Value


@dataclass(frozen=True, slots=True)
class Progress(Value):
    """One step of long work: ``done`` of ``total`` (0 = not known yet), and what is happening now.

    ``part`` is how far what is under way is, 0..1; it is not counted in ``done``. ``under_way`` is how many things that
    is, which are done together. ``seconds_left`` is None where the work cannot say it.
    """

    done: int
    total: int
    message: str = ""
    part: float = 0.0
    seconds_left: float | None = None
    under_way: int = 1

    def counted(self) -> Progress:
        """Return it with what is finished of the things under way counted in ``done``, as if they went one by one."""
        far = self.done + self.part * self.under_way
        return replace(self, done=int(far), part=far - int(far), under_way=1)


def span_text(seconds: float | None) -> str:
    """Return how long something takes, roughly: "40 s", "3 min", "2.5 h"; "" where it is not known."""
    if seconds is None:
        return ""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{round(seconds / 60)} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def time_left(seconds: float | None) -> str:
    """Say how long work will still take: "about 40 s left", "about 3 min left"; "" where it is not known."""
    return f"about {span_text(seconds)} left" if seconds is not None else ""


OnProgress = Callable[[Progress], None]
ShouldStop = Callable[[], bool]

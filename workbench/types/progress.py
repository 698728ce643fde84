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


def time_left(seconds: float | None) -> str:
    """Say how long work will still take: "about 40 s left", "about 3 min left"; "" where it is not known."""
    if seconds is None:
        return ""
    return f"about {max(1, round(seconds))} s left" if seconds < 90 else f"about {round(seconds / 60)} min left"


OnProgress = Callable[[Progress], None]
ShouldStop = Callable[[], bool]

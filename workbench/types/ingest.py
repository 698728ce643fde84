"""What came of an ingest, and how far long work is."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from workbench.types.value import Value


@dataclass(frozen=True, slots=True)
class IngestFailure(Value):
    """A file that could not be read, and the reason in one sentence."""

    path: str
    error: str


@dataclass(frozen=True, slots=True)
class IngestReport(Value):
    """What an ingest changed."""

    source_id: str
    added: int = 0
    updated: int = 0
    unchanged: int = 0
    failures: tuple[IngestFailure, ...] = ()
    passages: int = 0
    embedded: int = 0
    seconds: float = 0.0
    document_ids: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form of ``workbench ingest --json``."""
        return {
            "source_id": self.source_id,
            "documents": {
                "added": self.added,
                "updated": self.updated,
                "unchanged": self.unchanged,
                "failed": len(self.failures),
            },
            "passages": self.passages,
            "embedded": self.embedded,
            "seconds": round(self.seconds, 3),
            "failures": [asdict(failure) for failure in self.failures],
        }

    def _repr_html_(self) -> str:
        from workbench.display import report_html

        return report_html(self)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        from workbench.display import report_text

        printer.text(report_text(self))


@dataclass(frozen=True, slots=True)
class Progress(Value):
    """One step of long work: ``done`` of ``total`` (0 = not known yet), and what is happening now.

    ``part`` is how far what is under way is, 0..1; it is not counted in ``done``.
    """

    done: int
    total: int
    message: str = ""
    part: float = 0.0

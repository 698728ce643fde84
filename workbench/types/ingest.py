"""The result of an ingest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Protocol

from workbench.types.json import JsonObject
from workbench.types.value import Value

SHOWN_KINDS = 8  # kinds of files named in a line


class _Printer(Protocol):
    """The printer that IPython gives to ``_repr_pretty_``."""

    def text(self, obj: str) -> None: ...


@dataclass(frozen=True, slots=True)
class IngestFailure(Value):
    """A file that could not be read, and the reason in one sentence."""

    path: str
    error: str


@dataclass(frozen=True, slots=True)
class IngestReport(Value):
    """The changes of an ingest; ``source_id`` is "" where nothing could be stored in a source that was to be made.

    ``left_out`` counts by suffix the files in its folders whose kind is not read. ``offer`` says, where new documents
    are in languages that the model was not trained for, which index would find them by meaning too, and how long it
    takes to build; "" otherwise. ``notes`` are sentences on documents that were read but for some pages, or whose scans
    may hold errors.
    """

    source_id: str
    added: int = 0
    updated: int = 0
    unchanged: int = 0
    failures: tuple[IngestFailure, ...] = ()
    passages: int = 0
    embedded: int = 0
    seconds: float = 0.0
    document_ids: tuple[str, ...] = ()
    left_out: Mapping[str, int] = field(default_factory=dict)
    offer: str = ""
    notes: tuple[str, ...] = ()

    @property
    def left_out_sentence(self) -> str:
        """Say in one line how many files were left out and of which kinds; empty where there were none."""
        count = sum(self.left_out.values())
        if not count:
            return ""
        kinds = [f"{suffix or 'without suffix'} ({number:,})" for suffix, number in self.left_out.items()]
        more = f" and {len(kinds) - SHOWN_KINDS} more" if len(kinds) > SHOWN_KINDS else ""
        files = "1 file" if count == 1 else f"{count:,} files"
        return f"{files} left out, of kinds that are not read: {', '.join(kinds[:SHOWN_KINDS])}{more}."

    @property
    def counts(self) -> dict[str, int]:
        """The report's numbers of documents and passages, without any word of a document or of its path."""
        documents = {"added": self.added, "updated": self.updated, "unchanged": self.unchanged}
        return documents | {"failed": len(self.failures), "passages": self.passages, "embedded": self.embedded}

    def to_dict(self) -> JsonObject:
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
            "left_out": dict(self.left_out),
            "offer": self.offer,
            "notes": list(self.notes),
        }

    def _repr_html_(self) -> str:
        from workbench.display import report_html

        return report_html(self)

    def _repr_pretty_(self, printer: _Printer, cycle: bool) -> None:
        from workbench.display import report_text

        printer.text(report_text(self))

"""An ingest as a job: paths and uploads on their way in, with a note of what became of every file."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from workbench.errors import UnreadableDocument
from workbench.ingestion.incoming import Incoming, files_under, is_pdf
from workbench.ingestion.tally import ItemNews
from workbench.jobs import Outcome, Running
from workbench.storage.job_files import JobFiles, Told
from workbench.types import IngestFailure

KEPT, HELD = 64, 0.25  # news of files that cost nothing are written together: so many, or after so many seconds


def run_ingest(workbench: Any, running: Running) -> Outcome:
    """Ingest paths and uploads; documents that are there already cost a hash, so going on is cheap."""
    given, job_id = running.job.parameters, running.job.id
    files: JobFiles = workbench.jobs.table.files
    found = files_under(given["paths"])
    items, failures = found.items, found.failures
    positions = _positions(files, job_id, items, failures)
    for position, name in files.uploads(job_id):
        load = lambda position=position: files.bytes(job_id, position)  # noqa: E731 - one upload in memory at a time
        items.append(Incoming(key=name, name=Path(name).name or name, load=load, path=name, keep_file=is_pdf(name)))
        positions.append(position)
    place = {name: given[name] for name in ("project", "folder", "tags")}
    source = workbench.knowledge.source_for(given["source"] or "Uploads", **place)
    running.log(f"{len(items):,} files to read into {source.title!r}.")
    record = FileRecord(files, job_id, positions)
    try:
        report = workbench.knowledge.ingest_items(
            source.id,
            items,
            failures=failures,
            index=given["index"],
            on_progress=running.progress,
            should_stop=running.should_stop,
            on_items=record,
        )
    finally:
        record.flush()
    report = replace(report, left_out=found.left_out)
    for failure in report.failures:
        running.log(f"{failure.path}: {failure.error}", "error")
    if items and len(report.failures) == len(items) + len(failures):
        raise UnreadableDocument(f"None of the {len(items):,} files could be read; the log says why.")
    files.forget_bytes(job_id)
    message = (
        f"{report.added} added, {report.updated} updated, {report.unchanged} unchanged, {len(report.failures)} failed."
    )
    if report.left_out_sentence:
        running.log(report.left_out_sentence)
        message += f" {report.left_out_sentence}"
    return Outcome(report.to_dict(), message, with_errors=bool(report.failures))


def _positions(files: JobFiles, job_id: str, items: Sequence[Incoming], failures: Sequence[IngestFailure]) -> list[int]:
    """Note the files found under the paths; returns where each item stands among the job's files."""
    files.wait(job_id)
    names = [item.path or item.key for item in items]
    files.found(job_id, [*((name, item.size) for name, item in zip(names, items, strict=True)),
                         *((failure.path, 0) for failure in failures)])  # fmt: skip
    places = files.places(job_id) if items or failures else {}
    files.note(job_id, [(places[failure.path], "failed", 0, failure.error) for failure in failures])
    return [places[name] for name in names]


class FileRecord:
    """Writes what becomes of each item to the job's files; what costs nothing to find out is written in groups."""

    def __init__(self, files: JobFiles, job_id: str, positions: Sequence[int]) -> None:
        """``positions`` are the places of the items among the job's files."""
        self._files, self._job_id, self._positions = files, job_id, positions
        self._held: list[Told] = []
        self._since = time.monotonic()

    def __call__(self, news: Sequence[ItemNews], connection: Any = None) -> None:
        """Note what happens to items; within ``connection``'s transaction where they are written in it."""
        told: list[Told] = [(self._positions[one.place], one.state, one.passages, one.error) for one in news]
        if connection is not None:
            self._files.note(self._job_id, told, connection)
            return
        self._held += told
        busy = any(state == "busy" for _, state, _, _ in told)
        if busy or len(self._held) >= KEPT or time.monotonic() - self._since > HELD:
            self.flush()

    def flush(self) -> None:
        """Write what was held back."""
        held, self._held = self._held, []
        self._since = time.monotonic()
        if held:
            self._files.note(self._job_id, held)

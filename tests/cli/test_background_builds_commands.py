"""``workbench indexes ... --background``: a worker builds, the command only says which job it is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from commands import Ran

from workbench import Workbench
from workbench.jobs import start_worker


def test_a_new_index_is_handed_to_a_worker(workbench: Callable[..., Ran], animals: Path, wb: Workbench) -> None:
    workbench("ingest", str(animals))
    ran = workbench("indexes", "create", "small", "--chunker", "sentence", "--background", "--json")
    assert (ran.code, ran.json["status"], ran.json["index"]) == (0, "queued", "small")
    assert ran.json["missing_documents"] == wb.knowledge.count_documents() > 0
    assert f"workbench jobs show {ran.json['job']}" in ran.err
    worker = start_worker(wb)
    assert wb.jobs.wait(ran.json["job"], timeout=30).status == "completed"
    worker.stop()
    assert workbench("indexes", "show", "small", "--json").json["missing_documents"] == 0


def test_a_build_in_the_background_is_asked_for_once(workbench: Callable[..., Ran], wb: Workbench) -> None:
    workbench("indexes", "create", "small")
    job = workbench("indexes", "build", "small", "--background", "--json").json["job"]
    again = workbench("indexes", "update", "small", "--background")
    assert (again.code, f"being built already, by job {job}" in again.err) == (1, True)
    assert workbench("indexes", "update", "small", "--background", "--default").code == 2

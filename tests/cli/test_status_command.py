"""``workbench status``: what there is, and the work that goes on; watched until somebody stops it."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

from commands import COMMAND, Ran

from workbench import Workbench
from workbench.models.bert.trial import machine_key


def test_status_tells_the_work_that_goes_on(workbench: Callable[..., Ran], animals: Path, wb: Workbench) -> None:
    assert "No job waits or runs, and no worker is needed." in workbench("status").out
    job = workbench("ingest", str(animals), "--source", "Zoo", "--background", "--json").json["job"]
    told = workbench("status").out
    assert "No worker; 0 jobs run and 1 waits; start one with 'workbench worker'." in told
    assert job in told
    worker = wb.start_worker()
    assert wb.jobs.wait(job, timeout=60).status == "completed"
    work = workbench("status", "--json").json["work"]
    worker.stop()
    assert (work["workers"], work["running"], work["jobs"]) == (1, 0, [])


def test_status_is_watched_until_it_is_interrupted(environment: dict[str, str]) -> None:
    command = [*COMMAND, "status", "--watch", "0.5", "--json"]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as watching:
        assert watching.stdout is not None
        looks = 0
        while looks < 2:
            looks += watching.stdout.readline().rstrip() == "}"  # the end of a document
        watching.send_signal(signal.SIGINT)
        watching.stdout.read()
        assert watching.wait(60) == 0


def test_a_watch_without_a_pause_is_refused(workbench: Callable[..., Ran]) -> None:
    for pause in ("0", "-1", "nan"):
        ran = workbench("status", "--watch", pause)
        assert (ran.code, "every 0.5 seconds at most" in ran.err) == (2, True)


def test_status_and_doctor_tell_in_which_precision_passages_are_embedded_here(
    workbench: Callable[..., Ran], wb: Workbench
) -> None:
    assert workbench("status", "--json").json["model"] == {"name": "hash", "passages": None}
    folder = wb.settings.models_dir
    folder.mkdir(parents=True, exist_ok=True)
    chosen = {"machine": machine_key(), "precision": "int8", "times": 1.87, "cosine": 0.991}
    (folder / "hash-passages.json").write_text(json.dumps(chosen))
    sentence = "passages in 8 bits, 1.87 times as fast here as in full precision"
    assert sentence in workbench("status").out
    assert sentence in workbench("doctor").out
    assert workbench("status", "--json").json["model"]["passages"]["precision"] == "int8"

"""``workbench status``: counts and current work, and ``--watch`` until it is stopped."""

from __future__ import annotations

import fcntl
import json
import os
import re
import signal
import struct
import subprocess
import termios
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from commands import COMMAND, Ran

from workbench import Workbench
from workbench.models.bert.session import machine_key


def test_status_reports_the_work_that_continues(workbench: Callable[..., Ran], animals: Path, wb: Workbench) -> None:
    assert "No job is queued or running, and no worker is needed." in workbench("status").out
    job = workbench("ingest", str(animals), "--source", "Zoo", "--background", "--json").json["job"]
    told = workbench("status").out
    assert "Jobs: 1 queued, 0 running; no worker is running: start one with 'workbench worker'." in told
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


def test_a_watch_on_a_terminal_leaves_its_last_look_and_no_trace_of_the_others(environment: dict[str, str]) -> None:
    near, far = os.openpty()
    fcntl.ioctl(far, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    terminal = environment | {"TERM": "xterm"}
    terminal.pop("COLUMNS", None)
    with subprocess.Popen(
        [*COMMAND, "status", "--watch", "0.5"], env=terminal, stdin=far, stdout=far, stderr=far
    ) as it:
        os.close(far)
        shown = b""
        while shown.count(b"on disk") < 3:
            shown += os.read(near, 65536)
        it.send_signal(signal.SIGINT)
        with suppress(OSError):  # how Linux reports that the other end is closed
            while more := os.read(near, 65536):
                shown += more
        assert it.wait(60) == 0
    os.close(near)
    other_screen, left = shown.rsplit(b"\x1b[?1049l", 1)
    assert other_screen.startswith(b"\x1b[?1049h")
    lines = left.decode().replace("\r", "").splitlines()
    assert any(line.startswith("No job is queued or running") for line in lines) and "Traceback" not in left.decode()
    assert max(len(re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", line)) for line in lines) <= 80


def test_a_watch_without_a_pause_is_refused(workbench: Callable[..., Ran]) -> None:
    for pause in ("0", "-1", "nan"):
        ran = workbench("status", "--watch", pause)
        assert (ran.code, "use at least 0.5 seconds" in ran.err) == (2, True)


def test_status_and_doctor_report_in_which_precision_passages_are_embedded_here(
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

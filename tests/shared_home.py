"""A data folder with a separate embedded server, for tests of its users."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import psycopg
import pytest

_MEMORY = Path("/dev/shm")
_ROOM = 6 * 2**30  # bytes: several times what the databases of a run, their log and the browser's tests take


def place_for_homes() -> Path | None:
    """Return the folder for data folders of tests: one in memory if there is room, else None for the default.

    Making a database of 9 MB is making three hundred files, which took three to sixteen times longer on a disk.
    """
    roomy = _MEMORY.is_dir() and os.access(_MEMORY, os.W_OK) and shutil.disk_usage(_MEMORY).free > _ROOM
    return _MEMORY if roomy and psutil.virtual_memory().available > _ROOM else None


@contextmanager
def fresh_home() -> Generator[Path]:
    """Yield a separate data folder; its embedded server is always shut down at the end."""
    home = Path(tempfile.mkdtemp(prefix="wb-shared-", dir=place_for_homes()))
    home.chmod(0o755)  # as root, the embedded server runs as another user
    try:
        yield home
    finally:
        number = postmaster(home)
        with suppress(psutil.NoSuchProcess):  # the last process that used it may be stopping it already
            if number is not None:
                server = psutil.Process(number)
                server.send_signal(signal.SIGINT)
                server.wait(30)
        shutil.rmtree(home, ignore_errors=True)


def postmaster(home: Path) -> int | None:
    """Return the process id of a data folder's embedded server, or None if none is running."""
    try:
        number = int((home / "postgres" / "postmaster.pid").read_text().split()[0])
        ended = psutil.Process(number).status() == psutil.STATUS_ZOMBIE
    except (OSError, IndexError, ValueError, psutil.NoSuchProcess):
        return None
    return None if ended else number


def stop_server(home: Path) -> None:
    """Stop a data folder's embedded server, as its administrator would; returns once it no longer responds."""
    number = postmaster(home)
    assert number is not None
    with psycopg.connect(host=str(home / "postgres"), user="postgres", dbname="postgres", autocommit=True) as last:
        os.kill(number, signal.SIGINT)
        with pytest.raises(psycopg.OperationalError):
            while True:
                last.execute("SELECT pg_sleep(0.05)")

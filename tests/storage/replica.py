"""Copies of an embedded server, made with pg_basebackup and run next to it: a replica, or a restored one."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
import psycopg
from psycopg.conninfo import make_conninfo

from tests.shared_home import postmaster


@dataclass(frozen=True)
class Replica:
    """The two servers' addresses, each of the database ``postgres``."""

    primary_url: str
    url: str

    def behind(self) -> bool:
        """Return whether the replica has not replayed everything that the primary has written."""
        with psycopg.connect(self.primary_url) as primary, psycopg.connect(self.url) as replica:
            (written,) = primary.execute("SELECT pg_current_wal_lsn()").fetchone() or (None,)
            question = "SELECT coalesce(pg_last_wal_replay_lsn() < %s::pg_lsn, true)"
            (late,) = replica.execute(question, [written]).fetchone() or (True,)
        return bool(late)

    def catch_up(self) -> None:
        """Wait until the replica has replayed everything that the primary has written so far."""
        while self.behind():
            with psycopg.connect(self.url) as replica:
                replica.execute("SELECT pg_sleep(0.05)")

    def kill(self) -> None:
        """End it as in a crash."""
        with psycopg.connect(self.url) as replica:
            (data,) = replica.execute("SHOW data_directory").fetchone() or ("",)
        postmaster = psutil.Process(int((Path(data) / "postmaster.pid").read_text().split()[0]))
        postmaster.send_signal(signal.SIGQUIT)
        postmaster.wait()

    def hold(self, *, on: bool) -> None:
        """Pause or resume the replica."""
        with psycopg.connect(self.url) as replica:
            replica.execute("SELECT pg_wal_replay_pause()" if on else "SELECT pg_wal_replay_resume()")


@contextmanager
def streaming_replica(home: Path, primary_url: str) -> Generator[Replica]:
    """Yield a running replica of an embedded server, which listens on a unix socket only."""
    with _copied(home, "-R", "-N") as folder, _running(home, folder):
        yield Replica(primary_url, make_conninfo(primary_url, host=str(folder)))


@contextmanager
def base_backup(home: Path, url: str) -> Generator[Callable[[], AbstractContextManager[str]]]:
    """Yield a function that starts a separate server from a base backup taken now and returns its URL."""

    @contextmanager
    def started() -> Generator[str]:
        with _running(home, folder):
            yield make_conninfo(url, host=str(folder))

    with _copied(home, "-X", "stream") as folder:
        yield started


def _programs(home: Path) -> tuple[Path, int | None]:
    """Return the folder of Postgres' programs and, for root, the user that runs the embedded server."""
    running = postmaster(home)
    assert running is not None
    owner = (home / "postgres").stat().st_uid if os.geteuid() == 0 else None
    return Path(psutil.Process(running).exe()).parent, owner


@contextmanager
def _copied(home: Path, *options: str) -> Generator[Path]:
    """Yield a folder with ``data``, a base backup of an embedded server that keeps running."""
    programs, owner = _programs(home)
    folder = Path(tempfile.mkdtemp(prefix="wb-replica-"))
    if owner is not None:
        os.chown(folder, owner, -1)
    whence = ("-h", str(home / "postgres"), "-U", "postgres", "-D", str(folder / "data"), "-c", "fast")
    try:
        _run(owner, programs / "pg_basebackup", *whence, *options)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _running(home: Path, folder: Path) -> Generator[None]:
    """Run a server on the copy in a folder, and end it."""
    programs, owner = _programs(home)
    options = f"-c unix_socket_directories={folder} -c listen_addresses='' -c fsync=off -c shared_buffers=32MB"
    place = ("-D", str(folder / "data"))
    _run(owner, programs / "pg_ctl", *place, "-l", str(folder / "log"), "-o", options, "-w", "-t", "120", "start")
    try:
        yield
    finally:
        still_there = folder / "data" / "postmaster.pid"
        try:
            if still_there.exists():
                _run(owner, programs / "pg_ctl", *place, "-m", "immediate", "-w", "stop")
        except AssertionError:
            if still_there.exists():  # otherwise a test has already killed it
                raise


def _run(owner: int | None, program: Path, *arguments: str) -> None:
    """Run one of Postgres' programs as the owner of its files; its output goes to a file."""
    with tempfile.TemporaryFile() as said:
        done = subprocess.run([program, *arguments], user=owner, stdout=said, stderr=said, cwd="/", check=False)
        said.seek(0)
        assert done.returncode == 0, said.read().decode(errors="replace")

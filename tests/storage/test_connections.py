"""An unavailable database: one sentence for each cause, never with a password."""

from __future__ import annotations

import socket
import threading
import time
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import psutil
import psycopg
import pytest

from tests.shared_home import postmaster
from tests.storage.relay import Relay
from workbench import Workbench
from workbench.errors import Conflict, StorageError
from workbench.settings import Settings
from workbench.storage.database import Database, bind_json, connect, translate_errors
from workbench.storage.jobs import Queue
from workbench.storage.migrate import migrate
from workbench.storage.postgres import leave_server, start_embedded_server

HIDDEN = "s3cret-word"


def asked(url: str) -> str:
    """Return the message for a search with this URL."""
    with pytest.raises(StorageError) as told:
        Database(url, connect_timeout=3).rows(psycopg.sql.SQL("SELECT 1"))
    assert HIDDEN not in str(told.value)
    return str(told.value)


@pytest.mark.parametrize(
    ("parameter", "expected"), [("", 10.0), ("?connect_timeout=45", 45.0), ("?connect_timeout=0", 10.0)]
)
def test_a_url_may_bring_its_own_connect_timeout(parameter: str, expected: float) -> None:
    database = Database(f"postgresql://nobody@127.0.0.1:1/nothing{parameter}")
    assert database.connect_timeout == expected


@pytest.mark.timeout(9)
@pytest.mark.parametrize(
    "use", [connect, migrate, lambda url: Queue(url).is_pooled()], ids=["connect", "migrate", "queue"]
)
def test_every_connection_waits_as_long_as_its_url_says(use: Callable[[str], object]) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        with pytest.raises((psycopg.errors.ConnectionTimeout, StorageError)):
            use(f"postgresql://nobody@127.0.0.1:{silent.getsockname()[1]}/nothing?connect_timeout=1")


@pytest.fixture
def guarded_url(server_url: str, test_home: Path) -> str:
    """The test's server, for a user who must give a password."""
    hba = test_home / "postgres" / "pg_hba.conf"
    rule = "local all guarded scram-sha-256\n"
    if rule not in hba.read_text():
        hba.write_text(rule + hba.read_text())
    with psycopg.connect(server_url, autocommit=True) as connection:
        if not connection.execute("SELECT 1 FROM pg_roles WHERE rolname = 'guarded'").fetchone():
            connection.execute("CREATE ROLE guarded LOGIN PASSWORD 'the right one'")
        connection.execute("SELECT pg_reload_conf()")
    return psycopg.conninfo.make_conninfo(server_url, user="guarded")


def test_a_wrong_password_is_a_sentence(guarded_url: str) -> None:
    told = asked(psycopg.conninfo.make_conninfo(guarded_url, password=HIDDEN))
    assert "rejected the user or password; correct WORKBENCH_DATABASE_URL." in told
    assert told.endswith('Postgres\' last line: FATAL:  password authentication failed for user "guarded"')


def test_a_missing_password_is_the_same_sentence(guarded_url: str) -> None:
    assert "rejected the user or password" in asked(guarded_url)


def test_no_such_database_is_a_sentence(server_url: str) -> None:
    told = asked(psycopg.conninfo.make_conninfo(server_url, dbname="nowhere"))
    assert told.startswith("The server at ") and "/nowhere has no such database; create it" in told
    assert told.endswith('Postgres\' last line: FATAL:  database "nowhere" does not exist')


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://user:{HIDDEN}@127.0.0.1:1/corpus",
        f"postgresql://user:{HIDDEN}@no-such-host.invalid/corpus",
        f"host=/nonexistent user=user password={HIDDEN}",
    ],
)
def test_a_server_that_is_down_is_a_sentence(url: str) -> None:
    told = asked(url)
    assert "is unreachable; start it or correct WORKBENCH_DATABASE_URL." in told
    assert told.count("\n") == 0


@pytest.mark.parametrize("url", [f"nonsense {HIDDEN}", f"mysql://user:{HIDDEN}@host/db"])
def test_what_is_no_postgres_url_is_a_sentence(url: str) -> None:
    assert asked(url) == ("WORKBENCH_DATABASE_URL is invalid: expected postgresql://USER:PASSWORD@HOST:PORT/DATABASE.")


def test_a_database_that_goes_is_reported_and_one_that_is_back_serves_the_next_question(
    database_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    folder = Path(psycopg.conninfo.conninfo_to_dict(database_url)["host"])
    relay = Relay(folder / ".s.PGSQL.5432")
    database = Database(psycopg.conninfo.make_conninfo(database_url, host="127.0.0.1", port=relay.port))
    one = psycopg.sql.SQL("SELECT 1 AS one")
    assert database.row(one) == {"one": 1}
    with pytest.raises(StorageError, match="check that it is running"), database.reading() as lent:
        relay.cut()
        lent.execute(one)
    with pytest.raises(StorageError, match="is unreachable; start it"):
        database.row(one)
    assert not caplog.records  # a logger without handlers writes to stderr
    relay.open()
    assert database.row(one) == {"one": 1}
    database.close()
    relay.cut()


def test_a_server_that_is_frozen_is_reported_and_serves_again_once_it_continues(shared_home: Path) -> None:
    url = start_embedded_server(shared_home / "postgres")
    database = Database(url, connect_timeout=2.0, revive=lambda: start_embedded_server(shared_home / "postgres"))
    one = psycopg.sql.SQL("SELECT 1 AS one")
    assert database.row(one) == {"one": 1}
    number = postmaster(shared_home)
    assert number is not None
    server = psutil.Process(number)
    processes = [server, *server.children(recursive=True)]
    time.sleep(2.1)  # from then on a connection is checked before it is used
    try:
        for process in processes:
            process.suspend()
        started = time.monotonic()
        with pytest.raises(StorageError, match="did not answer in time"):
            database.row(one)
        answered = time.monotonic()
        with pytest.raises(StorageError, match="did not answer in time"):
            database.row(one)  # the next read of the same page does not wait again
        assert answered - started < 30, "without a limit, until the server continues"
        assert time.monotonic() - answered < 1
    finally:
        for process in processes:
            process.resume()
    time.sleep(1.1)
    assert database.row(one) == {"one": 1}
    database.close()
    leave_server(shared_home / "postgres")


def test_a_statement_that_runs_when_the_server_freezes_is_reported_instead_of_waiting(shared_home: Path) -> None:
    database = Database(start_embedded_server(shared_home / "postgres"), connect_timeout=2.0)
    number = postmaster(shared_home)
    assert number is not None
    server = psutil.Process(number)
    processes: list[psutil.Process] = []

    def freeze() -> None:
        processes.extend([server, *server.children(recursive=True)])
        for process in processes:
            process.suspend()

    with database.reading() as connection:  # a server that is only busy is waited for
        connection.execute("SELECT pg_sleep(6)")
    freezing = threading.Timer(1.0, freeze)
    freezing.start()
    try:
        with pytest.raises(StorageError, match="lost a connection"):
            database.row(psycopg.sql.SQL("SELECT pg_sleep(600)"))
    finally:
        freezing.join()
        for process in processes:
            process.resume()
    assert database.row(psycopg.sql.SQL("SELECT 1 AS one")) == {"one": 1}
    database.close()
    leave_server(shared_home / "postgres")


def test_a_name_that_is_taken_is_a_conflict(database_url: str) -> None:
    database = Database(database_url)
    insert = psycopg.sql.SQL("INSERT INTO projects (id, title) VALUES (%s, 'Zoo')")
    database.rows(insert, ["p1"])
    with pytest.raises(Conflict, match="with that name"):
        database.rows(insert, ["p2"])
    database.close()


def test_texts_lose_what_postgres_cannot_hold(database_url: str) -> None:
    database = Database(database_url)
    values = {"text": "a\x00b \ud83d 😀", "facts": bind_json({"k\ud83d": [float("nan"), 1.5]})}
    query = psycopg.sql.SQL("SELECT %(text)s::text AS text, %(facts)s::jsonb AS facts")
    assert database.row(query, values) == {"text": "ab \ufffd 😀", "facts": {"k\ufffd": [None, 1.5]}}
    database.close()


def test_a_statement_that_fails_rolls_its_transaction_back(database_url: str) -> None:
    database = Database(database_url)
    with pytest.raises(StorageError, match="rejected a statement"), database.transaction() as connection:
        connection.execute("INSERT INTO projects (id, title) VALUES ('p1', 'Zoo')")
        connection.execute("SELECT 1 / 0")
    assert database.rows(psycopg.sql.SQL("SELECT * FROM projects")) == []
    database.close()


@pytest.mark.parametrize(
    ("code", "line", "remedy"),
    [
        ("53200", "out of memory", "free memory, disk space or connections there"),
        ("58030", "could not read blocks 3..3", "its files may be damaged: restore a backup"),
        ("XX001", "invalid page in block 3", "its files may be damaged: restore a backup"),
        ("25006", "cannot execute", "it only allows reading: use the primary"),
        ("40P01", "deadlock detected", "try again"),
        ("53100", "could not extend file", "free some space on it,"),
    ],
)
def test_a_failure_of_the_server_during_a_statement_is_not_called_one_of_the_connection(
    database_url: str, code: str, line: str, remedy: str
) -> None:
    database = Database(database_url)
    raising = f"DO $$ BEGIN RAISE EXCEPTION '{line}' USING ERRCODE = '{code}'; END $$"
    with pytest.raises(StorageError) as caught:
        database.rows(psycopg.sql.SQL(raising))  # pyright: ignore[reportArgumentType]
    told = str(caught.value)
    assert (
        remedy in told
        and told.endswith(f" Postgres' last line: ERROR:  {line}")
        and "check that it is running" not in told
    )
    database.close()


def test_errors_that_are_not_the_drivers_pass_unchanged(database_url: str) -> None:
    with pytest.raises(KeyError), translate_errors(database_url):
        raise KeyError("ours")


def test_a_connection_whose_server_ended_it_a_moment_ago_is_not_lent(server_url: str) -> None:
    database = Database(server_url, pool_size=1)
    try:
        for _ in range(20):
            row = database.row(psycopg.sql.SQL("SELECT pg_backend_pid() AS backend"))
            assert row is not None
            with psycopg.connect(server_url, autocommit=True) as other:
                other.execute("SELECT pg_terminate_backend(%s, 60000)", [row["backend"]])  # returns when it has ended
    finally:
        database.close()


ODD_SETTINGS = {
    "DateStyle": "German",
    "IntervalStyle": "sql_standard",
    "TimeZone": "Asia/Kathmandu",
    "client_encoding": "LATIN1",
    "search_path": "elsewhere",
    "standard_conforming_strings": "off",
    "bytea_output": "escape",
    "extra_float_digits": "-15",
    "array_nulls": "off",
    "transform_null_equals": "on",
    "default_transaction_isolation": "serializable",
    "statement_timeout": "2s",
    "idle_session_timeout": "60s",
    "transaction_timeout": "60s",
}


@pytest.mark.parametrize("variables", [{}, {"PGDATESTYLE": "x", "PGTZ": "x", "PGCLIENTENCODING": "LATIN1"}])
def test_settings_of_the_role_and_variables_of_its_clients_change_nothing(
    server_url: str, database_url: str, make_settings: Callable[..., Settings], folder: Callable[..., Path],
    variables: dict[str, str], monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    empty = f"odd_{uuid.uuid4().hex[:10]}"
    with psycopg.connect(server_url, autocommit=True) as connection:
        connection.execute(f"CREATE ROLE {empty} SUPERUSER LOGIN")  # type: ignore[arg-type]
        connection.execute(f"CREATE DATABASE {empty} OWNER {empty}")  # type: ignore[arg-type]
        for name, value in ODD_SETTINGS.items():
            connection.execute(f"ALTER ROLE {empty} SET {name} = '{value}'")  # type: ignore[arg-type]
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    url = psycopg.conninfo.make_conninfo(server_url, user=empty, dbname=empty)
    with Workbench.open(settings=make_settings(database_url=url)) as wb:
        assert wb.ingest(folder({"日.md": "# Größe 日本\n\nHerons \\ stand in reeds 😀."}), source="Vögel").added == 1
        for strategy in ("vector", "keyword", "hybrid"):
            assert wb.search("herons in reeds", strategy)[0].text.endswith("Herons \\ stand in reeds 😀."), strategy
        for name in ("idle_session_timeout", "transaction_timeout"):
            assert wb.corpus.database.row(psycopg.sql.SQL("SHOW " + name)) == {name: "0"}  # type: ignore[arg-type]
        source = wb.sources.list()[0]
        assert source.title == "Vögel" and source.updated_at is not None
        assert abs((source.updated_at - datetime.now(UTC)).total_seconds()) < 60
        wb.start_worker_process()
        job = wb.jobs.enqueue_ingest([folder({"owls.md": "# Owls"}, "more")], source="Owls")
        assert wb.jobs.wait(job.id).status == "completed"
    with psycopg.connect(server_url, dbname=empty) as connection:
        assert connection.execute("SELECT to_regclass('public.documents')::text").fetchone() == ("documents",)

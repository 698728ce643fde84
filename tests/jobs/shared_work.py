"""Work for several workers, a block in which no process can write, and queries on what was stored and taken."""

from __future__ import annotations

import signal
from collections.abc import Generator
from contextlib import contextmanager

import psycopg
from psycopg import sql

from tests.worker_nest import WorkerProcess

MANY = {f"{number:03}.md": f"# Page {number}\n\n" + f"word{number} and {number * 7} " * 700 for number in range(80)}
_TURN = "SELECT {lock}(7215005, hashtext(%s))"


def one_killed(dies: str, leader: WorkerProcess, helper: WorkerProcess) -> WorkerProcess:
    """Kill the worker that leads a job, or its helper (``dies``), and return the other."""
    killed, survivor = (leader, helper) if dies == "leader" else (helper, leader)
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    return survivor


_HELD = "workbench_test_hold"


@contextmanager
def one_part_written(database_url: str, index: str) -> Generator[None]:
    """Let one part of a job be written into an index, and delay all further writes inside the block.

    A test that stops work in its midst needs this: a fast machine is done before it hears of the stop.
    """
    hold = sql.SQL(
        "CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
        "IF EXISTS (SELECT FROM job_parts WHERE state = 'done') THEN "
        "PERFORM pg_advisory_xact_lock_shared(7215099); END IF; "
        "RETURN NULL; END $$; "
        "CREATE TRIGGER {name} BEFORE INSERT ON {table} FOR EACH STATEMENT EXECUTE FUNCTION {name}()"
    )
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("SELECT pg_advisory_lock(7215099)")
        connection.execute(hold.format(name=sql.Identifier(_HELD), table=sql.Identifier(f"data_{index}")))
        yield
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(sql.SQL("DROP FUNCTION {} CASCADE").format(sql.Identifier(_HELD)))


def waiting_for_their_turn(database_url: str) -> int:
    """Count the connections that wait for an advisory lock."""
    with psycopg.connect(database_url) as connection:
        row = connection.execute(
            "SELECT count(*) FROM pg_locks l JOIN pg_database b ON b.oid = l.database "
            "WHERE b.datname = current_database() AND l.locktype = 'advisory' AND NOT l.granted"
        ).fetchone()
    assert row is not None
    return int(row[0])


@contextmanager
def no_writing(database_url: str, index: str) -> Generator[None]:
    """Prevent all processes from writing passages into an index inside the block, as a long write would."""
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(sql.SQL(_TURN).format(lock=sql.SQL("pg_advisory_lock")), (index,))
        yield


def passages(database_url: str, index: str, source: str = "Many") -> set[tuple[object, ...]]:
    """Return every passage of a source in an index, without the ids that change each time."""
    statement = sql.SQL(
        "SELECT d.key, p.metadata_->>'start', p.metadata_->>'end', p.text, p.embedding::text, p.token_bits FROM {} p "
        "JOIN documents d ON d.id = p.document_id JOIN sources s ON s.id = d.source_id WHERE s.title = %s"
    )
    with psycopg.connect(database_url) as connection:
        return set(connection.execute(statement.format(sql.Identifier(f"data_{index}")), (source,)).fetchall())


def taken_again(database_url: str, job_id: str) -> int:
    """Return how often parts of a job were taken that had been taken before."""
    with psycopg.connect(database_url) as connection:
        row = connection.execute("SELECT sum(times - 1) FROM job_parts WHERE job_id = %s", (job_id,)).fetchone()
    assert row is not None
    return int(row[0])


@contextmanager
def embedding_held(database_url: str, parts: int) -> Generator[None]:
    """Let a number of embedding parts be recorded, and delay all further ones inside the block; all are logged."""
    hold = sql.SQL(
        "CREATE TABLE embedded_log (part bigint, holder text, times int); "
        "CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
        "IF (SELECT count(*) FROM embedded_log) >= {parts} THEN "
        "PERFORM pg_advisory_xact_lock_shared(7215098); END IF; "
        "INSERT INTO embedded_log VALUES (NEW.id, OLD.holder, NEW.times); RETURN NEW; END $$; "
        "CREATE TRIGGER {name} BEFORE UPDATE ON embedding_parts FOR EACH ROW "
        "WHEN (NEW.state = 'done' AND OLD.state = 'busy') EXECUTE FUNCTION {name}()"
    )
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("SELECT pg_advisory_lock(7215098)")
        connection.execute(hold.format(name=sql.Identifier("workbench_test_embedding"), parts=sql.Literal(parts)))
        yield


def embedded_log(database_url: str) -> list[tuple[int, str, int]]:
    """Return every recorded embedding part: which, by whom, and how often it had been taken."""
    with psycopg.connect(database_url) as connection:
        return connection.execute("SELECT part, holder, times FROM embedded_log ORDER BY part").fetchall()


def embedding_parts(database_url: str) -> int:
    """Return the number of embedding parts, done or not."""
    with psycopg.connect(database_url) as connection:
        row = connection.execute("SELECT count(*) FROM embedding_parts").fetchone()
    assert row is not None
    return int(row[0])

"""A workbench for experiments on a scratch database, filled with the sample or empty.

``open_workbench("name")`` always starts from the same state, so a notebook can be run again and again. The sample is
indexed once and then cloned. For your own documents, use ``Workbench.open()``.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

import workbench
from workbench import Settings, Workbench
from workbench.models.bert.session import machine_key
from workbench.services.sample_corpus import load_sample
from workbench.settings import default_home
from workbench.storage.postgres import start_embedded_server

HOME = "WORKBENCH_NOTEBOOKS_HOME"  # set by conftest.py; a test run has its own home and removes it
SHAPING = ("ingestion", "models", "sample", "storage")  # packages that determine the contents of the filled database


def open_workbench(name: str, *, sample: bool = True, **settings: Any) -> Workbench:
    """Return a workbench on a new database.

    Args:
        name: Name of the database.
        sample: Fill it with the 52 articles of the sample.
        settings: Fields of ``workbench.Settings``.
    """
    url = server_url()
    with _alone(url) as connection:  # until cloned; other code could replace the template
        template = filled(connection, url) if sample else "template1"
        _drop(connection, name)
        clone = sql.SQL("CREATE DATABASE {} TEMPLATE {}")
        connection.execute(clone.format(sql.Identifier(name), sql.Identifier(template)))
    return _open(url, name, **settings)


def home() -> Path:
    """Return the folder of the notebooks' server and model files, separate from your own documents."""
    return Path(os.environ.get(HOME) or default_home().with_name("rag-workbench-notebooks"))


def server_url() -> str:
    """Return the URL of the notebooks' Postgres, started on first use."""
    return start_embedded_server(home() / "postgres")


def fill(url: str) -> None:
    """Create the database with the sample if this version of the code has none."""
    with _alone(url) as connection:
        filled(connection, url)


def filled(connection: psycopg.Connection, url: str) -> str:
    """Return the name of the database with the sample; create it if the code that shapes it has changed."""
    name = f"sample_{_fingerprint()}"
    found = {row[0] for row in connection.execute("SELECT datname FROM pg_database WHERE datname LIKE 'sample%'")}
    if name not in found:
        for old in found:
            _drop(connection, old)
        with _open(url, _created(connection, "sample_in_the_making")) as wb:
            load_sample(wb.documents)
        rename = sql.SQL("ALTER DATABASE sample_in_the_making RENAME TO {}")
        connection.execute(rename.format(sql.Identifier(name)))
    return name


def _fingerprint() -> str:
    """Hash the code and the articles that determine what is stored."""
    root, digest = Path(workbench.__file__).parent, hashlib.sha256()
    for path in sorted(path for package in SHAPING for path in (root / package).rglob("*")):
        if path.is_file() and path.suffix != ".pyc":
            digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:12]


def use_full_precision() -> None:
    """Store a choice of full precision for passages: vectors in 8 bits depend on the processor."""
    choice = home() / "models" / "minilm-passages.json"
    choice.parent.mkdir(parents=True, exist_ok=True)
    choice.write_text(json.dumps({"machine": machine_key(), "precision": "float", "times": 1, "cosine": 1}))


def _open(url: str, name: str, **settings: Any) -> Workbench:
    use_full_precision()
    database_url = psycopg.conninfo.make_conninfo(url, dbname=name)
    given = {"embedding_model": "minilm", "llm_base_url": "", "reranker": "late-interaction"} | settings
    return Workbench.open(settings=Settings(home=home(), database_url=database_url, _env_file=None, **given))


def _created(connection: psycopg.Connection, name: str) -> str:
    connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    return name


def _drop(connection: psycopg.Connection, name: str) -> None:
    connection.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))


@contextmanager
def _alone(url: str) -> Iterator[psycopg.Connection]:
    """Yield a connection under a lock, so that one notebook at a time creates and drops databases."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SELECT pg_advisory_lock(hashtext('notebooks'))")
        yield connection

"""One home for a run of the notebooks: starts and fills its server, shared by all kernels, and removes it."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from contextlib import suppress
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

HOME = "WORKBENCH_NOTEBOOKS_HOME"
_OWNED = pytest.StashKey[str]()


def pytest_configure(config: pytest.Config) -> None:
    """Clear settings of the environment, set what outputs may differ in, and start the shared server."""
    from workbench.storage.postgres import start_embedded_server

    if getattr(config.option, "nbval", False) and not config.option.nbval_sanitize_with:
        config.option.nbval_sanitize_with = str(Path(__file__).with_name("sanitize.cfg"))

    for name in [name for name in os.environ if name.startswith("WORKBENCH_") and name != HOME] + ["SEARCH_DB_PATH"]:
        os.environ.pop(name, None)
    if HOME not in os.environ:
        home = tempfile.mkdtemp(prefix="wb-notebooks-")
        Path(home).chmod(0o755)  # as root, the embedded server runs as another user
        os.environ[HOME] = config.stash[_OWNED] = home
        os.environ["CRAWL4_AI_BASE_DIRECTORY"] = str(Path(home) / "crawl4ai")
        _disable_durability(start_embedded_server(Path(home) / "postgres"))


def _disable_durability(url: str) -> None:
    """Turn off durability: a test run need not survive a crash."""
    with psycopg.connect(url, autocommit=True) as connection:
        for setting in ("fsync", "synchronous_commit", "full_page_writes"):
            connection.execute(sql.SQL("ALTER SYSTEM SET {} = off").format(sql.Identifier(setting)))
        connection.execute("SELECT pg_reload_conf()")


def pytest_collection_finish(session: pytest.Session) -> None:
    """Embed the sample before the first notebook."""
    if session.items and not session.config.option.collectonly:
        from sandbox import fill, server_url

        fill(server_url())


def pytest_unconfigure(config: pytest.Config) -> None:
    """Stop the server and remove the home if this run created them."""
    owned = config.stash.get(_OWNED, None)
    if owned is not None:
        running = Path(owned) / "postgres" / "postmaster.pid"
        if running.exists():  # kernels are killed, so a normal shutdown would wait for their connections
            with suppress(ProcessLookupError):
                os.kill(int(running.read_text().split()[0]), signal.SIGQUIT)  # its data is not needed
        shutil.rmtree(owned, ignore_errors=True)
        os.environ.pop(HOME, None)

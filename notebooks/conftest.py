"""One home for a run of the notebooks: its server is started and filled here, joined by every kernel, and removed."""

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
    """Forget the machine's own settings, say what may vary, and start the server that the notebooks share."""
    from workbench.storage.postgres import embedded_url

    if getattr(config.option, "nbval", False) and not config.option.nbval_sanitize_with:
        config.option.nbval_sanitize_with = str(Path(__file__).with_name("sanitize.cfg"))

    for name in [name for name in os.environ if name.startswith("WORKBENCH_") and name != HOME] + ["SEARCH_DB_PATH"]:
        os.environ.pop(name, None)
    if HOME not in os.environ:
        home = tempfile.mkdtemp(prefix="wb-notebooks-")
        Path(home).chmod(0o755)  # as root the embedded server runs as its own user
        os.environ[HOME] = config.stash[_OWNED] = home
        os.environ["CRAWL4_AI_BASE_DIRECTORY"] = str(Path(home) / "crawl4ai")
        _hurry(embedded_url(Path(home) / "postgres"))


def _hurry(url: str) -> None:
    """Let the server not wait for the disk: nothing of a test run has to survive a power cut."""
    with psycopg.connect(url, autocommit=True) as connection:
        for setting in ("fsync", "synchronous_commit", "full_page_writes"):
            connection.execute(sql.SQL("ALTER SYSTEM SET {} = off").format(sql.Identifier(setting)))
        connection.execute("SELECT pg_reload_conf()")


def pytest_collection_finish(session: pytest.Session) -> None:
    """Embed the sample before the first notebook, so that none waits for what all of them share."""
    if session.items and not session.config.option.collectonly:
        from sandbox import fill, server_url

        fill(server_url())


def pytest_unconfigure(config: pytest.Config) -> None:
    """Stop the server and remove the home, where this run made them."""
    owned = config.stash.get(_OWNED, None)
    if owned is not None:
        running = Path(owned) / "postgres" / "postmaster.pid"
        if running.exists():  # kernels are killed, not asked to leave, so the server would wait for them
            with suppress(ProcessLookupError):
                os.kill(int(running.read_text().split()[0]), signal.SIGQUIT)  # nothing in it has to be kept
        shutil.rmtree(owned, ignore_errors=True)
        os.environ.pop(HOME, None)

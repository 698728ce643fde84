"""The app as users run it: the real command as a process, a real Chromium, a fresh database."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psycopg
import pytest
from browser_server import ARTIFACTS, ASKED, FIRST, ROOT, free_port, wait_until_up
from looks import visit
from playwright.sync_api import BrowserContext, Error, Page, Playwright, expect, sync_playwright
from psycopg import conninfo, sql

from evals.experiments.catalogue import Experiments, make_cells
from evals.test_set import Question
from evals.test_sets.store import TestSetStore
from workbench import Workbench
from workbench.errors import WorkbenchError
from workbench.settings import Settings

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",  # only loopback addresses are ever resolved
)
PATIENT = 30_000  # ms

PASSAGES = {
    "gauge.md": "# Tide gauge\n\nThe tide gauge records the level of the sea every six minutes.\n\n"
    "## Calibrating\n\nCalibrate the float of the gauge once a month against the staff.\n",
    "well.md": "# Stilling well\n\nA stilling well keeps waves from the record; the gauge stands in it.\n",
    "bread.md": "# Bread\n\nKnead the dough, let it rise, and bake it in a hot oven.\n",
    "script.md": "# Gauge <script>alert(1)</script>\n\nA gauge <img src=x onerror=\"document.title='x'\"> & <b>.\n",
}


@pytest.fixture(scope="session")
def browser_database(server_url: str, template_database: str) -> Iterator[str]:
    """One database for all browser tests, which avoid conflicts by using different names."""
    name = "browser_" + template_database
    with psycopg.connect(server_url, autocommit=True) as connection:
        clone = sql.SQL("CREATE DATABASE {} TEMPLATE {}")
        connection.execute(clone.format(sql.Identifier(name), sql.Identifier(template_database)))
    yield conninfo.make_conninfo(server_url, dbname=name)
    with psycopg.connect(server_url, autocommit=True) as connection:
        connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


@pytest.fixture(scope="session")
def filled(browser_database: str, test_home: Path) -> Iterator[Workbench]:
    """The workbench on that database, with a few documents."""
    settings = Settings(home=test_home, database_url=browser_database, embedding_model="hash", _env_file=None)  # pyright: ignore
    with Workbench.open(settings=settings) as workbench, tempfile.TemporaryDirectory() as folder:
        for name, text in PASSAGES.items():
            (Path(folder) / name).write_text(text)
        workbench.ingest(folder, source="Harbour", tags=["sea"], on_progress=lambda progress: None)
        yield workbench


@pytest.fixture(scope="session")
def serve(test_home: Path) -> Iterator[Callable[..., str]]:
    """Start the app on a database, in a folder, with further settings; returns its address. It is ended by its id."""
    started: list[subprocess.Popen] = []

    def start(database_url: str, folder: Path = test_home, **settings: str) -> str:
        port = free_port()
        environment = {name: value for name, value in os.environ.items() if not name.startswith("WORKBENCH_")} | {
            "WORKBENCH_HOME": str(test_home),
            "WORKBENCH_DATABASE_URL": database_url,
            "WORKBENCH_EMBEDDING_MODEL": "hash",
            "WORKBENCH_CRAWL_ALLOW_HOSTS": "127.0.0.1",
            "PYTHONPATH": str(ROOT),
            **settings,
        }
        code = f"import sys; from workbench.app.shell.serve import serve; sys.exit(serve({port}))"
        started.append(subprocess.Popen([sys.executable, "-c", code], env=environment, cwd=folder))
        return f"http://127.0.0.1:{port}"

    yield start
    for process in started:
        process.terminate()
    for process in started:
        assert process.wait(20) in (0, -15, 143)


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrowserContext]:
    """One browser for all tests; its profile on disk keeps Streamlit's compiled scripts, 2 s of each page load."""
    executable = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    assert executable, "No Chromium here: 'apt-get install chromium' (make test does it), or put one into PATH."
    with sync_playwright() as playwright:
        profile = tmp_path_factory.mktemp("profile")
        yield _launched(playwright, executable, profile)


def _launched(playwright: Playwright, executable: str, profile: Path) -> BrowserContext:
    return playwright.chromium.launch_persistent_context(
        profile, executable_path=executable, args=list(FLAGS), viewport={"width": 1440, "height": 1000}
    )


@pytest.fixture(scope="session")
def app(serve: Callable[[str], str], filled: Workbench, browser_database: str, chromium: BrowserContext) -> str:
    """The address of the app on the filled database, once it has answered its first question."""
    address = serve(browser_database)
    wait_until_up(address)
    page = chromium.new_page()
    page.goto(f"{address}/?q=gauge", timeout=FIRST)
    page.locator(".card").first.wait_for(timeout=FIRST)
    page.close()
    return address


@pytest.fixture(scope="session")
def harbour(filled: Workbench) -> str:
    """A test set over the documents of the browser tests; returns its id."""
    store = TestSetStore(filled)
    made = store.create("Harbour <b>questions</b>")
    by_title = {document.title: document.id for document in filled.documents.list()}
    store.add_questions(made.id, [Question(f"q{n}", text) for n, text in enumerate(ASKED)])
    for n, title in enumerate(ASKED.values()):
        store.judge(made.id, f"q{n}", by_title[title], "relevant")
    return made.id


@pytest.fixture(scope="session")
def measured(filled: Workbench, harbour: str) -> str:
    """A finished experiment; returns its id."""
    experiments = Experiments(filled)
    made = experiments.create("Words or vectors", harbour, make_cells(["keyword", "vector", "hybrid"]))
    return experiments.run(made.id).id


_FAILED = pytest.StashKey[bool]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Note that an attempt failed, for the fixture that cleans up after it."""
    report = yield
    item.stash[_FAILED] = item.stash.get(_FAILED, False) or report.failed
    return report


@pytest.fixture(autouse=True)
def _cleared_for_another_try(request: pytest.FixtureRequest) -> Iterator[None]:
    """Delete what a failed attempt created, because the retry creates objects with the same names."""
    if "filled" not in request.fixturenames:
        yield
        return
    workbench = request.getfixturevalue("filled")
    _empty_tray(workbench)
    before = _made(workbench)
    request.node.stash[_FAILED] = False
    yield
    if request.node.stash[_FAILED]:
        for key, delete in _made(workbench).items():
            if key not in before:
                with suppress(WorkbenchError):
                    delete(key[1])


def _empty_tray(workbench: Workbench) -> None:
    """Cancel and dismiss the jobs that an earlier test left, so that a tray contains only the jobs of its test."""
    for job in workbench.jobs.in_view():
        if not job.is_finished:
            with suppress(WorkbenchError):
                workbench.jobs.cancel(job.id)
                workbench.jobs.wait(job.id, timeout=60)
        workbench.jobs.put_away(job.id)


def _made(workbench: Workbench) -> dict[tuple[str, str], Callable[[str], object]]:
    """Return how to delete each object that a test may create, by kind and key; dependent objects come first."""
    experiments, test_sets = Experiments(workbench), TestSetStore(workbench)
    return {
        **{("experiment", one.id): experiments.delete for one in experiments.list()},
        **{("test set", one.id): test_sets.delete for one in test_sets.list()},
        **{("index", one.name): workbench.indexes.delete for one in workbench.indexes.list()},
        **{("source", one.id): workbench.sources.delete for one in workbench.sources.list()},
        **{("project", one.id): workbench.projects.delete for one in workbench.projects.list()},
    }


@pytest.fixture
def page(chromium: BrowserContext) -> Iterator[Page]:
    """A new visitor at 1440 pixels in a new tab; a script error fails the test."""
    with _without_errors(chromium.new_page()) as visitor:
        yield visitor
        _forget_visitor(chromium)


@pytest.fixture
def own_tab(chromium: BrowserContext, app: str) -> Iterator[Page]:
    """The browser's own tab, where a page of the app costs less than in a new one; a script error fails the test."""
    with _without_errors(chromium.pages[0]) as visitor:
        visitor.set_viewport_size({"width": 1440, "height": 1000})
        yield visitor
        visitor.emulate_media(color_scheme="light")
        visitor.goto(f"{app}/_stcore/health")  # ends the visit, and the browser keeps the process


@contextmanager
def _without_errors(visitor: Page) -> Generator[Page]:
    """Be patient with a page, and fail at the end if one of its scripts failed."""
    expect.set_options(timeout=PATIENT)
    visitor.set_default_timeout(PATIENT)
    errors: list[str] = []

    def note(error: Error) -> None:
        errors.append(str(error))

    visitor.on("pageerror", note)
    yield visitor
    visitor.remove_listener("pageerror", note)
    assert errors == []


def _forget_visitor(chromium: BrowserContext) -> None:
    """Close the tabs of a test and delete what their sites stored, except the compiled scripts."""
    first, *opened = chromium.pages  # the first is the browser's own
    sites = {one.url.partition("://")[2].partition("/")[0] for one in opened if one.url.startswith("http://")}
    for one in opened:
        one.close()
    chromium.clear_cookies()
    session = chromium.new_cdp_session(first)
    for site in sites:
        wanted = {"origin": f"http://{site}", "storageTypes": "local_storage,indexeddb,cache_storage,service_workers"}
        session.send("Storage.clearDataForOrigin", wanted)
    session.detach()


@pytest.fixture
def goto(page: Page, app: str) -> Callable[[str], Page]:
    """Visit a page of the app."""
    return lambda path: visit(page, app + path)


@pytest.fixture
def keep(page: Page) -> Callable[[str], None]:
    """Save a screenshot of the page as an artefact of the run."""
    ARTIFACTS.mkdir(exist_ok=True)
    return lambda name: page.screenshot(path=ARTIFACTS / f"{name}.png") and None

"""Work started in the app continues without its page, tab and process, and is shown again afterwards."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from browser_server import free_port, wait_until_up
from playwright.sync_api import expect

from workbench import Workbench

pytestmark = pytest.mark.browser
ROOT = Path(__file__).parents[2]
SLOW = 120_000  # ms: a worker's death is noticed after fifteen seconds, and a busy machine embeds slowly


@pytest.fixture
def run_app(database_url: str, test_home: Path) -> Iterator[Callable[..., tuple[str, subprocess.Popen]]]:
    """Run the app on the test's database; remaining processes are ended by their ids."""
    started = []

    def run(worker: bool) -> tuple[str, subprocess.Popen]:
        port = free_port()
        settings = {"HOME": test_home, "DATABASE_URL": database_url, "EMBEDDING_MODEL": "hash", "RUN_WORKER": worker}
        environment = os.environ | {f"WORKBENCH_{name}": str(value) for name, value in settings.items()}
        code = f"import sys; from workbench.app.shell.serve import serve; sys.exit(serve({port}))"
        command = [sys.executable, "-c", code]
        process = subprocess.Popen(command, env=environment | {"PYTHONPATH": str(ROOT)}, cwd=test_home)
        started.append(process)
        wait_until_up(f"http://127.0.0.1:{port}")
        return f"http://127.0.0.1:{port}", process

    yield run
    for process in started:
        if process.poll() is None:
            process.terminate()
        process.wait(20)


def upload(page, count: int, words: int) -> None:
    """Drop files and start the upload."""
    page.locator("input[type=file]").set_input_files(
        [
            {"name": f"{n:03}.md", "mimeType": "text/markdown", "buffer": (f"# {n}\n\n" + f"word{n} " * words).encode()}
            for n in range(count)
        ]
    )
    page.get_by_role("button", name=f"Add {count} files").click()


def test_an_upload_outlives_its_page_and_the_app_and_two_tabs_see_the_same(page, run_app, keep):
    address, process = run_app(worker=False)
    page.goto(f"{address}/library")
    upload(page, 3, 5)
    rows = page.get_by_role("table", name="Adding 3 files to Uploads")
    expect(rows.get_by_role("row", name="001.md")).to_contain_text("waiting")
    expect(page.get_by_text("start one with 'workbench worker'")).to_be_visible()
    keep("work-waiting-1440-light")
    page.reload()
    expect(rows.get_by_role("row", name="002.md")).to_contain_text("waiting")

    other = page.context.new_page()
    other.goto(f"{address}/library")
    content = other.get_by_test_id("stMainBlockContainer")  # Streamlit's header may have a Stop, too
    stop = content.get_by_role("button", name="Cancel")
    stop.click()
    expect(page.get_by_text("cancelled: 3 not added")).to_be_visible()
    expect(rows.get_by_role("row", name="000.md")).to_contain_text("not added (cancelled)")
    page.get_by_role("button", name="Resume").click()
    expect(rows.get_by_role("row", name="000.md")).to_contain_text("waiting")
    expect(stop).to_be_enabled()  # not the one of before, which is being stopped
    other.close()

    process.send_signal(signal.SIGKILL)
    process.wait()
    address, _ = run_app(worker=True)
    page.goto(f"{address}/library")
    expect(page.locator(".st-key-tray")).to_contain_text("completed: 3 added", timeout=SLOW)
    expect(rows).to_have_count(0)  # it is one line by now
    expect(page.get_by_role("row", name="Uploads")).to_contain_text("3")
    page.get_by_role("button", name="Dismiss").click()
    expect(page.get_by_role("button", name="Dismiss")).to_have_count(0)
    expect(page.get_by_role("row", name="Uploads")).to_be_visible()
    page.reload()
    expect(page.get_by_role("row", name="Uploads")).to_be_visible()
    expect(rows).to_have_count(0)


def test_the_first_own_answer_is_two_clicks_away_and_the_keyboard_stays(page, run_app, keep):
    address, _ = run_app(worker=True)
    page.goto(address)
    upload(page, 3, 5)  # one click opens the choice of files, the other adds them
    question = page.get_by_label("Question")
    expect(question).to_be_focused(timeout=SLOW)
    page.keyboard.type("word1")
    page.keyboard.press("Enter")
    expect(page.locator(".card .title").first).to_be_focused(timeout=SLOW)
    keep("first-answer-1440-light")


def test_an_app_that_is_killed_in_the_middle_of_an_upload_continues_when_it_comes_back(
    page, run_app, keep, make_settings
):
    address, process = run_app(worker=True)
    with Workbench.open(settings=make_settings()) as wb:
        page.goto(f"{address}/library")
        upload(page, 100, 5000)
        expect(page.get_by_role("row", name="added, ").first).to_be_visible(timeout=SLOW)
        process.send_signal(signal.SIGKILL)
        process.wait()
        keep("work-killed-1440-light")
        [job] = wb.jobs.in_view()
        there = {document.id: document.updated_at for document in wb.documents.list(limit=100)}
        assert job.status in (
            "running",
            "queued",
        )  # the worker alongside gives it back once it sees that its app is gone
        assert 0 < len(there) < 100

        address, _ = run_app(worker=True)
        page.goto(address)
        expect(page.get_by_text("Adding 100 files to Uploads")).to_be_visible()
        expect(page.get_by_text("completed: 100 added")).to_be_visible(timeout=SLOW)
        assert wb.jobs.tally(job.id).files == {"added": 100}
        stored = {document.id: document.updated_at for document in wb.documents.list(limit=101)}
        assert len(stored) == 100
        assert there.items() <= stored.items()  # what a done part has stored is not written again
        assert wb.jobs.get(job.id).result["documents"]["added"] == 100
        keep("work-done-1440-light")

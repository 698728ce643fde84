"""The looks of the first minute: nothing there yet, what is offered, a database that is slow or does not answer."""

import socket

import pytest
from browser_server import wait_until_up
from conftest import FIRST
from pictures import pictures, write_sheets
from playwright.sync_api import expect
from states import DOWN, EMPTY, OFFERS, OPENING

from workbench.services.sample_corpus import SAMPLE_TITLE

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]
GERMAN = "Der Turm steht in der alten Stadt und ist dreihundert Meter hoch. Für zwei Euro sieht man den Fluss."


@pytest.fixture
def seen(page):
    """Look at states of a server: each at every width in both themes; returns the pictures by name."""

    def look(address, states):
        def goto(path):
            page.goto(address + path)
            return page

        wait_until_up(address)
        rows = {}
        for name, state in states.items():
            expect.set_options(timeout=FIRST)  # the first page of a process imports the framework
            state.reach(goto, {})
            rows[name] = pictures(page, name, state.landmark)
        return rows

    return look


def test_an_empty_workbench_and_its_offers_are_without_serious_findings_and_fit_every_width(
    seen, serve, minilm_wb, folder
):
    database = minilm_wb.settings.database_url.get_secret_value()
    address = serve(database, WORKBENCH_EMBEDDING_MODEL="minilm", WORKBENCH_RUN_WORKER="false")
    rows = seen(address, EMPTY)
    minilm_wb.ingest(folder({"turm.md": GERMAN}), source=SAMPLE_TITLE, on_progress=lambda progress: None)
    write_sheets(rows | seen(address, OFFERS), "empty")


def test_a_database_that_is_slow_or_down_is_shown_without_serious_findings_at_every_width(seen, serve):
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        rows = seen(serve(f"postgresql://nobody@127.0.0.1:{silent.getsockname()[1]}/nothing"), OPENING)
    write_sheets(rows | seen(serve("postgresql://nobody@127.0.0.1:1/nothing"), DOWN), "broken")

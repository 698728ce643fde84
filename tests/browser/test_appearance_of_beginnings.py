"""The appearance of a first start: empty pages, offers, and a database that is slow or does not respond."""

import socket
from pathlib import Path

import psycopg
import pytest
from browser_server import FIRST, wait_until_up
from pictures import pictures, write_sheets
from playwright.sync_api import expect
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from states import DOWN, EMPTY, OFFERS, OPENING

from tests.storage.relay import Relay
from workbench.services.sample_corpus import SAMPLE_TITLE

pytestmark = [pytest.mark.browser, pytest.mark.timeout(1200)]  # two states of each of two servers
GERMAN = "Der Turm steht in der alten Stadt und ist dreihundert Meter hoch. Für zwei Euro sieht man den Fluss."


# Counts the columns of the skeleton wherever they are.
COUNT_MIXTURES = """
window.mixed = 0;
new MutationObserver(() => {
    const inside = ":is(.st-key-scopebar, .st-key-above_board) [data-testid=stColumn]";
    window.mixed += document.querySelectorAll(inside).length;
}).observe(document, { childList: true, subtree: true });
"""


@pytest.fixture
def seen(page):
    """Check states of a server at every width in both themes; returns the screenshots by name."""

    def look(address, states):
        def goto(path):
            page.set_viewport_size({"width": 1440, "height": 1000})  # the state before ended as narrow as a phone
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


def test_an_empty_workbench_and_its_offers_are_without_findings_and_fit_every_width(seen, serve, minilm_wb, folder):
    database = minilm_wb.settings.database_url.get_secret_value()
    address = serve(database, WORKBENCH_EMBEDDING_MODEL="minilm", WORKBENCH_RUN_WORKER="false")
    rows = seen(address, EMPTY)
    minilm_wb.ingest(folder({"turm.md": GERMAN}), source=SAMPLE_TITLE, on_progress=lambda progress: None)
    write_sheets(rows | seen(address, OFFERS), "empty")


def test_a_database_that_is_slow_or_down_is_shown_without_findings_at_every_width(seen, serve):
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        place = f"127.0.0.1:{silent.getsockname()[1]}"
        rows = seen(serve(f"postgresql://nobody@{place}/nothing?connect_timeout=3600"), OPENING)
    write_sheets(rows | seen(serve("postgresql://nobody@127.0.0.1:1/nothing"), DOWN), "broken")


def test_a_database_of_another_version_is_described_without_a_button_that_cannot_help(page, serve, database_url):
    with psycopg.connect(database_url) as connection:
        connection.execute("UPDATE schema_migrations SET checksum = 'other'")
    address = serve(database_url, WORKBENCH_RUN_WORKER="false")
    wait_until_up(address)
    page.goto(address)
    expect(page.get_by_text("Database of another version")).to_be_visible(timeout=FIRST)
    expect(page.get_by_text("'workbench export FILE'")).to_be_visible()
    expect(page.get_by_text("start the app again")).to_be_visible()
    expect(page.get_by_role("button", name="Try again")).to_be_hidden()


def test_what_is_shown_in_the_meantime_is_gone_before_the_page_is_drawn(page, serve, filled, browser_database):
    relay = Relay(Path(conninfo_to_dict(browser_database)["host"]) / ".s.PGSQL.5432", held=True)
    address = serve(make_conninfo(browser_database, host="127.0.0.1", port=relay.port), WORKBENCH_RUN_WORKER="false")
    wait_until_up(address)
    page.add_init_script(COUNT_MIXTURES)
    page.goto(f"{address}/?q=tide+gauge")
    expect(page.get_by_text("Starting the workbench")).to_be_visible(timeout=FIRST)
    relay.let_in()
    expect(page.locator(".card").first).to_be_visible(timeout=FIRST)
    assert page.evaluate("window.mixed") == 0

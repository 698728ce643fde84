"""Indexes on the System page in a real browser: create, build, make default, drop; attach a table."""

from urllib.parse import quote

import psycopg
import pytest
from looks import axe_findings, pick_option
from playwright.sync_api import expect
from psycopg.conninfo import make_conninfo

from workbench.models.hashing import HashEncoder

pytestmark = pytest.mark.browser
SLOW = 120_000  # ms
NOTES = {
    "ebb": "The ebb uncovers the mussel beds of the outer harbour for two hours.",
    "neap": "Neap tides have the smallest range, a week after full moon.",
}


@pytest.fixture
def main_again(filled):
    """Restore the default index for the other tests."""
    yield
    filled.indexes.set_default("main")


def test_an_index_is_made_built_in_the_background_made_the_default_and_dropped(goto, keep, filled, main_again):
    page = goto("/system")
    page.get_by_role("button", name="New index").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name").fill("Sentences!")
    dialog.get_by_role("button", name="Create and build").click()
    expect(dialog.get_by_role("alert")).to_contain_text("use lower-case letters, digits and _")
    dialog.get_by_label("Name").fill("sentences")
    pick_option(dialog.get_by_role("combobox", name="Chunker"), "hierarchical")
    expect(dialog.get_by_text("Small passages that return their section.")).to_be_visible()
    dialog.get_by_role("spinbutton", name="Max tokens of a section").fill("200")
    dialog.get_by_role("spinbutton", name="Max tokens of a section").press("Tab")
    keep("index-new-1440-light")
    assert axe_findings(page) == []
    dialog.get_by_role("button", name="Create and build").click()
    expect(page.get_by_text('Index "sentences" created. It is being built')).to_be_visible()
    expect(page.get_by_text("completed: sentences has")).to_be_visible(timeout=SLOW)
    row = page.get_by_role("table", name="Indexes").get_by_role("row", name="sentences")
    expect(row).to_contain_text("ready")
    expect(row).to_contain_text("parent 200")
    page.get_by_role("button", name="Dismiss").click()
    expect(page.get_by_role("button", name="Dismiss")).to_have_count(0)
    assert filled.indexes.get("sentences").chunker_options["parent"] == 200

    page.get_by_role("checkbox", name="Select sentences").check()
    keep("indexes-1440-light")
    page.get_by_role("button", name="Make default").click()
    expect(page.get_by_text('"sentences" is now the default index.')).to_be_visible()
    expect(page.get_by_role("button", name="Drop")).to_have_count(1)  # the page has been drawn again
    expect(page.get_by_role("button", name="Drop")).to_be_disabled()
    page.get_by_role("checkbox", name="Select sentences").uncheck()
    page.get_by_role("checkbox", name="Select main").check()
    page.get_by_role("button", name="Make default").click()
    expect(page.get_by_text('"main" is now the default index.')).to_be_visible()

    page.get_by_role("checkbox", name="Select main").uncheck()
    page.get_by_role("checkbox", name="Select sentences").check()
    page.get_by_role("button", name="Drop").click()
    expect(page.get_by_role("dialog")).to_contain_text("Documents are kept")
    page.get_by_role("button", name="Drop sentences").click()
    expect(page.get_by_text('Index "sentences" dropped. Documents are kept.')).to_be_visible()
    expect(row).to_have_count(0)
    assert [index.name for index in filled.indexes.list()] == ["main"]


def test_an_index_that_lacks_documents_reports_it_and_is_brought_up_to_date(goto, filled):
    filled.indexes.create("late", chunker="token")
    page = goto("/system")
    row = page.get_by_role("table", name="Indexes").get_by_role("row", name="late")
    expect(row).to_contain_text("documents missing")
    page.get_by_role("checkbox", name="Select late").check()
    page.get_by_role("button", name="Build").click()
    expect(row).to_contain_text("ready", timeout=SLOW)
    assert filled.indexes.count_missing("late") == 0
    page.get_by_role("button", name="Dismiss").click()
    expect(page.get_by_role("button", name="Dismiss")).to_have_count(0)
    filled.indexes.delete("late")


@pytest.fixture
def tides(server_url):
    """Another database with a pgvector table whose columns have names of their own."""
    with psycopg.connect(server_url, autocommit=True) as connection:
        connection.execute("CREATE DATABASE tides")
    url = make_conninfo(server_url, dbname="tides")
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE EXTENSION vector")
        connection.execute("CREATE TABLE notes (key text PRIMARY KEY, words text, meaning vector)")
        vectors = HashEncoder().encode(list(NOTES.values())).vectors.tolist()
        for (key, words), vector in zip(NOTES.items(), vectors, strict=True):
            connection.execute("INSERT INTO notes VALUES (%s, %s, %s)", (key, words, str(vector)))
    yield url
    with psycopg.connect(server_url, autocommit=True) as connection:
        connection.execute("DROP DATABASE tides WITH (FORCE)")


def test_a_table_is_attached_synced_searched_in_place_and_dropped(goto, keep, filled, tides):
    page = goto("/system")
    page.get_by_role("button", name="Attach table").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name", exact=True).fill("tides")
    dialog.get_by_label("Postgres URL", exact=True).fill(tides)
    dialog.get_by_label("Table or view", exact=True).fill("note")
    dialog.get_by_role("button", name="Attach", exact=True).click()
    expect(dialog.get_by_role("alert")).to_contain_text("Table not found: note")
    dialog.get_by_label("Table or view", exact=True).fill("notes")
    dialog.get_by_text("Columns, if they are not recognised").click()
    for role, column in (("Id", "key"), ("Text", "words"), ("Vector", "meaning")):
        dialog.get_by_label(role, exact=True).fill(column)
    keep("table-attach-1440-light")
    assert axe_findings(page) == []
    dialog.get_by_role("button", name="Attach", exact=True).click()
    expect(page.get_by_text('Table attached as "tides".')).to_be_visible()
    row = page.get_by_role("table", name="Indexes").get_by_role("row", name="tides")
    expect(row).to_contain_text("ready", timeout=SLOW)
    expect(row).to_contain_text("2")

    page = goto(f"/?q={quote(NOTES['ebb'])}&s=hybrid@tides")
    found = page.get_by_text("The ebb uncovers the mussel beds").filter(visible=True)  # the hidden one is the question
    expect(found.first).to_be_visible(timeout=SLOW)

    with psycopg.connect(tides, autocommit=True) as connection:
        connection.execute("DELETE FROM notes WHERE key = 'ebb'")
    page = goto("/system")
    page.get_by_role("checkbox", name="Select tides").check()
    page.get_by_role("button", name="Sync").click()
    expect(page.get_by_text('Building index "tides"')).to_be_visible()
    expect(row).to_contain_text("ready", timeout=SLOW)
    page.get_by_role("button", name="Drop").click()
    page.get_by_role("button", name="Drop tides").click()
    expect(page.get_by_text('Index "tides" dropped.')).to_be_visible()
    with psycopg.connect(tides) as connection:
        assert connection.execute("SELECT key FROM notes").fetchall() == [("neap",)]
    assert [index.name for index in filled.indexes.list()] == ["main"]

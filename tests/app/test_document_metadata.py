"""Metadata of documents in the library, and the search inside a document."""

import pytest

from workbench.app.library.page import find_metadata_changes, make_document_row, save_document
from workbench.app.shell.scope_bar import list_metadata_values
from workbench.app.state.shared import note_change
from workbench.app.widgets.reader import find_in_text, list_metadata
from workbench.errors import Conflict
from workbench.types import Document

MADE = Document(
    "doc",
    "src",
    "Tide gauge",
    metadata={"title": "Tide gauge", "author": "Mei", "tags": ["sea", "level"], "n": {"a": 1}, "crawl_depth": 1},
)


def test_readable_metadata_is_shown_and_what_was_edited_is_found():
    assert list_metadata(MADE) == {"author": "Mei", "tags": "sea, level"}
    rows = [{"Name": "author", "Value": "Mei"}, {"Name": "tags", "Value": "sea, level"}]
    assert find_metadata_changes(MADE, rows) == {}
    rows = [
        {"Name": "tags", "Value": "sea, tide"},
        {"Name": "status", "Value": "draft "},
        {"Name": None, "Value": None},
    ]
    assert find_metadata_changes(MADE, rows) == {"author": None, "tags": ["sea", "tide"], "status": "draft"}


def test_a_document_is_searched_without_regard_to_case_and_line_breaks():
    text = "The tide\n gauge (float). A TIDE GAUGE."
    assert [text[start:end] for start, end in find_in_text(text, "tide gauge")] == ["tide\n gauge", "TIDE GAUGE"]
    assert [text[start:end] for start, end in find_in_text(text, "(float)")] == ["(float)"]
    assert find_in_text(text, "  ") == find_in_text(text, "tides") == []


def test_a_row_of_the_list_has_the_metadata_that_says_something():
    known = {"author": "Mei", "status": "draft", "pages": 3, "created": "2024-01-02", "pdf_title": "Gauge"}
    row = make_document_row(Document("doc", "src", "Tide gauge", path="gauge.pdf", metadata=known))
    assert row["notes"] == {"title": "gauge.pdf · author: Mei · status: draft"}


def test_the_scope_offers_what_people_wrote_not_what_a_crawl_notes(wb, folder):
    wb.ingest(folder({"a.md": "---\nstatus: draft\ncrawl_depth: 1\ncrawled_at: 2026-01-02\n---\n# A\n\nText."}))
    note_change()  # the values are cached until a change
    assert list_metadata_values(wb, None) == {"status=draft": "status: draft · 1"}


def test_of_two_people_who_edit_a_document_neither_loses_a_change(wb, folder):
    wb.ingest(folder({"a.md": "---\nstatus: draft\nauthor: Mei\n---\n# A\n\nText."}))
    [shown] = [wb.documents.get(each.id) for each in wb.documents.list()]
    save_document(wb, shown, "Gauge", {"status": "final"})
    both = save_document(wb, shown, shown.title, {"author": "Ana"})  # who sees the document as it was before
    assert (both.title, both.metadata["status"], both.metadata["author"]) == ("Gauge", "final", "Ana")
    assert save_document(wb, shown, "Gauge", {"status": "final"}).title == "Gauge"  # both entered the same
    for title, changes, kept in (("Tide", {}, "title: Gauge"), (shown.title, {"status": None}, "status: final")):
        with pytest.raises(Conflict, match=kept):
            save_document(wb, shown, title, changes)

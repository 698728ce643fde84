"""A comparison exported as Markdown: the text of documents never becomes markup."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import nbformat
import pytest

from workbench import Scope, Workbench
from workbench.errors import InvalidInput
from workbench.export import CompareArguments, comparison_notebook, export_comparison

HOSTILE = (
    "The tide ![t](http://127.0.0.1:9999/track.png) and [a link](http://x) with `code` and <b>bold</b>.\n\n# no heading"
)
ASKED = CompareArguments(("keyword", "hybrid"), 5, Scope(tags=("sea",)), None, {"hybrid": {"vector_weight": 0.25}})


def test_nothing_in_a_document_becomes_a_mark_a_link_or_a_picture(wb: Workbench, folder: Callable[..., Path]) -> None:
    wb.ingest(folder({"tide.txt": HOSTILE}), source="Sea", tags=["sea"])
    compared = wb.compare("the *tide*", strategies=["keyword", "hybrid"], limit=5)
    text = export_comparison(compared, ASKED, "out.MD")
    assert text.startswith("# the \\*tide\\*\n")
    assert "![t]" not in text and "[a link](" not in text and "<b>" not in text
    assert "vector_weight 0.25" in text.replace("\\", "")
    assert [line for line in text.splitlines() if line.startswith("#")][1:] == [
        "## keyword",
        "## hybrid",
        "## Agreement",
    ]


def test_a_notebook_is_one_and_asks_in_the_same_way(wb: Workbench, folder: Callable[..., Path]) -> None:
    wb.ingest(folder({"tide.txt": HOSTILE}), source="Sea", tags=["sea"])
    compared = wb.compare('the "tide"', strategies=["keyword", "hybrid"])
    notebook = nbformat.reads(comparison_notebook(compared, ASKED), as_version=4)
    nbformat.validate(notebook)
    asks = notebook.cells[1].source
    assert "scope=Scope(tags=('sea',))" in asks and "'vector_weight': 0.25" in asks and repr('the "tide"') in asks


def test_another_ending_is_refused(wb: Workbench) -> None:
    with pytest.raises(InvalidInput, match="expected a suffix in"):
        export_comparison(wb.compare("x", strategies=["keyword"]), ASKED, "out.docx")

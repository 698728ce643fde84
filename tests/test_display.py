"""Results without HTML: in a console, and as plain text in a stored notebook."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from IPython.lib.pretty import pretty

from workbench import Workbench

DOCS = {"cats.md": "# Cats\n\nCats purr when they are content.", "dogs.md": "# Dogs\n\nDogs bark at strangers."}


def test_a_console_shows_ranks_scores_and_titles_without_ids(wb: Workbench, folder: Callable[..., Path]) -> None:
    report = wb.ingest(folder(DOCS), source="Animals", on_progress=lambda _: None)
    assert pretty(report) == "2 added, 0 updated, 0 unchanged, 0 failed; 2 passages"
    found = wb.search("purr", strategy="keyword")
    assert pretty(found).splitlines() == ["1 passage by keyword for 'purr'", f"  1  {found[0].score:.2f}  Cats"]
    compared = pretty(wb.compare("purr", strategies=["keyword", "vector"]))
    assert compared.startswith(pretty(found))
    assert "passages by vector" in compared
    assert pretty(wb.ask("purr")) == wb.ask("purr")._repr_markdown_()


def test_a_hit_in_a_table_is_shown_as_a_table(wb: Workbench, folder: Callable[..., Path]) -> None:
    table = "# Dues\n\n| Quay | 2023 | 2024 |\n|---|---|---|\n| Outer & inner | 120 | 131 |\n"
    wb.ingest(folder({"dues.md": table}), source="Dues", on_progress=lambda _: None)
    shown = wb.search("outer quay 2024", strategy="keyword")._repr_html_()
    assert "<th><mark>Quay</mark></th><th>2023</th><th><mark>2024</mark></th>" in shown
    assert "<td><mark>Outer</mark> &amp; inner</td><td>120</td><td>131</td>" in shown and "|" not in shown
    assert "Outer</mark> &amp; inner, 2023: 120 · <mark>2024</mark>: 131" in wb.compare("outer quay 2024")._repr_html_()

"""The "why" panel: chosen on the page, run by Streamlit itself without a browser."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from streamlit.testing.v1 import AppTest

from workbench import Workbench
from workbench.app.engine import ENGINE
from workbench.app.why import why_html

DOCS = {
    "cats.md": "# Cats\n\nCats purr when content.",
    "x.md": "# <b>Dogs</b>\n\nDogs bark at <script>strangers</script>.",
}


def panel() -> None:
    """The panel alone, under an answer."""
    from workbench.app.engine import ENGINE
    from workbench.app.why import why_panel

    comparison = ENGINE.workbench.compare("cats purr", ["keyword", "rerank"])
    why_panel(ENGINE.workbench, comparison, {"limit": 10, "scope": None, "index": None, "parameters": {}})


def shown(app: AppTest) -> str:
    """All HTML on the page."""
    assert not app.exception
    return " ".join(one.proto.body for one in app.get("html"))


def test_a_chosen_passage_is_taken_apart_and_a_missed_document_is_traced(
    wb: Workbench, folder: Callable[..., Path]
) -> None:
    wb.ingest(folder(DOCS), source="Animals")
    ENGINE.use(wb)
    app = AppTest.from_function(panel, default_timeout=120).run()
    assert shown(app) == "" and "Rerank 1: Cats" in app.selectbox(key="why_hit").options
    app.selectbox(key="why_hit").select("Rerank 1: Cats").run()
    assert "words in it</caption>" in shown(app) and "<td>purr</td>" in shown(app) and "It is number 1." in shown(app)
    other = next(item.title for item in wb.knowledge.documents() if item.title != "Cats")
    app.selectbox(key="why_not").select(other).run()
    assert "found. It is number 2." in shown(app)


def test_texts_of_documents_are_shown_and_never_become_markup(wb: Workbench, folder: Callable[..., Path]) -> None:
    wb.ingest(folder(DOCS), source="Animals")
    hit = wb.search("strangers script", limit=1)[0]
    page = why_html(wb.explain("<script>strangers", hit.passage_id))
    assert "<script" not in page and "<b>Dogs" not in page
    assert page.count("<table>") == page.count("</table>") >= 3

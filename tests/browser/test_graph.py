"""The Graph page in a real browser: a chart that responds to hovering and clicking."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from workbench import Workbench
from workbench.app.graph.page import INK_COLOURS

pytestmark = pytest.mark.browser
LABEL = '[data-testid*="Chart"] svg text'
OVERLAPS = """() => {
  const texts = document.querySelectorAll('[data-testid*="Chart"] svg text');
  const labels = [...texts].filter((one) => one.textContent.trim());
  const boxes = labels.map((one) => [one.textContent, one.getBoundingClientRect()]);
  return boxes.flatMap(([text, a], place) => boxes.slice(place + 1)
    .filter(([, b]) => a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 2 && b.top < a.bottom - 2)
    .map(([other]) => `${text} / ${other}`));
}"""


@pytest.fixture(scope="session")
def linked(filled: Workbench) -> str:
    """A source of three notes that cite one document; returns its id."""
    notes = {f"{n}.md": f"# Spoke {n}\n\nThe axle is told in [the hub](hub.md)." for n in range(3)}
    hostile = "# Hub <img src=x onerror=\"document.title='x'\">\n\nHeld by all <script>document.title='x'</script>."
    with tempfile.TemporaryDirectory() as folder:
        for name, text in (notes | {"hub.md": hostile}).items():
            (Path(folder) / name).write_text(text)
        return filled.ingest(folder, source="Wheel", on_progress=lambda progress: None).source_id


def test_a_click_on_a_dot_opens_its_document_and_markup_stays_text(
    goto: Callable[[str], Page], linked: str, keep: Callable[[str], None]
) -> None:
    page = goto(f"/graph?source={linked}")
    label = page.locator(LABEL, has_text="Hub <img").first
    expect(label).to_be_visible()
    keep("graph")
    box = label.bounding_box()
    assert box is not None
    page.mouse.click(box["x"] - 12, box["y"] + box["height"] / 2)
    expect(page.get_by_role("dialog")).to_contain_text("Held by all <script>")
    assert "doc=" in page.url
    assert page.title() != "x"


def test_the_picture_takes_the_colours_of_a_theme_that_changes_while_it_is_shown(
    goto: Callable[[str], Page], linked: str
) -> None:
    page = goto(f"/graph?source={linked}")
    expect(page.locator(LABEL, has_text="Hub <img").first).to_have_attribute("fill", INK_COLOURS["light"])
    page.emulate_media(color_scheme="dark")
    expect(page.locator(LABEL, has_text="Hub <img").first).to_have_attribute("fill", INK_COLOURS["dark"])


def test_the_most_cited_document_opens_from_its_row(goto: Callable[[str], Page], linked: str) -> None:
    page = goto(f"/graph?source={linked}&view=links")
    page.get_by_role("button", name="Hub <img").first.click()
    expect(page.get_by_role("dialog")).to_contain_text("Held by all")


def test_three_hundred_documents_are_drawn_as_that_many_dots(
    goto: Callable[[str], Page], filled: Workbench, keep: Callable[[str], None]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for n in range(300):
            title = f"# Leaf {n} of a tree with long titles\n\n"
            text = f"{title}Above it is [its branch]({n // 3}.md), beside it [the next]({(n + 1) % 300}.md)."
            (Path(folder) / f"{n}.md").write_text(text)
        tree = filled.ingest(folder, source="Tree", on_progress=lambda progress: None).source_id
    page = goto(f"/graph?source={tree}")
    expect(page.get_by_text("300 documents, ")).to_be_visible()
    expect(page.locator(LABEL).first).to_be_visible()
    keep("graph_300")
    page.wait_for_function("""document.querySelectorAll('[data-testid*="Chart"] svg path').length > 600""")
    page.wait_for_function(f"({OVERLAPS})().length === 0")  # the chart is redrawn for a new width
    page.set_viewport_size({"width": 390, "height": 844})
    expect(page.locator(LABEL).first).to_be_visible()
    page.wait_for_function("document.querySelector('[data-testid*=Chart] svg').getBoundingClientRect().width < 390")
    keep("graph_300_phone")
    page.wait_for_function(f"({OVERLAPS})().length === 0")  # the chart is redrawn for a new width


@pytest.mark.parametrize("width", [390, 720])
def test_in_a_narrow_window_no_name_is_cut_off_at_an_edge_or_covers_another(
    goto: Callable[[str], Page], filled: Workbench, page: Page, tmp_path: Path, width: int
) -> None:
    for n in range(40):
        others = " ".join(f"[see]({other}.md)" for other in (n + 1, (n * 7) % 40, n // 3) if other < 40)
        (tmp_path / f"{n}.md").write_text(f"# A long title of the note number {n}\n\nIt leads on. {others}\n")
    source = filled.ingest(tmp_path, source=f"Notes {width}", on_progress=lambda progress: None).source_id
    page.set_viewport_size({"width": width, "height": 900})
    goto(f"/graph?source={source}")
    expect(page.locator(LABEL, has_text="A long title").first).to_be_visible()
    page.wait_for_function(f"({OVERLAPS})().length === 0")  # the chart is redrawn for a new width
    frame = page.locator('[data-testid*="Chart"] svg').first.bounding_box()
    assert frame is not None
    for label in page.locator(LABEL).all():
        box = label.bounding_box()
        assert box is not None
        assert frame["x"] <= box["x"] and box["x"] + box["width"] <= frame["x"] + frame["width"]

"""The reader in a real browser: rendered Markdown with its passages, an outline, the raw text, long texts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from looks import assert_fits, axe_findings
from playwright.sync_api import Page, expect

from workbench import Workbench
from workbench.types import Document

pytestmark = pytest.mark.browser

SENTENCE = "Lower the **weighted** tape until its `hook` touches the water, then read the dial twice."
HANDBOOK = f"""# Handbook of the dip tape

A dip tape finds the level of water in a borehole. See [the gauge](gauge.md) and ![a tape](tape.png).

## Reading

{SENTENCE}

> A slack tape reads too deep.

1. Wipe the tape.
2. Write down *both* readings:
   - the first,
   - the second.

| Borehole | Depth in m | Read by |
|:---------|-----------:|:-------:|
| North | 12.41 | A \\| B |
| South | 9.07 | `C` |

## Correcting

The correction for the tape's stretch is $c = \\frac{{w L}}{{2 E A}}$ for a tape of length $L$.

$$
h = h_0 - \\sum_{{i=1}}^{{n}} c_i
$$

### In code

```python
def corrected(depth: float, stretch: float) -> float:
    return depth - stretch  # in metres, both of them; a line longer than the frame is wide scrolls
```

## البرج

يبلغ ارتفاع البرج ثلاثمئة متر ويقع في وسط المدينة القديمة.

- يصعد إليه الزوار
"""


@pytest.fixture
def written(filled: Workbench, folder: Callable[..., Path]) -> Iterator[Callable[[str], Document]]:
    """Create a document from a Markdown file; it is deleted after the test."""
    made: list[Document] = []

    def write(text: str) -> Document:
        path = folder({"handbook.md": text}) / "handbook.md"
        made.append(filled.documents.get(filled.documents.create(path=path).document.id))
        return made[-1]

    yield write
    for document in made:
        filled.documents.delete(document.id)


@pytest.fixture
def handbook(written: Callable[[str], Document]) -> Document:
    """A document with every Markdown feature."""
    return written(HANDBOOK)


def opened(document: Document, quote: str) -> str:
    """Return the path that opens a document at a quotation."""
    start = (document.text or "").index(quote)
    return f"/library?doc={document.id}&at={start}-{start + len(quote)}"


def test_markdown_is_rendered_and_the_found_passage_is_marked_in_it(
    goto: Callable[[str], Page], handbook: Document, keep: Callable[[str], None]
) -> None:
    page = goto(opened(handbook, SENTENCE))
    body = page.locator(".reader .body.rendered")
    expect(body.get_by_role("heading", name="Correcting")).to_be_visible()
    found = body.locator(".found")
    expect(found.first).to_be_in_viewport()
    expect(body.locator("strong .found")).to_have_text("weighted")
    assert "".join(found.all_text_contents()) == SENTENCE.replace("**", "").replace("`", "")
    expect(body.locator("tbody tr").first.locator("td")).to_have_text(["North", "12.41", "A | B"])
    expect(body.locator("pre code")).to_contain_text("def corrected")
    expect(body.locator("math")).to_have_count(3)
    heights = "fraction => [fraction, fraction.querySelector('mi')].map(one => one.getBoundingClientRect().height)"
    fraction, letter = body.locator("mfrac").evaluate(heights)
    assert fraction > 1.5 * letter  # it is drawn, not only written
    expect(body.locator(".picture")).to_have_text("a tape")
    expect(page.locator(".reader a, .reader img")).to_have_count(0)
    keep("reader-rendered-1440-light")


def test_the_outline_leads_to_a_heading_and_the_raw_text_is_one_click_away(
    goto: Callable[[str], Page], handbook: Document, keep: Callable[[str], None]
) -> None:
    page = goto(opened(handbook, SENTENCE))
    outline = page.locator(".reader .outline")
    expect(outline.get_by_role("button")).to_have_text(
        ["Handbook of the dip tape", "Reading", "Correcting", "In code", "البرج"]
    )
    outline.get_by_role("button", name="In code").click()
    expect(page.locator(".body").get_by_role("heading", name="In code")).to_be_in_viewport()
    page.get_by_role("button", name="Raw text").click()
    expect(page).to_have_url(re.compile("form=raw"))
    raw = page.locator(".reader .body.raw")
    expect(raw).to_contain_text("## Correcting")
    assert raw.evaluate("body => body.textContent") == handbook.text
    expect(raw.locator(".found")).to_have_text(SENTENCE)
    keep("reader-raw-1440-light")
    page.reload()
    expect(raw).to_contain_text("## Correcting")
    page.get_by_role("button", name="Rendered").click()
    expect(page.locator(".reader .body.rendered")).to_be_visible()


@pytest.mark.parametrize(("width", "theme"), [(1440, "dark"), (1024, "light"), (390, "light"), (390, "dark")])
def test_the_reader_fits_every_width_in_both_themes(
    page: Page, app: str, handbook: Document, keep: Callable[[str], None], width: int, theme: str
) -> None:
    page.emulate_media(color_scheme="dark" if theme == "dark" else "light")
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(app + opened(handbook, SENTENCE))
    expect(page.locator(".reader .found").first).to_be_in_viewport()
    keep(f"reader-rendered-{width}-{theme}")
    assert_fits(page, f"the reader at {width}", page.locator(".reader .page"))
    page.locator(".reader .page").evaluate("page => { page.scrollTop = page.scrollHeight }")
    arabic = page.locator(".body").get_by_role("heading", name="البرج")
    expect(arabic).to_be_in_viewport()
    assert arabic.evaluate("heading => getComputedStyle(heading).direction") == "rtl"
    assert page.locator(".body > ul").last.evaluate("list => getComputedStyle(list).direction") == "rtl"
    expect(page.locator(".outline[open]")).to_have_count(0 if width == 390 else 1)
    keep(f"reader-rendered-end-{width}-{theme}")
    assert axe_findings(page) == []


def test_a_long_text_is_shown_around_the_found_passage_and_part_by_part(
    goto: Callable[[str], Page], written: Callable[[str], Document], keep: Callable[[str], None]
) -> None:
    sections = [f"## Section {n}\n\n{f'The tape of section {n} is wiped and read. ' * 40}\n\n" for n in range(400)]
    document = written("".join(sections))
    page = goto(opened(document, sections[200].strip()))
    body = page.locator(".reader .body.rendered")
    expect(body.locator(".found").first).to_be_in_viewport()
    expect(body.get_by_role("heading", name="Section 200")).to_have_count(1)
    expect(body.get_by_role("heading", name="Section 399")).to_have_count(0)
    keep("reader-part-1440-light")
    page.get_by_role("button", name="Next").click()
    expect(page).to_have_url(re.compile(r"part=\d+"))
    expect(body.locator(".found")).to_have_count(0)
    page.get_by_role("button", name="Go to found passage").click()
    expect(body.locator(".found").first).to_be_in_viewport()

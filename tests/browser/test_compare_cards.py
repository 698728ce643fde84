"""The texts of the cards: rendered Markdown in three lines, with the words of the question marked."""

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.browser
MOORING = """# Mooring lines

## Sizes

| Line | Diameter |
|------|---------:|
| `bow` | 14 mm of **hawser** |

## Steps

- Take the hawser *first*
- Make it fast with `belay()`

```python
def belay(hawser):
    hawser.turn(3)
```
"""
LINES = 3  # of a card


@pytest.fixture
def mooring(filled, folder):
    filled.ingest(folder({"mooring.md": MOORING}), source="Moorings", on_progress=lambda _: None)
    source = next(source for source in filled.sources.list() if source.title == "Moorings")
    yield source
    filled.sources.delete(source.id)


def test_a_card_shows_its_markdown_rendered_with_the_words_of_the_question_marked(goto, mooring, keep):
    page = goto(f"/?q=hawser diameter&s=keyword&s=vector&source={mooring.id}")
    text = page.locator(".card .text").filter(has_text="14 mm").first
    expect(text).to_be_visible()
    expect(text.locator("code", has_text="bow")).to_be_visible()
    expect(text.locator("strong mark", has_text="hawser")).to_be_visible()
    expect(text.locator(".row.heading mark", has_text="Diameter")).to_be_visible()
    assert text.locator(".row").first.locator(".cell").count() == 2
    shown = page.locator(".card .text").all_inner_texts()
    assert not [sign for sign in ("##", "|--", "| ", "`", "**", "*first*") if any(sign in one for one in shown)]
    assert page.locator(".card .text [tabindex]").count() == 0  # the arrows and Tab go from card to card
    keep("compare-cards-1440-light")


def test_cards_keep_one_rhythm_whatever_their_texts_hold(goto, mooring):
    page = goto(f"/?q=hawser diameter&s=keyword&s=vector&source={mooring.id}")
    expect(page.locator(".card .text").filter(has_text="14 mm").first).to_be_visible()
    heights = page.locator(".card .text").evaluate_all(
        "(texts) => texts.map((one) => one.clientHeight / parseFloat(getComputedStyle(one).lineHeight))"
    )
    assert {round(height) for height in heights} == {LINES}


def test_the_text_fills_its_card_at_every_width(goto, mooring):
    page = goto(f"/?q=hawser diameter&source={mooring.id}&look=figures")
    expect(page.locator("ol.column")).to_have_count(4)
    card = page.locator(".card").first
    for width in range(1100, 2100, 50):
        page.set_viewport_size({"width": width, "height": 900})
        page.wait_for_function(
            "(card) => card.querySelector('.text').clientWidth > card.clientWidth - 30", arg=card.element_handle()
        )


def test_an_arrow_leads_from_the_question_to_the_first_passage(goto, mooring):
    page = goto(f"/?q=hawser diameter&s=keyword&s=vector&source={mooring.id}")
    first = page.locator(".card .title").first
    expect(first).to_be_visible()
    page.wait_for_function("window.workbenchShortcuts")
    page.get_by_label("Question").focus()
    page.keyboard.press("ArrowDown")
    expect(first).to_be_focused()
    page.keyboard.press("ArrowRight")
    expect(page.locator("ol.column").nth(1).locator(".title:focus")).to_have_count(1)


ENDS = """(titles) => titles.map((title) => {
  const [start, end] = [...title.querySelectorAll("span")].map((part) => part.getBoundingClientRect());
  const room = title.getBoundingClientRect();
  return start.width > 0 && end.right <= room.right + 1 && end.width > 80;
})"""

STARTS = "(titles) => titles.map((title) => title.children[0].getBoundingClientRect().width)"  # px


def test_a_long_title_is_cut_in_the_middle_so_that_near_equal_ones_differ(goto, filled, folder):
    """The end of a title is whole on a card and in the rank strip."""
    title = "Travel and expense reimbursement policy for employees and contractors, edition"
    texts = {f"{year}.md": f"# {title} {year}\n\nFrapping is paid in {year}.\n" for year in (2024, 2025)}
    source = filled.ingest(folder(texts), source="Editions", on_progress=lambda _: None).source_id
    page = goto(f"/?q=frapping&source={source}")
    titles = page.locator(".card .title")
    expect(titles.first).to_contain_text(title)
    assert titles.evaluate_all(ENDS) == [True] * titles.count()
    assert {label[-14:] for label in page.locator(".bump .label").all_text_contents()} == {
        "… edition 2024", "… edition 2025",
    }  # fmt: skip
    page.goto(page.url + "&look=figures")  # four columns next to the inspector are narrow: the title gets two lines
    expect(titles.first).to_be_visible()
    assert min(titles.evaluate_all(STARTS)) > 120
    assert titles.evaluate_all("(titles) => titles.every((one) => one.children[1].scrollWidth <= one.clientWidth)")
    filled.sources.delete(source)

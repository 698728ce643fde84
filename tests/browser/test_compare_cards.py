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

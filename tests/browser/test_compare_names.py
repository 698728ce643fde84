"""Document names in a question: chips that can be removed and restored, by mouse and by key."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from looks import assert_fits
from playwright.sync_api import Page, expect

pytestmark = pytest.mark.browser
QUESTION = "When do I calibrate the float of the Tide gauge?"


def test_a_chip_takes_a_name_out_of_the_preference_and_brings_it_back(
    goto: Callable[[str], Page], keep: Callable[[str], None]
) -> None:
    page = goto(f"/?q={QUESTION}&s=keyword&s=hybrid")
    row = page.locator(".st-key-preferred")
    expect(row).to_contain_text("Boosting documents named")
    chip = row.get_by_role("button", name=re.compile("Tide gauge"))
    expect(chip).to_be_visible()
    keep("names-1440-light")
    chip.click()
    expect(page).to_have_url(re.compile("without=Tide"))
    expect(row).to_contain_text("Not boosting documents named")
    back = row.get_by_role("button", name=re.compile("Tide gauge"))
    expect(back).to_have_count(1)
    keep("names-out-1440-light")
    back.focus()
    page.keyboard.press("Enter")
    expect(page).not_to_have_url(re.compile("without="))
    expect(row).not_to_contain_text("Not boosting documents named")
    page.emulate_media(color_scheme="dark")
    keep("names-1440-dark")
    page.set_viewport_size({"width": 390, "height": 844})
    keep("names-390-dark")
    assert_fits(page, "the chips at 390")


def test_only_the_named_documents_are_searched_on_request(goto: Callable[[str], Page]) -> None:
    page = goto(f"/?q={QUESTION}&s=hybrid")
    expect(page.get_by_role("list", name="Hybrid: 4 passages")).to_be_visible()
    page.get_by_role("button", name="Only search these").click()
    expect(page.get_by_role("list", name=re.compile("Hybrid: [12] passages?"))).to_be_visible()
    page.get_by_role("button", name="Search all documents").click()
    expect(page.get_by_role("list", name="Hybrid: 4 passages")).to_be_visible()


def test_another_question_starts_with_every_name(goto: Callable[[str], Page]) -> None:
    page = goto(f"/?q={QUESTION}&s=hybrid&without=Tide gauge")
    expect(page.locator(".st-key-preferred")).to_contain_text("Not boosting documents named")
    page.get_by_label("Question").fill("waves at the Stilling well")
    page.get_by_label("Question").press("Enter")
    expect(page.locator(".st-key-preferred").get_by_role("button", name=re.compile("Stilling well"))).to_be_visible()
    expect(page).not_to_have_url(re.compile("without="))


def test_the_columns_stay_where_they_are_whether_a_question_has_names_or_not(goto: Callable[[str], Page]) -> None:
    tops = []
    for question, chips in ((QUESTION, 1), ("How hot is the oven?", 0)):
        page = goto(f"/?q={question}")
        expect(page.locator(".card").first).to_be_visible()
        expect(page.locator(".st-key-preferred")).to_have_count(chips)
        tops.append((page.locator(".st-key-board_scroll").bounding_box() or {})["y"])
    assert tops[0] == tops[1]

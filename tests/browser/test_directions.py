"""Text in other scripts in a real browser: Arabic runs from right to left on pages, in the reader and in answers."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from browser_server import wait_until_up
from playwright.sync_api import Locator, Page, expect

from workbench import Workbench

pytestmark = pytest.mark.browser

TEXTS = {
    "ar": (
        "كم يبلغ ارتفاع البرج؟",
        "البرج",
        "يبلغ ارتفاع البرج ثلاثمئة متر ويقع في وسط المدينة القديمة. يصعد إليه الزوار مقابل يوروين ويرون النهر والسطوح.",
    ),
    "zh": ("这座塔有多高？", "高塔", "这座塔高三百米，位于老城中心。游客花两欧元可以登上塔顶，看到河流和屋顶。"),
    "hi": (
        "मीनार कितनी ऊँची है?",
        "मीनार",
        "मीनार तीन सौ मीटर ऊँची है और पुराने शहर के बीच में खड़ी है। लोग दो यूरो देकर ऊपर जाते हैं और नदी देखते हैं।",
    ),
}


def direction(place: Locator) -> str:
    return place.evaluate("element => getComputedStyle(element).direction")


@pytest.fixture
def address(serve: Callable[..., str], wb: Workbench) -> str:
    """The app with documents on one tower in three languages."""
    for _, title, text in TEXTS.values():
        wb.documents.create(title=title, text=text)
    started = serve(wb.settings.database_url.get_secret_value())
    wait_until_up(started)
    return started


def test_arabic_runs_from_right_to_left_on_a_page_in_an_answer_and_in_the_reader(
    address: str, page: Page, keep: Callable[[str], None]
) -> None:
    question, _, text = TEXTS["ar"]
    page.goto(f"{address}/?q={question}&look=answer&s=hybrid", timeout=200_000)
    said = page.get_by_role("region", name="Answer").locator("blockquote").first
    expect(said).to_contain_text(text[:12], timeout=200_000)
    assert direction(said) == "rtl"
    card = page.locator(".card").filter(has_text=text[:12]).first
    assert {direction(card.locator(part)) for part in (".title", ".text")} == {"rtl"}
    others = page.locator(".card").filter(has_not_text=text[:12])
    assert {direction(part) for part in others.locator(".text").all()} == {"ltr"}
    keep("directions-page-1440-light")
    card.locator(".title").click()
    body = page.locator(".reader .body")
    expect(body).to_contain_text(text[:12])
    assert direction(body) == "rtl"
    keep("directions-reader-1440-light")

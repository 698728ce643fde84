"""The answer in the inspector: extracts without a language model, a streamed text with one, refusals, citations."""

import re

import pytest
from browser_server import wait_until_up
from playwright.sync_api import expect

pytestmark = pytest.mark.browser
QUESTION = "what keeps waves from the record?"


def test_extracts_are_asked_for_by_a_button_and_their_numbers_open_the_passage(goto, keep):
    page = goto(f"/?q={QUESTION}")
    expect(page.locator(".card").first).to_be_visible()
    expect(page.get_by_role("region", name="Answer")).to_have_count(0)
    page.get_by_role("button", name="Answer", exact=True).click()
    answer = page.get_by_role("region", name="Answer")
    expect(answer.get_by_role("status")).to_contain_text("without a language model")
    expect(answer.locator("blockquote").first).to_contain_text("A stilling well keeps waves from the record")
    expect(answer).to_contain_text("from Rerank")
    expect(page).to_have_url(re.compile("look=answer"))
    keep("answer-extracts-1440-light")
    page.set_viewport_size({"width": 390, "height": 844})
    keep("answer-extracts-390-light")
    answer.locator("button.cite").first.click()
    found = page.locator(".reader .found")
    expect(found.first).to_be_in_viewport()
    expect(found).to_contain_text(["stilling well keeps waves"])
    page.get_by_role("radio", name="Answer", exact=True).click()
    expect(answer.locator("blockquote").first).to_be_visible()
    page.keyboard.press("Escape")
    expect(answer).to_have_count(0)


def test_what_the_documents_do_not_answer_is_refused(goto, keep):
    page = goto("/?q=zirconium lattice spectroscopy&look=answer&s=vector")
    answer = page.get_by_role("region", name="Answer")
    expect(answer).to_contain_text("Nothing in the documents answers this question.")
    expect(answer.get_by_role("status")).to_contain_text("No answer: the passages do not cover the question")
    expect(answer.get_by_role("listitem")).to_have_count(0)
    keep("answer-refused-1440-light")


def test_a_language_models_answer_cites_its_passages(page, serve, filled, browser_database, llm_url, keep):
    address = serve(browser_database, WORKBENCH_LLM_BASE_URL=llm_url, WORKBENCH_LLM_MODEL="plain")
    wait_until_up(address)
    page.emulate_media(color_scheme="dark")
    page.goto(f"{address}/?q={QUESTION}&look=answer&s=keyword&s=hybrid")
    answer = page.get_by_role("region", name="Answer")
    expect(answer.get_by_role("status")).to_contain_text("Written by plain", timeout=200_000)
    expect(answer.locator(".extracted")).to_contain_text(re.compile(r"A stilling well keeps waves from the record; .+"))
    assert "99" not in answer.locator(".extracted").inner_text()
    expect(answer).to_contain_text("from Keyword")  # the serving strategy is not among the columns: the first answers
    keep("answer-llm-1440-dark")
    answer.locator("button.cite").first.click()
    expect(page.locator(".reader .found").first).to_be_in_viewport()
    expect(page.locator(".reader .found")).to_contain_text(["stilling well keeps waves"])

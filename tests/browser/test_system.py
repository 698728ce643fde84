"""The System page in a real browser: checks as wide as their text, each server listed once, and the set-up."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from browser_server import FIRST, free_port, wait_until_up
from playwright.sync_api import Page, expect

from workbench import Workbench

pytestmark = pytest.mark.browser


def test_the_checks_are_as_wide_as_their_names_and_their_text_gets_the_rest(
    goto: Callable[[str], Page],
) -> None:
    page = goto("/system")
    page.set_viewport_size({"width": 1600, "height": 1000})
    checks = page.get_by_role("table", name="Health checks")
    name, detail = checks.locator("tbody tr").first.locator("td").first, checks.locator("tbody td:last-child").first
    expect(name).to_have_text("Database")
    assert name.evaluate("cell => cell.offsetWidth") < 200
    assert detail.evaluate("cell => cell.offsetWidth") > 1000


def test_a_replica_is_reported_once(
    serve: Callable[..., str], filled: Workbench, browser_database: str, page: Page
) -> None:
    address = serve(browser_database, WORKBENCH_READ_DATABASE_URL=browser_database)
    wait_until_up(address)
    page.goto(f"{address}/system", timeout=FIRST)
    expect(page.locator("dl.wb-facts").first).to_be_visible(timeout=FIRST)
    expect(page.get_by_role("table", name="Health checks").get_by_text("Replica", exact=True)).to_be_visible()
    expect(page.get_by_text("Replica", exact=True)).to_have_count(1)


def test_a_language_model_is_tested_stored_and_used_without_a_restart_and_its_key_is_never_shown(
    serve: Callable[..., str], filled: Workbench, browser_database: str, llm_url: str, page: Page, tmp_path: Path
) -> None:
    (tmp_path / ".env").write_text("# mine\nOTHER=1\n")
    address, secret = serve(browser_database, tmp_path), "sk-'a #secret\\"
    wait_until_up(address)
    page.goto(f"{address}/system?view=setup", timeout=FIRST)
    page.get_by_label("Endpoint URL").fill(llm_url, timeout=FIRST)
    form = page.get_by_test_id("stForm").filter(has_text="Endpoint URL")
    form.get_by_role("button", name="Test").click()
    expect(page.get_by_text("Endpoint URL is set without a model; set Model too.")).to_be_visible()
    form.get_by_label("Model", exact=True).fill("openai:gpt-4o")
    form.get_by_label("Endpoint URL").fill("")
    form.get_by_role("button", name="Save").click()
    expect(page.get_by_text("set OPENAI_API_KEY under API keys of providers.")).to_be_visible()
    form.get_by_label("Endpoint URL").fill(llm_url)
    form.get_by_label("Model", exact=True).fill("plain")
    form.get_by_label("Endpoint API key").fill(secret)
    form.get_by_role("button", name="Test").click()
    expect(page.get_by_text("plain replied 'I was asked: What is the capital of France?'")).to_be_visible(timeout=FIRST)
    assert (tmp_path / ".env").read_text() == "# mine\nOTHER=1\n"
    form.get_by_role("button", name="Save").click()
    expect(page.get_by_text(f"Saved in {tmp_path}/.env.")).to_be_visible(timeout=FIRST)
    assert (tmp_path / ".env").read_text().startswith("# mine\nOTHER=1\nWORKBENCH_LLM_BASE_URL=")
    assert (tmp_path / ".env").stat().st_mode & 0o777 == 0o600
    expect(form.get_by_label("Endpoint API key")).to_have_value("")
    expect(form.get_by_text(f"From {tmp_path}/.env")).to_have_count(3)
    assert "secret" not in page.content() + page.url
    expect(page.get_by_text("From the environment variable WORKBENCH_EMBEDDING_MODEL")).to_be_visible()
    page.goto(f"{address}/?q=what keeps waves from the record?&look=answer&s=keyword")
    answer = page.get_by_role("region", name="Answer")
    expect(answer.get_by_role("status")).to_contain_text("Written by plain", timeout=FIRST)


def test_a_key_is_saved_as_it_was_typed_and_a_model_that_is_not_running_without_a_test(
    serve: Callable[..., str], filled: Workbench, browser_database: str, page: Page, tmp_path: Path
) -> None:
    address, secret = serve(browser_database, tmp_path), "sk-typed-in"
    wait_until_up(address)
    page.goto(f"{address}/system?view=setup", timeout=FIRST)
    key = page.get_by_label("API key", exact=True)
    key.press_sequentially(secret, timeout=FIRST)
    key.press("Tab")
    page.locator(".st-key-setup_keys").get_by_role("button", name="Save").click()
    expect(page.get_by_text(f"Saved in {tmp_path}/.env.")).to_be_visible(timeout=FIRST)
    assert f'_API_KEY": "{secret}"' in (tmp_path / ".env").read_text()
    expect(key).to_have_value("")
    expect(key).to_have_attribute("placeholder", "Enter a key to replace the stored one")
    assert secret not in page.content() + page.url
    form = page.get_by_test_id("stForm").filter(has_text="Endpoint URL")
    form.get_by_label("Endpoint URL").fill(f"http://127.0.0.1:{free_port()}/v1")
    form.get_by_label("Model", exact=True).fill("absent")
    expect(form.get_by_role("button", name="Save without testing")).to_have_count(0)
    form.get_by_role("button", name="Save", exact=True).click()
    anyway = form.get_by_role("button", name="Save without testing")
    expect(anyway).to_be_visible(timeout=FIRST)
    expect(form.get_by_text("If the model is not running now, save its settings and test them later.")).to_be_visible()
    assert "absent" not in (tmp_path / ".env").read_text()
    form.get_by_label("Model", exact=True).fill("absent-2")  # what is in the form then is saved
    anyway.click()
    expect(page.get_by_text("It was not tested.")).to_be_visible(timeout=FIRST)
    assert "absent-2" in (tmp_path / ".env").read_text()
    expect(anyway).to_have_count(0)

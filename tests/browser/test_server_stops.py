"""A page whose server stops shows our text and command, not Streamlit's."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from browser_server import free_port, wait_until_up
from playwright.sync_api import BrowserContext, expect

pytestmark = pytest.mark.browser

PATIENT = 60_000  # ms


def test_a_server_that_stops_is_described_in_our_own_words(
    browser_database: str, test_home: Path, chromium: BrowserContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    port = free_port()
    for name, value in (("HOME", str(test_home)), ("DATABASE_URL", browser_database), ("EMBEDDING_MODEL", "hash")):
        monkeypatch.setenv(f"WORKBENCH_{name}", value)
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    code = f"import sys; from workbench.app.shell.serve import serve; sys.exit(serve({port}))"
    process = subprocess.Popen([sys.executable, "-c", code], cwd=test_home)
    page = chromium.new_page()
    try:
        wait_until_up(f"http://127.0.0.1:{port}")
        page.goto(f"http://127.0.0.1:{port}/evaluate", timeout=PATIENT)
        expect(page.get_by_role("heading", name="Evaluate")).to_be_visible(timeout=PATIENT)
        page.wait_for_function("window.workbenchShortcuts", timeout=PATIENT)
    finally:
        process.terminate()
        process.wait(20)
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("heading", name="Connection lost")).to_be_visible(timeout=PATIENT)
    expect(dialog.get_by_text(f"workbench app --port {port}", exact=True)).to_be_visible()
    for theirs in ("Streamlit", "Connection error"):
        expect(dialog.get_by_text(theirs)).to_be_hidden()
    page.close()

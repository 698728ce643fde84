"""Take the README's screenshots of the current app: ``python -m tests.browser.readme_pictures`` [FOLDER].

They go to docs/images, unless FOLDER is named. The four strategies that Compare shows first are measured on the
sample's questions in a home of its own, and both pages are pictured in both themes. Times are in the pictures: take
them while the machine has nothing else to do.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from io import BytesIO
from pathlib import Path
from typing import Literal
from urllib.parse import quote

from PIL import Image
from playwright.sync_api import Page, expect, sync_playwright

from evals.experiments.catalogue import Experiments
from evals.experiments.runs import make_cells
from evals.test_sets.folders import SAMPLE_NAME, load_test_set
from evals.test_sets.store import TestSetStore
from tests.browser.browser_server import free_port, wait_until_up
from tests.shared_home import fresh_home
from workbench import Workbench
from workbench.settings import Settings

ROOT = Path(__file__).parents[2]
QUESTION = "how many bits does binary quantisation keep?"
STRATEGIES = ("vector", "keyword", "hybrid", "rerank")
SIZE = (1440, 1000)  # pixels
SCHEMES: tuple[tuple[Literal["light", "dark"], str], ...] = (("light", ""), ("dark", "-dark"))
PAUSE = 2_000  # ms
SLOW = 120_000  # ms: the first search of a process, on a busy machine
PORT = free_port()


def take(page: Page, name: str, address: str, landmark: str, folder: Path) -> None:
    """Take a page in both themes; it is reopened in each, since charts keep the theme in which they were drawn."""
    for scheme, suffix in SCHEMES:
        page.emulate_media(color_scheme=scheme)
        page.goto(f"http://127.0.0.1:{PORT}/{address}", timeout=SLOW)
        expect(page.get_by_text(landmark)).to_be_visible(timeout=SLOW)
        page.wait_for_timeout(PAUSE)
        with Image.open(BytesIO(page.screenshot())) as taken:
            taken.convert("RGB").save(folder / f"{name}{suffix}.png", optimize=True)


def measure(home: Path) -> str:
    """Load the sample, measure the strategies on its questions, and return the experiment's id."""
    with Workbench.open(settings=Settings(home=home, _env_file=None)) as workbench:  # pyright: ignore[reportCallIssue]
        sample = TestSetStore(workbench).add(load_test_set(SAMPLE_NAME))
        experiments = Experiments(workbench)
        made = experiments.create("Which strategy, on the sample", sample.id, make_cells(STRATEGIES))
        return experiments.run(made.id).id


def pictures(page: Page, experiment: str, folder: Path) -> None:
    """Take both pages; Compare is taken twice, so that times do not include loading."""
    for _ in range(2):
        take(page, "compare", f"?q={quote(QUESTION)}", "Each line tracks one passage", folder)
    page.set_viewport_size({"width": SIZE[0], "height": 1270})
    take(page, "evaluate", f"evaluate?experiment={experiment}", "by question", folder)


def main() -> None:
    """Take all screenshots; processes and data folder are removed at the end."""
    folder = Path(sys.argv[1]) if sys.argv[1:] else ROOT / "docs" / "images"
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    kept = {name: value for name, value in os.environ.items() if not name.startswith("WORKBENCH_")}
    with fresh_home() as home:
        experiment = measure(home)
        command = [sys.executable, "-m", "workbench.cli", "app", "--port", str(PORT)]
        app = subprocess.Popen(command, env=kept | {"WORKBENCH_HOME": str(home)})
        try:
            wait_until_up(f"http://127.0.0.1:{PORT}")
            with sync_playwright() as playwright:
                browser = playwright.chromium.launch(executable_path=chromium, args=["--headless", "--no-sandbox"])
                page = browser.new_page(viewport={"width": SIZE[0], "height": SIZE[1]})
                pictures(page, experiment, folder)
        finally:
            app.terminate()
            app.wait(60)


if __name__ == "__main__":
    main()

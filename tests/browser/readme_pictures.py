"""Take the README's screenshots of the current app: ``python -m tests.browser.readme_pictures`` [FOLDER].

They go to docs/images, unless FOLDER is named. The four strategies that Compare shows first are measured on the
sample's questions in a home of its own, and both pages are pictured in both themes. ``tour.gif`` shows one question
compared, explained and judged, the experiment, and a promotion in 20 seconds. Times are in the pictures: take them
while the machine has nothing else to do.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import Literal
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray
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
TOUR_SIZE = (1008, 630)
MIN_COLOUR_DISTANCE = 14  # sum of the differences of red, green and blue
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


def serve_hybrid(home: Path) -> None:
    """Promote ``hybrid``, so that the tour can promote what the experiment found better."""
    with Workbench.open(settings=Settings(home=home, _env_file=None)) as workbench:  # pyright: ignore[reportCallIssue]
        workbench.promotions.promote("hybrid")


def pictures(page: Page, experiment: str, folder: Path) -> None:
    """Take both pages; Compare is taken twice, so that times do not include loading."""
    for _ in range(2):
        take(page, "compare", f"?q={quote(QUESTION)}", "Each line tracks one passage", folder)
    page.set_viewport_size({"width": SIZE[0], "height": 1270})
    take(page, "evaluate", f"evaluate?experiment={experiment}", "A and B by question", folder)


def choose_colours(frames: Sequence[Image.Image]) -> list[NDArray[np.int64]]:
    """Return the most frequent colours (R, G, B) that differ from each other, so that small coloured marks stay."""
    pixels = np.concatenate([np.asarray(frame, np.int64).reshape(-1, 3) for frame in frames])
    codes, counts = np.unique(pixels @ (1 << 16, 1 << 8, 1), return_counts=True)
    chosen: list[NDArray[np.int64]] = []
    for code in codes[np.argsort(-counts)][:20_000]:
        colour = np.array([code >> 16, code >> 8 & 255, code & 255])
        if all(np.abs(colour - other).sum() > MIN_COLOUR_DISTANCE for other in chosen):
            chosen.append(colour)
        if len(chosen) == 256:
            break
    return chosen


class Tour:
    """Frames of a page, each with the time for which it is shown."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self._frames: list[Image.Image] = []
        self._durations: list[int] = []  # ms

    def show(self, duration: int) -> None:
        """Add the page as it looks now, for ``duration`` ms."""
        with Image.open(BytesIO(self._page.screenshot())) as taken:
            self._frames.append(taken.convert("RGB").resize(TOUR_SIZE, Image.Resampling.LANCZOS))
        self._durations.append(duration)

    def save(self, path: Path) -> None:
        """Write the frames as a GIF that repeats, with one palette for all, so that colours do not flicker."""
        palette = Image.new("P", (1, 1))
        palette.putpalette(np.ravel(choose_colours(self._frames)).tolist())
        first, *others = (frame.quantize(palette=palette, dither=Image.Dither.NONE) for frame in self._frames)
        first.save(path, save_all=True, append_images=others, duration=self._durations, loop=0, optimize=True)


def record_tour(page: Page, experiment: str, path: Path) -> None:
    """Compare a question, see why, judge it, read the experiment, and promote the best strategy."""
    page.set_viewport_size({"width": SIZE[0], "height": 900})
    page.emulate_media(color_scheme="light")
    page.goto(f"http://127.0.0.1:{PORT}/", timeout=SLOW)
    question = page.get_by_label("Question", exact=True)
    expect(question).to_be_visible(timeout=SLOW)
    page.wait_for_timeout(PAUSE)
    tour = Tour(page)
    tour.show(1_000)
    for end in range(6, len(QUESTION), 8):
        question.fill(QUESTION[:end])
        tour.show(120)
    question.fill(QUESTION)
    tour.show(500)
    question.press("Enter")
    cards = page.locator(".card")
    expect(cards.first).to_be_visible(timeout=SLOW)
    page.wait_for_timeout(PAUSE)
    tour.show(3_000)
    cards.first.get_by_role("button", name="Why").click()
    expect(page.get_by_text("Score breakdown")).to_be_visible(timeout=SLOW)
    page.wait_for_timeout(PAUSE)
    tour.show(3_000)
    page.goto(f"http://127.0.0.1:{PORT}/?q={quote(QUESTION)}", timeout=SLOW)
    page.get_by_label("New test set").fill("First questions")
    page.get_by_role("button", name="Create and judge").click()
    expect(page.get_by_text("Judging for First questions")).to_be_visible(timeout=SLOW)
    page.wait_for_timeout(PAUSE)
    tour.show(1_500)
    for number, key in enumerate(("1", "3", "2")):
        page.locator("ol.column").last.locator(".card").nth(number).hover()
        page.keyboard.press(key)
        page.wait_for_timeout(PAUSE)
        tour.show(800)
    page.goto(f"http://127.0.0.1:{PORT}/evaluate?experiment={experiment}", timeout=SLOW)
    expect(page.get_by_text("A and B by question")).to_be_visible(timeout=SLOW)
    page.wait_for_timeout(PAUSE)
    tour.show(3_500)
    page.get_by_role("button", name="Promote Rerank").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("button", name="Promote")).to_be_visible(timeout=SLOW)
    page.wait_for_timeout(PAUSE)
    tour.show(2_500)
    dialog.get_by_role("button", name="Promote").click()
    expect(dialog).to_have_count(0, timeout=SLOW)
    page.wait_for_timeout(PAUSE)
    tour.show(2_500)
    tour.save(path)


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
                serve_hybrid(home)
                record_tour(page, experiment, folder / "tour.gif")
        finally:
            app.terminate()
            app.wait(60)


if __name__ == "__main__":
    main()

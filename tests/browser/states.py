"""The pages of the app with their dialogs and states: address, expected element, and how to get there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from playwright.sync_api import Page, expect


@dataclass(frozen=True)
class State:
    """A page or a state of it: its address, an element that shows that it is visible, and the steps that lead to it."""

    path: str
    landmark: str
    act: Callable[[Page], None] | None = None

    def reach(self, goto: Callable[[str], Page], names: Mapping[str, str]) -> Page:
        """Go to the state; ``names`` are the ids that addresses need."""
        page = goto(self.path.format(**names))
        if self.act is not None:
            self.act(page)
        expect(page.locator(self.landmark).first).to_be_visible()
        return page


def press(name: str, *, role: str = "button", exact: bool = True) -> Callable[[Page], None]:
    """Return the step that clicks the first element with a role and a name."""
    return lambda page: page.get_by_role(role, name=name, exact=exact).first.click()


def each(*acts: Callable[[Page], None]) -> Callable[[Page], None]:
    """Return several steps as one."""

    def act(page: Page) -> None:
        for one in acts:
            one(page)

    return act


def key(*keys: str) -> Callable[[Page], None]:
    """Return the step that presses keys once the page handles them."""

    def act(page: Page) -> None:
        page.wait_for_function("window.workbenchShortcuts")
        for one in keys:
            page.keyboard.press(one)

    return act


def open_card(part: str) -> Callable[[Page], None]:
    """Return the step that clicks a part of the first card."""
    return lambda page: page.locator(f".card {part}").first.click()


def choose_zip(page: Page) -> None:
    """Choose an archive to upload."""
    archive = {"name": "notes.zip", "mimeType": "application/zip", "buffer": b"PK\x05\x06" + bytes(18)}
    page.locator("input[type=file]").first.set_input_files([archive])


def selected(row: str, button: str) -> Callable[[Page], None]:
    """Return the step that selects a row of the table and clicks a button above it."""

    def act(page: Page) -> None:
        page.get_by_role("checkbox", name=f"Select {row}").check()
        page.get_by_role("button", name=button, exact=True).click()

    return act


CHIEF = "[role=dialog] [data-testid=stBaseButton-primary]"  # the button that does what a dialog asks about
PAGES = {
    "compare": State("/?q=tide gauge", ".card"),
    "library": State("/library", "tbody .open"),
    "crawl": State("/crawl", ".st-key-crawl_start input"),
    "plan": State(
        "/evaluate?new=1", ".st-key-build_metrics [data-tag]", lambda page: page.get_by_text("More options").click()
    ),
    "experiments": State("/evaluate", "table[aria-label=Experiments] tbody tr"),
    "leaderboard": State("/evaluate?experiment={measured}", "table[aria-label=Leaderboard] tbody tr"),
    "test-sets": State("/evaluate?view=datasets", "tbody .open"),
    "trends": State("/evaluate?view=trends", "table[aria-label=Trend] tbody tr"),
    "tune": State("/evaluate?view=tune", ".wb-state, .stButton"),
    "learn": State("/evaluate?view=learn", ".st-key-ranker_default"),
    "graph": State("/graph", '[data-testid*="Chart"] svg, .wb-state'),
    "connect": State("/connect", "code .token.string"),
    "system": State("/system", "dl.wb-facts"),
}
STATES = {
    "first-page": State("/", ".st-key-question input"),
    "judging-round": State("/?q=tide gauge&judge={harbour}", ".card .grades"),
    "answer": State("/?q=what keeps waves from the record?&look=answer", "blockquote"),
    "column-failed": State("/?q=tide gauge&s=keyword&s=scoped", ".failure select"),
    "nothing-found": State("/?q=zyzzyva&s=keyword", ".wb-state"),
    "index-unknown": State("/?q=tide gauge&index=nowhere", ".wb-state"),
    "scope-unknown": State("/library?source=src_nowhere", ".st-key-scope_popover >> text=not found"),
    "experiment-unknown": State("/evaluate?experiment=exp_nowhere", "[data-testid=stToast]"),
    "settings": State("/?q=tide gauge", ".st-key-pane_inspector .st-key-limit", press("Settings")),
    "figures": State("/?q=tide gauge&look=figures", "table[aria-label=Agreement] tbody tr"),
    "expected": State("/?q=tide gauge&look=why", ".why .expected input"),
    "history": State("/?q=tide gauge&queue=history&pane=queue", ".st-key-pane_queue tbody .open"),
    "saved": State("/?q=tide gauge&queue=saved&pane=queue", ".st-key-save_comparison button"),
    "agents": State("/?q=tide gauge&queue=agents&pane=queue", ".st-key-pane_queue table"),
    "scope": State("/library", ".st-key-scope_project", press("Scope", exact=False)),
    "export": State("/?q=tide gauge", '[data-testid="stPopoverBody"] code', press("Export")),
    "why": State("/?q=tide gauge", ".why .passage", open_card(".why")),
    "reader": State("/?q=tide gauge", ".reader .found", open_card(".title")),
    "keys": State("/", "dialog.keys", key("?")),
    "palette": State("/library", "[role=option]", key("Control+k")),
    "new-project": State("/library?view=projects", "[role=dialog] textarea", press("New project")),
    "delete-source": State("/library", CHIEF, selected("Harbour", "Delete")),
    "move-source": State("/library", CHIEF, selected("Harbour", "Move")),
    "tag-source": State("/library", CHIEF, selected("Harbour", "Tag")),
    "rename-source": State("/library", CHIEF, selected("Harbour", "Rename")),
    "language-of-source": State("/library?open={many}", CHIEF, press("Language")),
    "edit-project": State("/library?view=projects", CHIEF, press("Edit")),
    "new-folder": State("/library?view=projects", CHIEF, press("New folder")),
    "delete-project": State("/library?view=projects", CHIEF, press("Delete")),
    "delete-folder": State(
        "/library?view=projects", CHIEF, lambda page: page.locator("[class*='st-key-delete_fold'] button").first.click()
    ),
    "rename-test-set": State("/evaluate?open={harbour}", CHIEF, press("Edit")),
    "delete-test-set": State("/evaluate?open={harbour}", CHIEF, press("Delete")),
    "delete-experiment": State("/evaluate?experiment={narrow}", CHIEF, press("Delete")),
    "edit-document": State("/library?open={many}", CHIEF, selected("Row 0", "Edit document")),
    "delete-document": State("/library?open={many}", CHIEF, selected("Row 0", "Delete documents")),
    "crawl-refused": State("/crawl", "[data-testid=stAlert]", press("Start crawl")),
    "test-set-unknown": State("/evaluate?open=set_nowhere", "[data-testid=stToast]"),
    "drop-index": State("/system", CHIEF, selected("spare", "Drop")),
    "pdf-reader": State("/?q=lightship mast&s=keyword&doc={vessel}&at={mast}", "iframe.original"),
    "page-unknown": State("/nowhere", "[data-testid=stPageLink]"),
    "judge": State("/?q=tide gauge&pane=queue", ".st-key-judge_title input"),
    "upload-zip": State("/library", '[data-testid="stFileChip"]', choose_zip),
    "many-rows": State("/library?open={many}", ".pager"),
    "new-index": State("/system", "[role=dialog] input", press("New index")),
    "side-by-side": State(
        "/evaluate?experiment={measured}&second={narrow}", 'table[aria-label="Runs of both experiments"] tbody tr'
    ),
    "promote": State(
        "/evaluate?experiment={measured}", "[role=dialog] table, [role=dialog] p", press("Promote Keyword", exact=False)
    ),
    "set-up": State("/system?view=setup", ".st-key-save_key button"),
    "parts": State(
        "/evaluate?experiment={measured}&parts=source", "table[aria-label='Parts of the questions'] tbody tr"
    ),
    "pool": State("/evaluate?open={harbour}", ".st-key-pool_go button", press("Judge a pool", role="tab")),
    "pool-judged": State(
        "/evaluate?open={harbour}",
        ".st-key-pool_item",
        each(press("Judge a pool", role="tab"), press("Collect documents")),
    ),
    "import-test-set": State(
        "/evaluate?view=datasets",
        '[data-testid="stFileUploader"]',
        each(lambda page: page.get_by_text("New test set").click(), press("BEIR folder", role="tab")),
    ),
}
# On a database without documents, then with the first ones.
EMPTY = {
    "empty-home": State("/", ".st-key-way_sample button"),
    "empty-library": State("/library", ".st-key-ways_on button"),
    "empty-crawl": State("/crawl", "table[aria-label='Crawls']"),
    "empty-evaluate": State("/evaluate", ".wb-state"),
    "empty-graph": State("/graph", ".st-key-ways_on button"),
    "empty-calls": State("/connect?view=calls", 'table[aria-label="Tool calls"]'),
}
OFFERS = {
    "offer-of-the-sample": State("/", "[class*=st-key-sample_] button"),
    "offer-of-languages": State("/system", ".st-key-language_offer button"),
}
# On a server whose database does not answer yet, or not at all.
OPENING = {"opening": State("/", ".st-key-opening"), "opening-evaluate": State("/evaluate", ".st-key-opening")}
DOWN = {"database-down": State("/", ".wb-state"), "database-down-library": State("/library", ".wb-state")}

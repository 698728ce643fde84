"""No text of documents, names, test sets or models makes the browser load anything or becomes a link."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from browser_server import wait_until_up
from playwright.sync_api import Page, expect

from evals.experiments.catalogue import Experiments, make_cells
from evals.test_set import Question
from evals.test_sets.store import TestSetStore
from workbench.storage.tool_calls import ToolCall

pytestmark = pytest.mark.browser
PATIENT = 60_000  # ms


@pytest.fixture
def trap() -> Iterator[tuple[str, list[str]]]:
    """A server on loopback that records every request; returns its address and the requests."""
    heard: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            heard.append(self.path)
            self.send_response(204)
            self.end_headers()

        def log_message(self, format: str, *values: object) -> None:
            """Keep quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", heard
    server.shutdown()
    thread.join()
    server.server_close()


def every_attack(bait: str) -> str:
    """Markdown, HTML and formulas that each try to load or link something in a different way."""
    return f"""
<script src="{bait}/script.js"></script>
<style>@import url("{bait}/style.css"); body {{ background: url({bait}/body.png) }}</style>

<p style="background: url({bait}/paragraph.png)">p <a href="{bait}/anchor">a</a> <iframe src="{bait}/frame"></iframe>
<svg><image href="{bait}/svg.png"/></svg> <object data="{bait}/object"></object> <img srcset="{bait}/set.png 1x"></p>

Auto <{bait}/auto>, reference [r] and ![picture][r], [script](javascript:alert(1)), [data](data:text/html,hello).

[![inside]({bait}/inside.png)]({bait}/around "{bait}/title")

Formulas $\\href{{{bait}/formula}}{{x}}$, $\\style{{background:url({bait}/formula.png)}}{{y}}$ and

$$
\\href{{{bait}/block}}{{\\includegraphics{{{bait}/graphics.png}}}} <img src={bait}/in-formula.png>
$$

```html
<img src="{bait}/fence.png">
```

[r]: {bait}/reference.png "title"
"""


@pytest.fixture
def hostile(filled, folder, trap):
    """A library in which every name and text is an attack; returns the ids that addresses need."""
    bait = trap[0]
    name = f'![t]({bait}/md.png)<img src="{bait}/html.png">[link]({bait}/link) {bait}/bare :material/home: $x$'
    text = f"# {name}\n\nThe kraken {name}\n\n- ![u]({bait}/list.png)\n\n| a |\n|---|\n| <img src={bait}/cell.png> |\n"
    project = filled.projects.create(name)
    place = filled.projects.create_folder(project.id, name[:200], name)
    text += every_attack(bait)
    page = (
        f"<html><body><h1>Kraken</h1><p>The kraken <a href='{bait}/page'>a</a> <img src='{bait}/page.png' alt='b'></p>"
    )
    files = folder(
        {
            "kraken.md": text,
            "squid.md": text.replace("kraken", "squid") + f"\n\nSee [kraken](kraken.md) {name}",
            "page.html": f"{page}{every_attack(bait)}</body></html>",
            f"![f]({bait.replace('//', '/')}/file.png).md": f"# Octopus\n\nThe kraken {name}",
            f'<img src="{bait.replace("//", "/")}/file-html.png">.md': "# Nautilus\n\nThe kraken sleeps.",
        }
    )
    filled.ingest(
        files, source=name, project=project.id, folder=place.name, tags=[name[:90]], on_progress=lambda _: None
    )
    source = next(source for source in filled.sources.list() if source.title == name)
    stored = filled.documents.list(source_id=source.id)
    named = next(document for document in stored if (document.path or "").startswith("![f]"))
    documents = [
        document
        for each in ("kraken", "page", "squid")
        for document in stored
        if (document.path or "").startswith(each)
    ]
    for document in documents:
        filled.documents.update(document.id, title=f"{document.title[:9]} {name}")
    store = TestSetStore(filled)
    questions = store.create(name[:250], name)
    store.add_questions(questions.id, [Question("k1", f"kraken {name}", name), Question("k2", "squid")])
    for key in ("k1", "k2"):
        store.judge(questions.id, key, documents[0].id, 2, start=0, end=20, quote=name)
    experiments = Experiments(filled)
    experiment = experiments.run(experiments.create(name[:250], questions.id, make_cells(["keyword", "vector"])).id)
    filled.corpus.indexes.create(
        "hostile", chunker="structure", chunker_options={}, embedding_model=f"{name} model", dimensions=384
    )
    filled.tool_calls.add(
        [ToolCall("rag_search", datetime.now(UTC), 1.0, 10, query=name, scope={"project": name}, error=name)]
    )
    yield {
        "source": source.id, "document": documents[0].id, "page": documents[1].id, "project": project.id,
        "named": named.id, "tag": name[:90], "passage": filled.documents.passages(documents[0].id)[0].node_id,
        "set": questions.id, "experiment": experiment.id, "name": name, "title": f"{documents[0].title[:9]} {name}",
    }  # fmt: skip
    filled.corpus.indexes.drop("hostile")
    experiments.delete(experiment.id)
    store.delete(questions.id)
    filled.tool_calls.clear()
    filled.projects.delete(project.id)


LIVE = [f'[{name}*="{{}}"]' for name in ("href", "src", "srcset", "style", "data", "action", "background")]


def live(page: Page, bait: str) -> int:
    """Count the elements that lead to the trap or run a script."""
    return page.locator(
        ", ".join([*(one.format(bait) for one in LIVE), '[href^="javascript:"]', 'a[href^="data:"]'])
    ).count()


def settled(page: Page) -> None:
    """Wait until the script has finished and nothing is being loaded."""
    expect(page.get_by_test_id("stApp")).to_have_attribute("data-test-script-state", "notRunning", timeout=PATIENT)
    page.wait_for_load_state("networkidle")


def walk(page: Page, address: str, bait: str, paths: dict[str, str]) -> None:
    """Visit pages, each given by its address and an element that it shows when complete."""
    for path, landmark in paths.items():
        page.goto(address + path)
        expect(page.locator(landmark).first).to_be_visible(timeout=PATIENT)
        settled(page)
        assert live(page, bait) == 0, path


def test_a_hostile_library_makes_no_page_load_anything_or_show_a_live_link(page, goto, app, trap, hostile, keep):
    bait, heard = trap
    scope = f"project={hostile['project']}"
    goto("/")
    walk(page, app, bait, {
        f"/?q=kraken&{scope}": ".card",
        f"/?q=kraken&{scope}&look=answer&judge={hostile['set']}": "section.answer",
        f"/?q=kraken&{scope}&doc={hostile['document']}": ".reader .body.rendered",
        f"/?q=kraken&{scope}&doc={hostile['document']}&form=raw": ".reader .body.raw",
        f"/?q=kraken&{scope}&doc={hostile['named']}": ".reader .body.rendered",
        f"/?q=kraken&{scope}&index=hostile": "text=is unavailable here",
        f"/?q=kraken&{scope}&doc={hostile['page']}": ".reader .body.rendered .picture",
        f"/?q=kraken&{scope}&s=keyword&by=keyword&why={hostile['passage']}": ".passage .read.rendered",
        f"/?q=kraken&{scope}&s=vector&s=![s]({bait}/strategy.png)": ".st-key-failed, .card, .wb-state",
        f"/?q=kraken&{scope}&index=![i]({bait}/index.png)": ".st-key-failed, .wb-state",
        f"/?q=kraken&project=![p]({bait}/project.png)": ".wb-state",
        f"/?q=kraken&source={hostile['source']}&source=![s]({bait}/source.png)": ".wb-state",
        "/library": "tbody .open",
        f"/library?open={hostile['source']}": "tbody .open",
        "/library?view=projects": ".st-key-project_" + hostile["project"],
        "/crawl": ".st-key-crawl_start",
        "/evaluate": "tbody .open",
        "/evaluate?new=1": ".st-key-experiment_go",
        "/evaluate?view=datasets": "tbody .open",
        f"/evaluate?open={hostile['set']}": '[data-testid="stDataFrame"]',
        f"/evaluate?experiment={hostile['experiment']}": "table[aria-label=Leaderboard]",
        "/evaluate?view=tune": ".wb-state, .st-key-tune_form",
        "/evaluate?view=learn": ".st-key-ranker_default",
        f"/graph?{scope}": '[data-testid="stMain"]',
        f"/graph?view=links&{scope}": "tbody",
        "/connect": "code",
        "/connect?view=tools": "tbody",
        "/connect?view=calls": "tbody .open",
        "/system": "dl.wb-facts",
    })  # fmt: skip
    keep("hostile-system-1440-light")
    assert heard == []


def test_the_questions_before_a_change_show_hostile_names_literally(page, app, goto, trap, hostile, keep):
    bait, heard = trap
    goto(f"/library?open={hostile['source']}")
    for action in ("Delete", "Move", "Tag", "Rename"):
        page.get_by_role("button", name=action, exact=True).click()
        expect(page.get_by_role("dialog")).to_be_visible()
        settled(page)
        assert live(page, bait) == 0, action
        page.keyboard.press("Escape")
        expect(page.get_by_role("dialog")).to_have_count(0)
    goto(f"/?q=kraken&project={hostile['project']}&doc={hostile['document']}")
    inspector = page.locator(".st-key-pane_inspector")
    title = inspector.locator("h2").first
    expect(title).to_be_visible()
    keep("hostile-reader-1440-light")
    assert hostile["title"][:100] in inspector.inner_text().replace("\u2060", "")
    goto(f"/evaluate?open={hostile['set']}")
    page.get_by_role("button", name="Delete", exact=True).click()
    expect(page.get_by_role("dialog")).to_be_visible()
    settled(page)
    assert live(page, bait) == 0
    assert heard == []


def test_what_a_language_model_writes_is_shown_literally(page, serve, browser_database, llm_url, trap, hostile, keep):
    bait, heard = trap
    address = serve(browser_database, WORKBENCH_LLM_BASE_URL=llm_url, WORKBENCH_LLM_MODEL=f"plain-0 {hostile['name']}")
    wait_until_up(address)
    page.goto(f"{address}/?q=kraken ![q]({bait}/question.png)&look=answer&project={hostile['project']}&s=keyword")
    answer = page.get_by_role("region", name="Answer")
    expect(answer.get_by_role("status")).to_contain_text("Written by", timeout=200_000)
    keep("hostile-answer-1440-light")
    settled(page)
    assert live(page, bait) == 0
    walk(page, address, bait, {"/system": "dl.wb-facts", "/evaluate?new=1": ".st-key-experiment_go"})
    assert heard == []

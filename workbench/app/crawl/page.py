"""The Crawl page: preview, start, watch and repeat website crawls."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from html import escape
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

import streamlit as st

from workbench.app.shell.work import choose_destination, create_project, show_source_links
from workbench.app.state import address
from workbench.app.state.shared import OPENING, note_change
from workbench.app.widgets.looks import escape_markdown
from workbench.app.widgets.notices import report_errors, show_notice, store_warning
from workbench.app.widgets.rows import Noted, RowCell, show_rows
from workbench.crawling.options import UNFETCHED_OUTCOMES, outcome_label
from workbench.errors import NotFound
from workbench.formatting import count_text, size_text
from workbench.storage.crawls import CrawlPage
from workbench.types import as_integer, as_number, time_left_text

if TYPE_CHECKING:
    from workbench.crawling.preview import DryRun
    from workbench.services.crawls import CrawlCounts, CrawlJob
    from workbench.workbench import Workbench

# The view of one crawl

# The site as a tree of folders and pages

MARKS: dict[str, tuple[str, str]] = {
    "added": ("●", "good"),
    "changed": ("▲", "good"),
    "unchanged": ("○", "same"),
    "duplicate": ("◇", "same"),
    "redirected": ("→", "same"),
    "removed": ("–", "gone"),
    "gone": ("†", "gone"),
    "held": ("?", "wait"),
    "forbidden": ("⊘", "gone"),
    "not_allowed": ("⊗", "gone"),
    "left_out": ("…", "gone"),
    "failed": ("✕", "bad"),
    "fetched": ("◐", "wait"),
    "queued": ("·", "wait"),
}
MAX_PAGES_IN_TREE = 800  # pages in the tree


@dataclass(slots=True)
class TreeNode:
    """A folder or a page of the tree."""

    name: str
    page: CrawlPage | None = None
    children: dict[str, TreeNode] = field(default_factory=dict)


def page_outcome(page: CrawlPage) -> str:
    """Return the outcome of a page, or its state."""
    return page.outcome or page.state


def build_tree(pages: Iterable[CrawlPage]) -> TreeNode:
    """Return the pages as a tree: hosts, then folders, then pages."""
    root = TreeNode("")
    for page in pages:
        parts = urlsplit(page.url)
        path = [segment for segment in parts.path.split("/") if segment]
        last = (path.pop() if path else "/") + (f"?{parts.query}" if parts.query else "")
        node = root
        for name in [parts.netloc, *path]:
            node = node.children.setdefault(name, TreeNode(name))
        if last in node.children:
            node.children[last].page = page
        else:
            node.children[last] = TreeNode(last, page)
    return root


def render_tree(pages: Sequence[CrawlPage]) -> str:
    """Return the tree as escaped HTML, with folders open."""
    listed = pages[:MAX_PAGES_IN_TREE]
    more = f"<p>and {len(pages) - MAX_PAGES_IN_TREE:,} more pages</p>" if len(pages) > MAX_PAGES_IN_TREE else ""
    items = "".join(_render_item(child) for child in build_tree(listed).children.values())
    return f'<div class="wb-tree" role="group" aria-label="Pages of the site"><ul>{items}</ul>{more}</div>'


def render_legend(counts: Mapping[str, int]) -> str:
    """Return the legend of the marks, with page counts."""
    parts = [
        f'<span class="{tone}"><b aria-hidden="true">{mark}</b> {counts[name]:,} {outcome_label(name)}</span>'
        for name, (mark, tone) in MARKS.items()
        if counts.get(name)
    ]
    return f'<p class="wb-legend">{"".join(parts)}</p>'


def _render_item(node: TreeNode) -> str:
    inside = "".join(_render_item(child) for child in node.children.values())
    label = _render_label(node)
    if not inside:
        return f"<li>{label}</li>"
    return f"<li><details open><summary>{label}</summary><ul>{inside}</ul></details></li>"


def _render_label(node: TreeNode) -> str:
    name = escape(unquote(node.name))
    page = node.page
    if page is None:
        return f'<span class="folder">{name}</span>'
    mark, tone = MARKS[page_outcome(page)]
    outcome = escape(outcome_label(page_outcome(page)) + (f": {page.reason}" if page.reason else ""))
    title = f" <i>{escape(page.title[:80])}</i>" if page.title else ""
    detail = f'<span class="detail"> {outcome}</span>'
    return f'<span class="{tone}" title="{outcome}"><b>{mark}</b> {name}{title}{detail}</span>'


REFRESH_S = 1.0  # seconds between refreshes of a running crawl
LOG_LINES = 14
OUTCOME_STATES = {
    "added": "done", "changed": "done", "failed": "failed", "held": "waiting", "queued": "waiting", "fetched": "busy",
}  # fmt: skip
PAGE_COLUMNS = ("Outcome", "URL", "Reason", "Passages")


def show_job(wb: Workbench, job_id: str) -> None:
    """Show one crawl, refreshed while it runs in any process."""
    job = wb.crawls.get(job_id)
    with st.container(horizontal=True, vertical_alignment="center"):
        st.button("All crawls", icon=":material/arrow_back:", on_click=lambda: address.put(job=None))
        st.markdown(f"**{escape_markdown(job.url, 120)}**", width="stretch")
    if job.is_finished:
        _show_status(wb, job)
        _show_finished(wb, job)
    else:
        st.fragment(_show_running, run_every=REFRESH_S)(wb, job_id)


def _show_running(wb: Workbench, job_id: str) -> None:
    job, pages = wb.crawls.watch(job_id)
    if job.is_finished:
        note_change()
        st.rerun()
    _show_status(wb, job)
    left, right = st.columns([3, 2], gap="large")
    with left:
        _show_tree(pages)
    with right:
        _show_log(wb, job_id)


def _show_status(wb: Workbench, job: CrawlJob) -> None:
    moment = datetime.now(UTC)
    fetched = job.pages_done + job.pages_waiting
    since, before = st.session_state.setdefault(f"crawl_watched_{job.id}", (moment, fetched))
    work = wb.jobs.get(job.id)
    left = "" if job.is_finished else time_left_text(work.seconds_left)
    with st.container(key="crawl_status", border=True):
        with st.container(horizontal=True, vertical_alignment="center"):
            status = job.state.capitalize()
            message = "" if job.message.rstrip(".") in ("", status) else escape_markdown(job.message)
            st.markdown(" · ".join(filter(None, (f"**{status}**", left, message))), width="stretch")
            if not job.is_finished:
                _show_buttons(wb, job)
            elif job.total_chunks:
                show_source_links(job.source_id)
        if job.is_finished:
            with st.container(horizontal=True):
                _show_buttons(wb, job)
        else:
            st.progress(work.share)
            minutes = max(1.0, (moment - since).total_seconds()) / 60
            numbers = {
                "Pages done": f"{job.pages_done:,} of {job.pages_total:,}",
                "Queued": f"{job.pages_waiting:,}",
                "To fetch": f"{job.pages_pending:,}",
                "Failed": f"{job.pages_failed:,}",
                "Added": f"{job.documents_created:,}",
                "Passages": f"{job.total_chunks:,}",
                "Pages/min": f"{max(0, fetched - before) / minutes:,.0f}",  # a retried page is no longer fetched
            }
            with st.container(horizontal=True, gap="large", key="crawl_numbers"):
                for name, value in numbers.items():
                    st.metric(name, value, width=120)
        if job.stalled:
            st.warning(escape_markdown(job.stalled))
        if job.error_message:
            st.error(escape_markdown(job.error_message))


def describe_changes(job: CrawlCounts) -> str:
    """Describe what a crawl changed; if it ended before storing a page, describe what happens to the fetched pages."""
    report = [
        f"{count_text(count, 'page')} {outcome_label(name)}"
        for name, count in job.outcomes.items()
        if count and name not in UNFETCHED_OUTCOMES  # counted by reason, with those that have no page
    ]
    if report:
        return " · ".join(report)
    if job.pages_waiting:
        return f"None yet: resume to store {count_text(job.pages_waiting, 'fetched page')}."
    return "No pages fetched."


def _show_buttons(wb: Workbench, job: CrawlJob) -> None:
    crawls = wb.crawls
    if not job.is_finished:
        _show_button("Cancel", "stop", lambda: crawls.cancel(job.id))
        return
    if job.status in ("cancelled", "failed"):
        _show_button("Resume", "play_arrow", lambda: crawls.resume(job.id))
    if job.pages_failed:
        _show_button("Retry failed", "restart_alt", lambda: crawls.retry_failed(job.id))
    if job.outcomes["held"]:
        _show_button("Accept removals", "delete_sweep", lambda: crawls.accept_removals(job.id))
    _show_button("Crawl again", "refresh", lambda: crawls.recrawl(job.id))
    _show_button("Crawl again in full", "sync", lambda: crawls.recrawl(job.id, refresh=True))


def _show_button(label: str, icon: str, act: Callable[[], CrawlJob]) -> None:
    def handle_click() -> None:
        with report_errors(st.toast):
            address.put(job=act().id)

    st.button(label, key=f"crawl_{icon}", icon=f":material/{icon}:", on_click=handle_click)


def _show_finished(wb: Workbench, job: CrawlJob) -> None:
    pages = wb.crawls.pages(job.id)
    st.header("Changes", anchor=False)
    st.markdown(describe_changes(job))
    if job.not_fetched:
        with st.expander(f"Not fetched: {sum(job.not_fetched.values()):,} URLs"):
            rows = {reason: (reason, count) for reason, count in job.not_fetched.items()}
            show_rows("crawl_not_fetched", ("Reason", "URLs"), rows, label="URLs not fetched", noun="reasons")
    views = st.tabs(["Site", "Pages", "Log"])
    with views[0]:
        _show_tree(pages)
    with views[1]:
        shown = {page.url: _make_page_cells(page) for page in pages}
        show_rows("crawl_pages", PAGE_COLUMNS, shown, label="Pages of the crawl", noun="pages", filters=True)
    with views[2]:
        _show_log(wb, job.id, 500)


def _make_page_cells(page: CrawlPage) -> tuple[RowCell, ...]:
    outcome = page_outcome(page)
    state = {"state": OUTCOME_STATES.get(outcome, "same"), "text": outcome_label(outcome)}
    return state, Noted(page.url, page.title or ""), page.reason or "", page.passages


def _show_tree(pages: Sequence[CrawlPage]) -> None:
    st.html(render_legend(Counter(map(page_outcome, pages))) + render_tree(pages))


def _show_log(wb: Workbench, job_id: str, limit: int = LOG_LINES) -> None:
    lines = "".join(
        f'<div class="{line.level}"><time>{line.at.astimezone():%H:%M:%S}</time> {escape(line.message)}</div>'
        for line in wb.jobs.log(job_id, limit=limit)
    )
    st.html(f'<div class="wb-log" role="log" aria-label="Log" tabindex="0">{lines}</div>')


# The form of a new crawl, and its preview

WITHIN_TITLES = {"path": "Folder of the start page", "host": "Host", "domain": "Host and subdomains"}
BROWSER_TITLES = {"auto": "If a page is empty without it", "always": "Always", "never": "Never"}
GONE_TITLES = {"remove": "Delete their documents", "keep": "Keep, marked as gone"}
DEFAULT_MAX_DEPTH = 25  # links from the start page, by default
_PREVIEW_KEY = "crawl_dry_run"
MAX_SAMPLE_CHARS = 1_500  # characters of a sample text


def show_start_form(wb: Workbench) -> None:
    """Show the form, and below it the result of a preview."""
    with st.container(border=True, key="crawl_start"):
        url = st.text_input("Start page", key="crawl_url", placeholder="https://docs.example.com/guide/").strip()
        options = _show_limits()
        titles = {source.title: source.title for source in wb.sources.list(source_type="crawl")}
        target = choose_destination(wb, titles, "crawl", "New source, or enter a name")
        with st.expander("More options"):
            options |= _show_more_options()
        with st.container(horizontal=True, vertical_alignment="center"):
            preview = st.button("Preview", key="crawl_look")
            go = st.button("Start crawl", key="crawl_go", type="primary")
            st.caption("Preview fetches a few pages without storing them.")
    if (preview or go) and not url:
        st.error("Enter a start page.")
    elif preview:
        st.session_state.pop(_PREVIEW_KEY, None)
        with report_errors(), st.spinner("Loading preview…"):
            st.session_state[_PREVIEW_KEY] = wb.crawls.dry_run(url, **options) | {"asked": url}
    elif go:
        with report_errors():
            address.put(job=wb.crawls.start(url, **asdict(create_project(wb, target)), **options).id)
            st.session_state.pop(_PREVIEW_KEY, None)
            st.rerun()
    shown = st.session_state.get(_PREVIEW_KEY)
    if shown is not None and shown["asked"] == url:
        show_dry_run(shown)


def _show_limits() -> dict[str, Any]:
    """Show the limits of the crawl."""
    first, second, third, fourth = st.columns([2, 2, 2, 3], vertical_alignment="bottom")
    with first, st.container(height=40, border=False, vertical_alignment="center"):
        recursive = st.toggle("Follow links", value=True, key="crawl_recursive")
    with second:
        most = st.number_input("Max pages", 1, 100_000, 200, key="crawl_most", disabled=not recursive)
    with third:
        depth = st.number_input(
            "Max depth", 1, 100, DEFAULT_MAX_DEPTH, key="crawl_depth", disabled=not recursive,
            help="Maximum number of links from the start page.",
        )  # fmt: skip
    with fourth:
        within = st.selectbox(
            "Stay within", list(WITHIN_TITLES), format_func=WITHIN_TITLES.__getitem__, key="crawl_within"
        )
    return {"recursive": recursive, "max_pages": int(most), "max_depth": int(depth), "within": within}


def _show_more_options() -> dict[str, Any]:
    """Show URL filters, rendering and rate limits."""
    left, right = st.columns(2)
    with left:
        include = st.text_area("Include URLs containing (one per line)", key="crawl_include")
        browser = st.selectbox("Render with a browser", list(BROWSER_TITLES), format_func=BROWSER_TITLES.__getitem__)
        rate = st.number_input(
            "Rate limit per host", 0.0, 100.0, None, step=0.5, format="%g", key="crawl_rate",
            placeholder="Automatic", help="Requests per second. A crawl delay in robots.txt is also respected.",
        )  # fmt: skip
    with right:
        exclude = st.text_area("Exclude URLs containing (one per line)", key="crawl_exclude")
        gone = st.selectbox("Deleted pages", list(GONE_TITLES), format_func=GONE_TITLES.__getitem__)
        at_once = st.number_input("Concurrent requests", 1, 32, 8, key="crawl_concurrency")
        refresh = st.checkbox("Fetch every page, even if unchanged", key="crawl_refresh")
        accept = st.checkbox(
            "Accept removals: also of more than 20% of the documents, and of most of a page's text", key="crawl_accept"
        )
    return {
        "include": _split_lines(include),
        "exclude": _split_lines(exclude),
        "browser": browser,
        "gone": gone,
        "refresh": refresh,
        "accept_removals": accept,
        "concurrency": int(at_once),
    } | ({"rate": rate} if rate else {})


def show_dry_run(report: DryRun) -> None:
    """Show which pages a crawl would fetch or skip, sample texts, and an estimate."""
    estimate = report["estimate"]
    pages, passages = as_integer(estimate["pages"]), as_integer(estimate["passages"])
    least = "at least " if estimate["at_least"] else ""
    st.header(f"This crawl would fetch {least}{count_text(pages, 'page')}", anchor=False)
    st.caption(
        f"About {max(1, round(as_number(estimate['seconds']))):,} s, "
        f"{size_text(as_integer(estimate['text_bytes']))} of text, {count_text(passages, 'passage')}. "
        "Nothing was stored."
    )
    names = [
        "Samples",
        f"To fetch ({len(report['would_fetch'])})",
        f"Not fetched ({sum(report['not_fetched'].values())})",
    ]
    samples, wanted, refused = st.tabs(names)
    with samples:
        for sample in report["samples"]:
            title = escape_markdown(sample["title"] or sample["url"])
            st.markdown(f"**{title}** · {sample['characters']:,} characters")
            st.code(sample["text"][:MAX_SAMPLE_CHARS], language=None, wrap_lines=True)
    with wanted:
        shown = {entry["url"]: (entry["url"], entry["via"], entry["depth"]) for entry in report["would_fetch"]}
        columns = ("URL", "Found by", "Depth")
        show_rows("dry_wanted", columns, shown, label="Pages to fetch", noun="pages", filters=True)
    with refused:
        for reason, count in report["not_fetched"].items():
            st.markdown(f"{count:,} × {escape_markdown(reason)}")
        entries = [*report["would_not_fetch"], *report["failed"]]
        rows = {entry["url"]: (entry["url"], entry["reason"]) for entry in entries}
        show_rows(
            "dry_refused", ("URL", "Reason"), rows, label="Not fetched", noun="pages", empty="No skipped pages.",
            filters=True,
        )  # fmt: skip


def _split_lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


MAX_CRAWLS_SHOWN = 100  # crawls in the history
COUNTED_OUTCOMES = ("added", "changed", "removed", "held")
CRAWL_COLUMNS = (
    "Start URL",
    "Status",
    "Pages done",
    "Failed",
    "Added",
    "Changed",
    "Removed",
    "Pending removals",
    "Started",
)
_CELL_STATES = OUTCOME_STATES | {
    "running": "busy", "completed": "done", "completed_with_errors": "failed", "failed": "failed",
}  # fmt: skip


def page() -> None:
    """Show the crawl named in the URL, or else the form and the history."""
    wb = OPENING.workbench
    st.title("Crawl", anchor=False)
    show_notice()
    job_id = address.get("job")
    if job_id:
        try:
            show_job(wb, job_id)
        except NotFound as error:
            store_warning(str(error))
            address.put(job=None)
            st.rerun()
        return
    show_start_form(wb)
    _show_history(wb)


def _show_history(wb: Workbench) -> None:
    jobs = wb.crawls.list(limit=MAX_CRAWLS_SHOWN)
    st.header("Crawl history", anchor=False)
    chosen = show_rows(
        "crawls",
        CRAWL_COLUMNS,
        {job.id: _make_crawl_cells(job) for job in jobs},
        label="Crawls",
        noun="crawls",
        empty="No crawls yet. Enter a start page above; Preview shows which pages it would fetch.",
        opens=True,
        filters=len(jobs) > 8,
    )
    if chosen.opened:
        address.put(job=chosen.opened)
        st.rerun()


def _make_crawl_cells(job: CrawlJob) -> tuple[RowCell, ...]:
    status = {"state": "failed" if job.stalled else _CELL_STATES.get(job.status, "waiting"), "text": job.state}
    counts = (job.outcomes[name] for name in COUNTED_OUTCOMES)
    return job.url, status, job.pages_done, job.pages_failed, *counts, job.created_at

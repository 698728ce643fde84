"""The archive search box: highlights, guessed words, and citations one to three steps deep."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import TYPE_CHECKING

import streamlit as st

from workbench.app.shell.states import message
from workbench.app.state import address
from workbench.app.state.controlled import show_value
from workbench.app.widgets.labels import escaped
from workbench.app.widgets.reader import open_document
from workbench.errors import ConfigurationError
from workbench.sizes import counted

if TYPE_CHECKING:
    from workbench.services.archives import ArchiveHit, ArchiveResult
    from workbench.services.citations import DocumentCitation
    from workbench.workbench import Workbench

DEPTHS = {"0": "No citations", "1": "1 step", "2": "2 steps", "3": "3 steps"}
SHOWN = 12  # citations of one document and direction


def archive_view(workbench: Workbench) -> None:
    """Show the box and what it finds, or what is to be set before there is anything to search."""
    try:
        workbench.archives.checked_folder()
    except ConfigurationError as error:
        message(
            "There are no archives to search",
            "Archives are research notes and saved pages in a folder of this machine.",
            said=str(error),
        )
        return
    show_value("archive_question", address.get("q"))
    show_value("archive_depth", address.get("depth") if address.get("depth") in DEPTHS else "1")
    show_value("archive_exact", address.get("exact") == "1")
    with st.container(key="question"):
        question = st.text_input(
            "Search the archives", key="archive_question", placeholder="Search the archives",
            label_visibility="collapsed", on_change=_remember,
        ).strip()  # fmt: skip
    with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
        depth = st.segmented_control(
            "Citations", list(DEPTHS), key="archive_depth", format_func=DEPTHS.__getitem__, required=True,
            label_visibility="collapsed", on_change=_remember,
        )  # fmt: skip
        exact = st.toggle("Exact words only", key="archive_exact", on_change=_remember)
    if not question:
        message("Research notes and saved pages", "Type a question or a few words; misspelt words are understood.")
        return
    steps = int(depth or "1")
    left = workbench.folder_work.left_to_job(workbench.archives)
    if left is not None:
        st.caption(escaped(left.sentence))
    result = workbench.archives.search(
        question, fuzzy=not exact, citations=steps > 0, depth=max(1, steps), limit=20, bring_in=left is None
    )
    _results(workbench, result)


def _remember() -> None:
    address.put(
        q=st.session_state["archive_question"].strip(),
        depth=st.session_state["archive_depth"],
        exact="1" if st.session_state["archive_exact"] else None,
    )


def _results(workbench: Workbench, result: ArchiveResult) -> None:
    for note in result.degraded:
        st.caption(escaped(note))
    if not result.results:
        message("Nothing in the archives matches", "Try other words, or turn off “Exact words only”.")
        return
    if result.nothing_close:
        st.caption(escaped(result.nothing_close))
    for typed, meant in result.guesses:
        st.caption(f"No document has “{escaped(typed)}”; searched for words like “{escaped(meant)}”.")
    ends = [end for edge in result.edges() for end in (edge.source_id, edge.target_id)]
    titles = {key: document.title for key, document in workbench.citations.documents(ends).items()}
    st.caption(counted(len(result.results), "document"))
    for hit in result.results:
        with st.container(key=f"archive_{hit.id}", border=True):
            st.html(hit_html(hit))
            if st.button("Open", key=f"open_{hit.id}", type="tertiary", icon=":material/article:"):
                open_document(hit.id)
            if hit.citations and (hit.citations.citing or hit.citations.cited):
                _citations(hit, titles)


def _citations(hit: ArchiveHit, titles: Mapping[str, str]) -> None:
    assert hit.citations is not None
    cites, cited = hit.citations.citing, hit.citations.cited
    with st.expander(f"Cites {len(cites)}, cited by {len(cited)}"):
        left, right = st.columns(2, gap="large")
        left.html(citations_html("Cites", cites, titles, outward=True))
        right.html(citations_html("Cited by", cited, titles, outward=False))


def hit_html(hit: ArchiveHit) -> str:
    """Return a result as HTML; snippets are escaped already and hold no markup but ``<mark>``."""
    fields = {highlight.field: highlight.snippets for highlight in hit.highlights}
    title = fields["title"][0] if "title" in fields else escape(hit.title)
    snippets = "".join(f"<p>{snippet}</p>" for snippet in fields.get("content", ()))
    facts = " · ".join(escape(fact) for fact in (hit.source, hit.date or "", hit.path) if fact)
    return (
        f'<div class="wb-archive"><h3>{title} <span class="wb-score">{hit.score:.3f}</span></h3>'
        f'<p class="wb-kind">{facts}</p>{snippets}</div>'
    )


def citations_html(
    heading: str, citations: tuple[DocumentCitation, ...], titles: Mapping[str, str], *, outward: bool
) -> str:
    """Return citations as a list of titles with their sentences, everything escaped."""
    items = []
    for citation in citations[:SHOWN]:
        other = citation.target_id if outward else citation.source_id
        step = f", step {citation.depth}" if citation.depth > 1 else ""
        items.append(
            f"<li><b>{escape(titles.get(other, other))}</b> "
            f'<span class="wb-kind">{citation.confidence:.1f}{step}</span><br>{escape(citation.context)}</li>'
        )
    more = f"<li>and {len(citations) - SHOWN} more</li>" if len(citations) > SHOWN else ""
    return f'<div class="wb-archive"><h4>{heading}</h4><ul>{"".join(items) or "<li>nothing</li>"}{more}</ul></div>'

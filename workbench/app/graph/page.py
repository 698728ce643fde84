"""The Graph page: citations between documents, orphans, broken links, and the archive search."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
import streamlit as st

from workbench.app.shell.scope_bar import clear_scope, is_scoped, read_index, read_scope
from workbench.app.shell.work import show_start_buttons
from workbench.app.state import address
from workbench.app.state.shared import OPENING, choose_in_url, current_theme, show_value
from workbench.app.widgets.looks import PALETTE, escape_markdown, shorten, show_message
from workbench.app.widgets.reader import open_document, show_reader
from workbench.app.widgets.rows import show_rows
from workbench.errors import ConfigurationError
from workbench.formatting import count_text
from workbench.retrieval.options import Ask
from workbench.services.citations import Graph, GraphNode, Overview
from workbench.types import JsonObject, JsonValue, ResolvedScope, as_integer, as_items, as_number, as_object

if TYPE_CHECKING:
    from workbench.services.archives import ArchiveHit, ArchiveResult
    from workbench.services.citations import DocumentCitation
    from workbench.workbench import Workbench

# The chart and the archive search
# Documents are nodes, sized by citations, with a hue and shape by document type. Links are edges.

# Archive search

DEPTH_TITLES = {"0": "No citations", "1": "1 step", "2": "2 steps", "3": "3 steps"}
MAX_CITATIONS_SHOWN = 12  # citations of one document and direction


def show_archive(wb: Workbench) -> None:
    """Show the search box and its results, or the name of the missing setting."""
    try:
        wb.archives.resolve_folder()
    except ConfigurationError as error:
        show_message(
            "No archives configured",
            "Archives are research notes and saved pages in a folder on this machine.",
            detail=str(error),
        )
        return
    asked = show_value("archive_question", address.get("q"))
    show_value("archive_depth", address.get("depth") if address.get("depth") in DEPTH_TITLES else "1")
    show_value("archive_exact", address.get("exact") == "1")
    with st.container(key="question"):
        question = st.text_input(
            "Search the archives", asked, key="archive_question", placeholder="Search the archives",
            label_visibility="collapsed", on_change=_store_in_url,
        ).strip()  # fmt: skip
    with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
        depth = st.segmented_control(
            "Citations", list(DEPTH_TITLES), key="archive_depth", format_func=DEPTH_TITLES.__getitem__, required=True,
            label_visibility="collapsed", on_change=_store_in_url,
        )  # fmt: skip
        exact = st.toggle("Exact words only", key="archive_exact", on_change=_store_in_url)
    if not question:
        show_message("Search research notes and saved pages", "Enter a question or keywords; typos are corrected.")
        return
    steps = int(depth or "1")
    left = wb.folder_work.find_job(wb.archives)
    if left is not None:
        st.caption(escape_markdown(left.sentence))
    result = wb.archives.search(
        question, fuzzy=not exact, citations=steps > 0, depth=max(1, steps), limit=20, bring_in=left is None
    )
    _show_results(wb, result)


def _store_in_url() -> None:
    address.put(
        q=st.session_state["archive_question"].strip(),
        depth=st.session_state["archive_depth"],
        exact="1" if st.session_state["archive_exact"] else None,
    )


def _show_results(wb: Workbench, result: ArchiveResult) -> None:
    for note in result.degraded:
        st.caption(escape_markdown(note))
    if not result.results:
        show_message("No results", "Try other words, or turn off “Exact words only”.")
        return
    if result.nothing_close:
        st.caption(escape_markdown(result.nothing_close))
    for typed, meant in result.guesses:
        st.caption(f"No results for “{escape_markdown(typed)}”; showing results for “{escape_markdown(meant)}”.")
    ends = [end for edge in result.edges() for end in (edge.source_id, edge.target_id)]
    titles = {key: document.title for key, document in wb.citations.documents(ends).items()}
    st.caption(count_text(len(result.results), "document"))
    for hit in result.results:
        with st.container(key=f"archive_{hit.id}", border=True):
            st.html(render_hit(hit))
            if st.button("Open", key=f"open_{hit.id}", type="tertiary", icon=":material/article:"):
                open_document(hit.id)
            if hit.citations and (hit.citations.citing or hit.citations.cited):
                _show_citations(hit, titles)


def _show_citations(hit: ArchiveHit, titles: Mapping[str, str]) -> None:
    assert hit.citations is not None
    cites, cited = hit.citations.citing, hit.citations.cited
    with st.expander(f"Cites {len(cites)}, cited by {len(cited)}"):
        left, right = st.columns(2, gap="large")
        left.html(render_citations("Cites", cites, titles, outward=True))
        right.html(render_citations("Cited by", cited, titles, outward=False))


def render_hit(hit: ArchiveHit) -> str:
    """Return a result as HTML; snippets are already escaped, with ``<mark>`` as the only markup."""
    fields = {highlight.field: highlight.snippets for highlight in hit.highlights}
    title = fields["title"][0] if "title" in fields else escape(hit.title)
    snippets = "".join(f"<p>{snippet}</p>" for snippet in fields.get("content", ()))
    facts = " · ".join(escape(fact) for fact in (hit.source, hit.date or "", hit.path) if fact)
    return (
        f'<div class="wb-archive"><h3>{title} <span class="wb-score">{hit.score:.3f}</span></h3>'
        f'<p class="wb-kind">{facts}</p>{snippets}</div>'
    )


def render_citations(
    heading: str, citations: tuple[DocumentCitation, ...], titles: Mapping[str, str], *, outward: bool
) -> str:
    """Return citations as an escaped HTML list of titles with their sentences."""
    items = []
    for citation in citations[:MAX_CITATIONS_SHOWN]:
        other = citation.target_id if outward else citation.source_id
        step = f", step {citation.depth}" if citation.depth > 1 else ""
        items.append(
            f"<li><b>{escape(titles.get(other, other))}</b> "
            f'<span class="wb-kind">{citation.confidence:.1f}{step}</span><br>{escape(citation.context)}</li>'
        )
    more = f"<li>and {len(citations) - MAX_CITATIONS_SHOWN} more</li>" if len(citations) > MAX_CITATIONS_SHOWN else ""
    return f'<div class="wb-archive"><h4>{heading}</h4><ul>{"".join(items) or "<li>None</li>"}{more}</ul></div>'


# Layout of the graph, the same for the same links

LAYOUT_STEPS = 160
GRAVITY = np.array([0.8, 1.2])  # alone it spreads the nodes evenly over a wide ellipse
ATTRACTION = 0.8  # a larger value makes clusters tighter
GOLDEN_ANGLE = np.pi * (3 - np.sqrt(5))


@lru_cache(maxsize=16)
def lay_out(count: int, links: tuple[tuple[int, int], ...]) -> tuple[tuple[float, float], ...]:
    """Return a position for each node.

    Force-directed layout by Fruchterman and Reingold (1991), from a spiral: nodes repel each other by 1/d, links
    attract by d squared divided by the smaller degree, and gravity attracts by d. The maximum step shrinks to zero.

    Args:
        count: Number of nodes.
        links: Pairs of node numbers.
    """
    turn = np.arange(count) * GOLDEN_ANGLE
    at = np.sqrt(np.arange(count) + 0.5)[:, None] * np.stack([np.cos(turn), np.sin(turn)], axis=1)
    ends = np.array(links, dtype=int).reshape(-1, 2)
    degree = np.bincount(ends.ravel(), minlength=count)
    weight = ATTRACTION / np.minimum(degree[ends[:, 0]], degree[ends[:, 1]])[:, None]
    for step in range(LAYOUT_STEPS):
        square = (at**2).sum(axis=1)
        near = 1 / np.maximum(square[:, None] + square[None, :] - 2 * at @ at.T, 0.01)
        push = at * near.sum(axis=1, keepdims=True) - near @ at
        along = at[ends[:, 1]] - at[ends[:, 0]]
        pull = weight * along * np.linalg.norm(along, axis=1, keepdims=True)
        force = push - GRAVITY * at
        np.add.at(force, ends[:, 0], pull)
        np.add.at(force, ends[:, 1], -pull)
        length = np.maximum(np.linalg.norm(force, axis=1, keepdims=True), 1e-9)
        longest = 0.12 * np.sqrt(count) * (1 - step / LAYOUT_STEPS)
        at = at + force / length * np.minimum(length, longest)
    return tuple((round(float(x), 3), round(float(y), 3)) for x, y in at)


TYPE_LOOKS = (  # hue and shape, most frequent type first; diamonds are answers
    ("blue", "circle"), ("orange", "rect"), ("green", "triangle"), ("violet", "roundRect"), ("red", "pin"),
    ("gray", "arrow"),
)  # fmt: skip
TYPE_TITLES = {"pdf": "PDF", "html": "Web page", "csv": "CSV", "json": "JSON", "epub": "EPUB", "": "Other"}
MAX_NODES_LABELLED = 24  # nodes with a permanent label; others show theirs on hover
MIN_LABELS = 6  # that are shown even over several nodes of a crowded chart
MAX_LABEL_CHARS = 30
FRAME_PX = (1200, 680)  # px: width and height for which labels are placed
NARROW_FRAMES = (
    (900, (640, 680), 30),
    (600, (362, 440), 20),
)  # up to a width, such a frame, in px; a label's characters
FONT = "Source Sans 3, sans-serif"  # by which ECharts measures labels, to hide those that would overlap
LETTER_PX, LINE_PX = 6.6, 18  # px: size of a label's letter and line
MAX_TOOLTIP_CHARS = 90  # characters of a tooltip
INK_COLOURS = {"light": "#33302b", "dark": "#e9e5dc"}
PAPER_COLOURS = {"light": "#fbfaf7", "dark": "#1b1a18"}


def make_chart(graph: Graph, theme: str, chosen: Sequence[str] = ()) -> JsonObject:
    """Return the chart's options for the theme "light" or "dark"; ``chosen`` documents are diamonds."""
    types = list_types(graph)
    crowd = len(graph.nodes)
    dots = [
        _make_node(node, list(types), chosen, crowd) | {"x": x, "y": y}
        for node, (x, y) in zip(graph.nodes, _lay_out_graph(graph), strict=True)
    ]
    zoom = 1 if crowd > 6 else 0.6  # 1 fills 80% of the frame, which leaves room for labels
    return {
        "animation": False,
        "tooltip": {"confine": True, "extraCssText": "max-width:380px;white-space:normal;overflow-wrap:anywhere"},
        "legend": [
            {"data": [{"name": title, "icon": TYPE_LOOKS[place][1]}
                      for place, title in enumerate(types.values())],
             "type": "scroll", "top": 0, "left": 0, "itemWidth": 13, "itemHeight": 13,
             "textStyle": {"color": INK_COLOURS[theme], "fontSize": 13}}
        ] if len(types) > 1 else [],
        "media": [
            {"query": {"maxWidth": widest}, "option": {"series": [{"data": _place_labels(dots, frame, letters, zoom)}]}}
            for widest, frame, letters in NARROW_FRAMES
        ],
        "series": [
            {
                "type": "graph",
                "layout": "none",
                "roam": True,
                "zoom": zoom,
                "scaleLimit": {"min": 0.3, "max": 8},
                "draggable": True,
                "selectedMode": "single",
                "categories": [
                    {"name": title, "itemStyle": {"color": PALETTE[TYPE_LOOKS[place][0]][theme == "dark"]}}
                    for place, title in enumerate(types.values())
                ],
                "data": _place_labels(dots, FRAME_PX, MAX_LABEL_CHARS, zoom),
                "links": _make_edges(graph),
                "edgeSymbol": ["none", "arrow"],
                "edgeSymbolSize": 6,
                "lineStyle": {"color": INK_COLOURS[theme], "opacity": 0.22, "width": 1.2, "curveness": 0.08},
                "label": {"position": "right", "fontSize": 13, "fontFamily": FONT, "minMargin": 12,
                          "color": INK_COLOURS[theme], "textBorderColor": PAPER_COLOURS[theme],
                          "textBorderWidth": 3},
                "labelLayout": {"hideOverlap": True},
                "emphasis": {"focus": "adjacency", "label": {"show": True}, "lineStyle": {"opacity": 0.9, "width": 2}},
                "select": {"itemStyle": {"borderColor": INK_COLOURS[theme], "borderWidth": 3}, "label": {"show": True}},
            }
        ],
    }  # fmt: skip


def _place_labels(dots: Sequence[JsonObject], frame: tuple[int, int], letters: int, zoom: float) -> list[JsonValue]:
    """Return the nodes with labels; those of the largest are shown, on the side where each covers the fewest nodes.

    A label that would cover another, or two nodes, or leave the frame is shown on hover only, as for small nodes; the
    first ``MIN_LABELS`` may cover nodes. An upright frame turns the layout, which is wider than high.

    Args:
        dots: Nodes with their positions in the layout.
        frame: Width and height of the chart, in px.
        letters: Maximum number of characters of a label.
        zoom: Magnification of the layout.
    """
    if frame[0] < frame[1]:  # of a phone
        dots = [dot | {"x": dot["y"], "y": dot["x"], "symbolSize": 0.7 * as_number(dot["symbolSize"])} for dot in dots]
    at = np.array([(as_number(dot["x"]), as_number(dot["y"])) for dot in dots]).reshape(-1, 2)
    least, most = (at.min(axis=0), at.max(axis=0)) if dots else (np.zeros(2), np.zeros(2))
    unit = (float(max((most - least) / np.multiply(0.8, frame))) or 1.0) / zoom  # of the layout, in a pixel
    middle, room = (least[0] + most[0]) / 2, frame[0] / 2 * unit
    radius = [as_number(dot["symbolSize"]) / 2 * unit for dot in dots]
    nodes = [(x - radius[n], y - radius[n], x + radius[n], y + radius[n]) for n, (x, y) in enumerate(at)]
    names = [shorten(str(as_object(dot["label"])["formatter"]), letters) for dot in dots]
    labels, sides = [], {}
    for place in sorted(range(len(dots)), key=lambda place: -radius[place])[:MAX_NODES_LABELLED]:
        (x, y), away = at[place], radius[place] + 5 * unit
        wide, high = LETTER_PX * len(names[place]) * unit, LINE_PX * unit
        boxes = {
            "right": (x + away, y - high / 2, x + away + wide, y + high / 2),
            "left": (x - away - wide, y - high / 2, x - away, y + high / 2),
            "bottom": (x - wide / 2, y + radius[place], x + wide / 2, y + away + high),
            "top": (x - wide / 2, y - away - high, x + wide / 2, y - radius[place]),
        }
        covered = {
            side: sum(_overlap(box, node) for node in nodes)
            for side, box in boxes.items()
            if max(middle - box[0], box[2] - middle) < room and not any(_overlap(box, label) for label in labels)
        }
        if covered and (len(labels) < MIN_LABELS or min(covered.values()) < 2):
            sides[place] = min(covered, key=lambda side: covered[side])
            labels.append(boxes[sides[place]])
    towards = ["left" if x > middle else "right" for x in at[:, 0]]
    return [
        dot | {"label": {"show": n in sides, "formatter": names[n], "position": sides.get(n, towards[n])}}
        for n, dot in enumerate(dots)
    ]


def _overlap(one: Sequence[float], other: Sequence[float]) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def describe_graph(graph: Graph) -> str:
    """Return the alt text of the chart."""
    most = sorted(graph.nodes, key=lambda node: -node.cited_by)[:3]
    names = ", ".join(f"{node.title} ({node.cited_by})" for node in most if node.cited_by)
    links = sum(edge.links for edge in graph.edges)
    return (
        f"Citation graph of {count_text(len(graph.nodes), 'document')} and {count_text(links, 'link')}. "
        f"Most cited: {names or 'none'}."
    )


def read_selection(state: Mapping[str, JsonValue] | None, graph: Graph) -> GraphNode | None:
    """Return the document whose node is selected, or None; selected edges are ignored."""
    for group in map(as_object, as_items(as_object((state or {}).get("selection")).get("selected"))):
        if group["data_type"] == "edge":
            continue
        for place in map(as_integer, as_items(group["data_indices"])):
            if 0 <= place < len(graph.nodes):
                return graph.nodes[place]
    return None


def _lay_out_graph(graph: Graph) -> Sequence[tuple[float, float]]:
    number = {node.id: place for place, node in enumerate(graph.nodes)}
    ends = ((number.get(edge.source), number.get(edge.target)) for edge in graph.edges)
    return lay_out(
        len(graph.nodes), tuple((start, end) for start, end in ends if start is not None and end is not None)
    )


def list_types(graph: Graph) -> dict[str, str]:
    """Return the document types of a graph with their titles, most frequent first; types without a look are "Other"."""
    counts = Counter(node.document_type for node in graph.nodes)
    named = [kind for kind, _ in counts.most_common() if kind][: len(TYPE_LOOKS) - 1]
    kinds = named if counts.keys() <= set(named) else [*named, ""]
    return {kind: TYPE_TITLES.get(kind, kind.capitalize()) for kind in kinds}


def _make_node(node: GraphNode, types: Sequence[str], chosen: Sequence[str], crowd: int) -> JsonObject:
    scale = next(scale for most, scale in ((12, 1.4), (40, 1.05), (80, 0.9), (10**9, 0.7)) if crowd <= most)
    size = scale * (9 + 5 * math.sqrt(node.cited_by) + (5 if node.id in chosen else 0))
    place = types.index(node.document_type if node.document_type in types else "")
    return {
        "id": node.id,
        "name": shorten(node.title, MAX_TOOLTIP_CHARS),
        "value": f"{shorten(node.source_title, 40)}: cited by {node.cited_by}, cites {node.cites}",
        "category": place,
        "symbol": "diamond" if node.id in chosen else TYPE_LOOKS[place][1],
        "symbolSize": round(size, 1),
        "label": {"show": False, "formatter": shorten(node.title, MAX_LABEL_CHARS).replace("{", "(")},
    }


def _make_edges(graph: Graph) -> list[JsonObject]:
    return [
        {
            "source": edge.source,
            "target": edge.target,
            "value": edge.context or "Mention",
            "lineStyle": {"type": "solid" if edge.confidence >= 0.9 else "dashed"},
        }
        for edge in graph.edges
    ]


VIEWS = {"graph": "Graph", "links": "Most cited, orphans, broken", "archive": "Archive search"}
NUMBERS_HELP = {
    "Links": "Total of the other counts.",
    "Paths and empty targets": "File paths and links without a target, which may not be intended as links.",
}
MAX_RESULTS = 20  # documents found for a question
NODE_COLUMNS = ("Document", "Source", "Cited by", "Cites")


def page() -> None:
    """Show the view named in the URL."""
    wb = OPENING.workbench
    st.title("Graph", anchor=False)
    view = choose_in_url("View", VIEWS, "view", "graph_view")
    if view == "archive":
        show_archive(wb)
    elif not wb.documents.count():
        show_message("No documents yet", "This page shows citations between your documents, and broken links.")
        show_start_buttons(wb, "library", "crawl")
    else:
        scope = wb.requests.resolve(read_scope())
        if view == "graph":
            _show_graph(wb, scope)
        else:
            _show_lists(wb, scope)
    show_reader(wb, read_index())


def _show_graph(wb: Workbench, scope: ResolvedScope) -> None:
    """Show the graph of a scope, or of a question's results; clicking a node opens its document."""
    question = st.text_input(
        "Filter by question",
        show_value("graph_question", address.get("about")),
        key="graph_question",
        placeholder="Enter a question to see what its results cite",
        on_change=lambda: address.put(about=st.session_state["graph_question"].strip()),
    ).strip()
    chosen: list[str] = []
    if question:
        result = wb.document_search.search(
            question, Ask(None, MAX_RESULTS, read_scope(), read_index(), fold_copies=False)
        )
        chosen = [hit.document_id for hit in result.documents]
    graph = wb.citations.graph(scope, chosen if question else None)
    if not graph.edges:
        _show_empty(wb, question)
        return
    key = f"graph_{address.get('about')}_{len(graph.nodes)}"
    links = sum(edge.links for edge in graph.edges)  # an edge has one or more
    edges = f"{count_text(len(graph.edges), 'edge')} ({count_text(links, 'link')})"
    left_out = f", {count_text(graph.left_out, 'document')} with fewer links hidden" if graph.left_out else ""
    diamonds = " Diamonds = results." if chosen else ""
    st.caption(
        f"{count_text(len(graph.nodes), 'document')}, {edges}{left_out}. Node size = "
        f"citations.{diamonds} Scroll to zoom, drag to move, hover an edge for its sentence, click a node to open it."
    )
    state: Any = st.echarts_chart(
        make_chart(graph, current_theme(), chosen),
        key=key,
        on_select="rerun",
        height=FRAME_PX[1],
        renderer="svg",
        alt=describe_graph(graph),
    )
    node = read_selection(state, graph)
    before = st.session_state.get(f"{key}_opened")
    st.session_state[f"{key}_opened"] = node.id if node else None
    if node is not None and node.id != before:
        open_document(node.id)


def _show_empty(wb: Workbench, question: str) -> None:
    if question:
        show_message("These results cite nothing", "Try another question, or clear the filter.")
        st.button("Clear filter", on_click=lambda: address.put(about=None))
    elif is_scoped():
        show_message("No citations in this scope", "Widen the scope to see more.")
        st.button("Clear scope", on_click=clear_scope, icon=":material/close:")
    else:
        show_message(
            "No citations yet",
            "Links are read when documents are added, such as Markdown files and web pages that link to each other.",
        )
        show_start_buttons(wb, "library", "crawl")


def _show_lists(wb: Workbench, scope: ResolvedScope) -> None:
    overview = wb.citations.overview(scope, limit=100)
    _show_counts(overview)
    left, right = st.columns(2, gap="large")
    with left:
        st.header("Most cited", anchor=False)
        _show_nodes("most_cited", overview.most_cited, "No cited documents.")
    with right:
        st.header("Orphans", anchor=False, help="Documents without citations in either direction")
        _show_nodes("orphans", overview.orphans, "No orphans.")
    st.header("Broken links", anchor=False)
    rows = {
        f"{link.document_id}#{place}": (link.title, link.target, link.context)
        for place, link in enumerate(wb.citations.broken(scope))
    }
    opened = show_rows(
        "broken", ("Document", "Target", "Sentence"), rows, label="Broken links", noun="links",
        empty="No broken links.", opens=True, filters=True,
    ).opened  # fmt: skip
    _open_and_rerun(opened.partition("#")[0] if opened else None)


def _show_counts(overview: Overview) -> None:
    values = {
        "Links": overview.links,
        "Between documents": overview.resolved,
        "Within a document": overview.within,
        "To the web": overview.external,
        "Broken": overview.broken,
        "Paths and empty targets": overview.unjudged,
    }
    for column, (name, value) in zip(st.columns(len(values)), values.items(), strict=True):
        column.metric(name, f"{value:,}", help=NUMBERS_HELP.get(name))


def _show_nodes(key: str, nodes: Sequence[GraphNode], empty: str) -> None:
    rows = {node.id: (node.title, node.source_title, node.cited_by, node.cites) for node in nodes}
    choice = show_rows(key, NODE_COLUMNS, rows, label=key, noun="documents", empty=empty, opens=True, filters=True)
    _open_and_rerun(choice.opened)


def _open_and_rerun(document_id: str | None) -> None:
    if document_id:
        open_document(document_id)
        st.rerun()

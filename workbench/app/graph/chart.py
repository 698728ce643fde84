"""The citation graph as an ECharts picture: documents as dots that grow with what cites them, links as lines.

The hue and the shape of a dot say of which type the document is."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence

from workbench.app.graph.layout import places
from workbench.app.widgets.looks import PALETTE
from workbench.services.citations import Graph, GraphNode
from workbench.sizes import counted
from workbench.types import JsonObject, JsonValue, as_items, as_number, as_object, as_whole

LOOKS_OF_TYPES = (  # hue and shape, the commonest type first; diamonds are answers
    ("blue", "circle"), ("orange", "rect"), ("green", "triangle"), ("violet", "roundRect"), ("red", "pin"),
    ("gray", "arrow"),
)  # fmt: skip
TITLES_OF_TYPES = {"pdf": "PDF", "html": "Web page", "csv": "CSV", "json": "JSON", "epub": "EPUB", "": "Other"}
NAMED = 24  # dots that carry their title unasked; the rest say it under the pointer
LONGEST_NAME, LONGEST_IN_CROWD, CROWD = 30, 18, 80  # characters of a title in the picture; there, of more dots
NARROW, NARROW_NAME = 600, 130  # px: in a frame that is no wider, a name takes no more
FONT = "Source Sans 3, sans-serif"  # by which ECharts measures labels, to leave out those that would overlap
LONGEST_HINT = 90  # characters under the pointer
INK = {"light": "#33302b", "dark": "#e9e5dc"}
PAPER = {"light": "#fbfaf7", "dark": "#1b1a18"}


def chart(graph: Graph, theme: str, chosen: Sequence[str] = ()) -> JsonObject:
    """Return the picture's options for the theme "light" or "dark"; ``chosen`` documents are drawn as diamonds."""
    types = types_of(graph)
    titled = {node.id for node in sorted(graph.nodes, key=lambda node: -node.cited_by)[:NAMED]}
    crowd = len(graph.nodes)
    dots = [
        _dot(node, list(types), titled, chosen, crowd) | {"x": x, "y": y}
        for node, (x, y) in zip(graph.nodes, _places(graph), strict=True)
    ]
    return {
        "animation": False,
        "tooltip": {"confine": True, "extraCssText": "max-width:380px;white-space:normal;overflow-wrap:anywhere"},
        "legend": [
            {"data": [{"name": title, "icon": LOOKS_OF_TYPES[place][1]}
                      for place, title in enumerate(types.values())],
             "type": "scroll", "top": 0, "left": 0, "itemWidth": 13, "itemHeight": 13,
             "textStyle": {"color": INK[theme], "fontSize": 13}}
        ] if len(types) > 1 else [],
        "media": [{"query": {"maxWidth": NARROW}, "option": {"series": [_in_narrow_frames(dots)]}}],
        "series": [
            {
                "type": "graph",
                "layout": "none",
                "roam": True,
                "zoom": 1 if crowd > 6 else 0.6,  # 1 fills four fifths of the frame; names need the rest
                "scaleLimit": {"min": 0.3, "max": 8},
                "draggable": True,
                "selectedMode": "single",
                "categories": [
                    {"name": title, "itemStyle": {"color": _hue(place, theme)}}
                    for place, title in enumerate(types.values())
                ],
                "data": dots,
                "links": _lines(graph),
                "edgeSymbol": ["none", "arrow"],
                "edgeSymbolSize": 6,
                "lineStyle": {"color": INK[theme], "opacity": 0.22, "width": 1.2, "curveness": 0.08},
                "label": {"position": "right", "fontSize": 13, "fontFamily": FONT, "minMargin": 12,
                          "color": INK[theme], "textBorderColor": PAPER[theme],
                          "textBorderWidth": 3},
                "labelLayout": {"hideOverlap": True},
                "emphasis": {"focus": "adjacency", "label": {"show": True}, "lineStyle": {"opacity": 0.9, "width": 2}},
                "select": {"itemStyle": {"borderColor": INK[theme], "borderWidth": 3}, "label": {"show": True}},
            }
        ],
    }  # fmt: skip


def _in_narrow_frames(dots: Sequence[JsonObject]) -> JsonObject:
    """Return the series where the frame is narrow: names run towards its middle, so that none is cut off at an edge."""
    across = [as_number(dot["x"]) for dot in dots]
    middle = (min(across) + max(across)) / 2 if across else 0.0
    placed: list[JsonValue] = [
        dot | {"label": {**as_object(dot["label"]), "position": "left" if x > middle else "right"}}
        for dot, x in zip(dots, across, strict=True)
    ]
    return {"data": placed, "label": {"width": NARROW_NAME, "overflow": "truncate"}}


def spoken(graph: Graph) -> str:
    """Describe the picture for people who cannot see it."""
    most = sorted(graph.nodes, key=lambda node: -node.cited_by)[:3]
    names = ", ".join(f"{node.title} ({node.cited_by})" for node in most if node.cited_by)
    links = sum(edge.links for edge in graph.edges)
    return (
        f"Citation graph of {counted(len(graph.nodes), 'document')} and {counted(links, 'link')} between them. "
        f"Most cited: {names or 'none'}."
    )


def chosen_node(state: Mapping[str, JsonValue] | None, graph: Graph) -> GraphNode | None:
    """Return the document whose dot is selected, or None; a selected line stands for none."""
    for group in map(as_object, as_items(as_object((state or {}).get("selection")).get("selected"))):
        if group["data_type"] == "edge":
            continue
        for place in map(as_whole, as_items(group["data_indices"])):
            if 0 <= place < len(graph.nodes):
                return graph.nodes[place]
    return None


def _places(graph: Graph) -> Sequence[tuple[float, float]]:
    number = {node.id: place for place, node in enumerate(graph.nodes)}
    ends = ((number.get(edge.source), number.get(edge.target)) for edge in graph.edges)
    return places(len(graph.nodes), tuple((start, end) for start, end in ends if start is not None and end is not None))


def types_of(graph: Graph) -> dict[str, str]:
    """Return the types of a graph's documents with their titles, the commonest first; what has no look is "Other"."""
    counts = Counter(node.document_type for node in graph.nodes)
    named = [kind for kind, _ in counts.most_common() if kind][: len(LOOKS_OF_TYPES) - 1]
    kinds = named if counts.keys() <= set(named) else [*named, ""]
    return {kind: TITLES_OF_TYPES.get(kind, kind.capitalize()) for kind in kinds}


def _dot(node: GraphNode, types: Sequence[str], titled: set[str], chosen: Sequence[str], crowd: int) -> JsonObject:
    size = _scale(crowd) * (9 + 5 * math.sqrt(node.cited_by) + (5 if node.id in chosen else 0))
    longest = LONGEST_NAME if crowd <= CROWD else LONGEST_IN_CROWD
    place = types.index(node.document_type if node.document_type in types else "")
    return {
        "id": node.id,
        "name": _short(node.title, LONGEST_HINT),
        "value": f"{_short(node.source_title, 40)}: cited by {node.cited_by}, cites {node.cites}",
        "category": place,
        "symbol": "diamond" if node.id in chosen else LOOKS_OF_TYPES[place][1],
        "symbolSize": round(size, 1),
        "label": {
            "show": node.id in titled,
            "formatter": _short(node.title, longest).replace("{", "("),
        },
    }


def _lines(graph: Graph) -> list[JsonObject]:
    return [
        {
            "source": edge.source,
            "target": edge.target,
            "value": edge.context or "mentions it",
            "lineStyle": {"type": "solid" if edge.confidence >= 0.9 else "dashed"},
        }
        for edge in graph.edges
    ]


def _scale(crowd: int) -> float:
    """Return how large dots are, so that few fill the picture and many fit in."""
    return next(scale for most, scale in ((12, 1.4), (40, 1.05), (80, 0.9), (10**9, 0.7)) if crowd <= most)


def _hue(place: int, theme: str) -> str:
    light, dark = PALETTE[LOOKS_OF_TYPES[place][0]]
    return dark if theme == "dark" else light


def _short(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: longest - 1].rstrip() + "…"

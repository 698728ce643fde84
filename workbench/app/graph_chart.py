"""The citation graph as an ECharts picture: documents as dots that grow with what cites them, links as lines."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from workbench.app.graph_layout import places
from workbench.app.labels import counted
from workbench.app.looks import PALETTE
from workbench.services.citations import Graph, Node

HUES = ("blue", "orange", "green", "violet", "yellow", "red")
NAMED = 24  # dots that carry their title unasked; the rest say it under the pointer
LONGEST_NAME = 30  # characters of a title in the picture
LONGEST_HINT = 90
INK = {"light": "#33302b", "dark": "#e9e5dc"}
PAPER = {"light": "#fbfaf7", "dark": "#1b1a18"}


def chart(graph: Graph, theme: str, chosen: Sequence[str] = ()) -> dict[str, Any]:
    """Return the picture's options for the theme "light" or "dark"; ``chosen`` documents are drawn as diamonds."""
    sources = list(dict.fromkeys(node.source_title for node in graph.nodes))
    named = {node.id for node in sorted(graph.nodes, key=lambda node: -node.cited_by)[:NAMED]}
    crowd = len(graph.nodes)
    return {
        "animation": False,
        "tooltip": {"confine": True, "extraCssText": "max-width:380px;white-space:normal;overflow-wrap:anywhere"},
        "legend": [
            {"data": [_short(title, 40) for title in sources], "type": "scroll", "top": 0, "left": 0, "icon": "circle",
             "textStyle": {"color": INK[theme]}}
        ] if len(sources) > 1 else [],
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
                    {"name": _short(title, 40), "itemStyle": {"color": _hue(place, theme)}}
                    for place, title in enumerate(sources)
                ],
                "data": [
                    _dot(node, sources, named, chosen, crowd) | {"x": x, "y": y}
                    for node, (x, y) in zip(graph.nodes, _places(graph), strict=True)
                ],
                "links": _lines(graph),
                "edgeSymbol": ["none", "arrow"],
                "edgeSymbolSize": 6,
                "lineStyle": {"color": INK[theme], "opacity": 0.22, "width": 1.2, "curveness": 0.08},
                "label": {"position": "right", "fontSize": 12, "color": INK[theme], "textBorderColor": PAPER[theme],
                          "textBorderWidth": 3},
                "labelLayout": {"hideOverlap": True},
                "emphasis": {"focus": "adjacency", "label": {"show": True}, "lineStyle": {"opacity": 0.9, "width": 2}},
                "select": {"itemStyle": {"borderColor": INK[theme], "borderWidth": 3}, "label": {"show": True}},
            }
        ],
    }  # fmt: skip


def spoken(graph: Graph) -> str:
    """Describe the picture for who cannot see it."""
    most = sorted(graph.nodes, key=lambda node: -node.cited_by)[:3]
    names = ", ".join(f"{node.title} ({node.cited_by})" for node in most if node.cited_by)
    return (
        f"Citation graph of {counted(len(graph.nodes), 'document')} and {counted(len(graph.edges), 'link')}. "
        f"Most cited: {names or 'none'}."
    )


def chosen_node(state: Mapping[str, Any] | None, graph: Graph) -> Node | None:
    """Return the document whose dot is selected, or None; a selected line stands for none."""
    for group in ((state or {}).get("selection") or {}).get("selected") or ():
        if group["data_type"] == "edge":
            continue
        for place in group["data_indices"]:
            if 0 <= place < len(graph.nodes):
                return graph.nodes[place]
    return None


def _places(graph: Graph) -> Sequence[tuple[float, float]]:
    number = {node.id: place for place, node in enumerate(graph.nodes)}
    ends = ((number.get(edge.source), number.get(edge.target)) for edge in graph.edges)
    return places(len(graph.nodes), tuple((one, two) for one, two in ends if one is not None and two is not None))


def _dot(node: Node, sources: Sequence[str], named: set[str], chosen: Sequence[str], crowd: int) -> dict[str, Any]:
    size = _scale(crowd) * (9 + 5 * math.sqrt(node.cited_by) + (5 if node.id in chosen else 0))
    return {
        "id": node.id,
        "name": _short(node.title, LONGEST_HINT),
        "value": f"cited by {node.cited_by}, cites {node.cites}",
        "category": sources.index(node.source_title),
        "symbol": "diamond" if node.id in chosen else "circle",
        "symbolSize": round(size, 1),
        "label": {"show": node.id in named, "formatter": _short(node.title, LONGEST_NAME).replace("{", "(")},
    }


def _lines(graph: Graph) -> list[dict[str, Any]]:
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
    light, dark = PALETTE[HUES[place % len(HUES)]]
    return dark if theme == "dark" else light


def _short(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: longest - 1].rstrip() + "…"

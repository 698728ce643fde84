"""The look of each strategy, the same on every page: a hue of the theme, a mark that needs no hue, a dash for lines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Hue = Literal[
    "blue", "orange", "green", "violet", "yellow", "red", "gray",
    "brown", "cyan", "pink", "indigo", "lime", "slate", "plum", "ink",
]  # fmt: skip

# Every hue as (light, dark); the first seven are also the theme's own (frame/.streamlit/config.toml).
PALETTE: dict[str, tuple[str, str]] = {
    "blue": ("#0d4a88", "#5ba5f2"),
    "orange": ("#a64b06", "#ee9250"),
    "green": ("#23897a", "#84e6c9"),
    "violet": ("#a53cb8", "#d585bd"),
    "yellow": ("#857000", "#d8c645"),
    "red": ("#b3261e", "#ff8f85"),
    "gray": ("#6e6961", "#a8a298"),
    "brown": ("#7a4a21", "#c99b6d"),
    "cyan": ("#0b7a9e", "#56c5e8"),
    "pink": ("#c2417c", "#ff9ac1"),
    "indigo": ("#5a4fcf", "#a79bff"),
    "lime": ("#4f7a12", "#a9d45a"),
    "slate": ("#44586b", "#93a9bd"),
    "plum": ("#6b2b58", "#c48fb4"),
    "ink": ("#3d3a35", "#d8d4cb"),
}


@dataclass(frozen=True, slots=True)
class Look:
    """A strategy's hue, its mark in text, and the dash of its line in charts (SVG ``stroke-dasharray``)."""

    hue: Hue
    mark: str
    shape: Literal["circle", "square", "triangle", "diamond", "cross", "ring"]
    dash: str = ""

    def hex(self, theme: str | None) -> str:
        """Return the hue as a number for the theme "light" or "dark"."""
        light, dark = PALETTE[self.hue]
        return dark if theme == "dark" else light


LOOKS: dict[str, Look] = {
    "vector": Look("blue", "●", "circle"),
    "keyword": Look("orange", "■", "square"),
    "hybrid": Look("green", "▲", "triangle"),
    "rerank": Look("violet", "◆", "diamond"),
    "scoped": Look("yellow", "◆", "diamond"),
    "fuzzy": Look("ink", "■", "square"),
    "auto-merge": Look("red", "▲", "triangle"),
    "window": Look("brown", "■", "square"),
    "mmr": Look("cyan", "○", "ring", "6 3"),
    "feedback": Look("pink", "◆", "diamond", "6 3"),
    "hyde": Look("indigo", "●", "circle", "6 3"),
    "multi-query": Look("lime", "◆", "diamond", "6 3"),
    "llm-rerank": Look("slate", "◆", "diamond", "6 3"),
    "cross-encoder": Look("plum", "▲", "triangle", "6 3"),
    "llamaindex-hybrid": Look("gray", "✕", "cross"),
}
_SPARE = (
    Look("green", "○", "ring", "2 2"),
    Look("violet", "■", "square", "2 2"),
    Look("red", "○", "ring", "2 2"),
    Look("yellow", "▲", "triangle", "2 2"),
)


def look(strategy: str) -> Look:
    """Return a strategy's look; one that has none of its own gets a spare one, always the same."""
    if strategy in LOOKS:
        return LOOKS[strategy]
    from workbench.retrieval.strategies import STRATEGIES

    others = [name for name in STRATEGIES if name not in LOOKS]
    place = others.index(strategy) if strategy in others else len(others)
    return _SPARE[place % len(_SPARE)]


def hue_rules() -> str:
    """Return the CSS class of every hue: ``.hue-blue`` sets ``--hue`` for either theme."""
    return "\n".join(
        f".hue-{name} {{ --hue: light-dark({light}, {dark}); }}" for name, (light, dark) in PALETTE.items()
    )


def mark_html(strategy: str) -> str:
    """Return a strategy's mark in its hue, as HTML."""
    appearance = look(strategy)
    light, dark = PALETTE[appearance.hue]
    return f'<span style="color:light-dark({light},{dark})" aria-hidden="true">{appearance.mark}</span>'

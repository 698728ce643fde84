"""How each strategy looks, the same on every page: a hue of the theme, a mark that needs no hue, a dash for lines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Hue = Literal["blue", "orange", "green", "violet", "yellow", "red", "gray"]

# The theme's named hues (frame/.streamlit/config.toml), for charts that need the number; (light, dark).
PALETTE: dict[str, tuple[str, str]] = {
    "blue": ("#0d4a88", "#5ba5f2"),
    "orange": ("#a64b06", "#ee9250"),
    "green": ("#23897a", "#84e6c9"),
    "violet": ("#a53cb8", "#d585bd"),
    "yellow": ("#857000", "#d8c645"),
    "red": ("#b3261e", "#ff8f85"),
    "gray": ("#6e6961", "#a8a298"),
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
    "auto-merge": Look("red", "▲", "triangle"),
    "window": Look("yellow", "■", "square"),
    "mmr": Look("blue", "○", "ring", "6 3"),
    "feedback": Look("orange", "◆", "diamond", "6 3"),
    "hyde": Look("red", "●", "circle", "6 3"),
    "multi-query": Look("red", "◆", "diamond", "6 3"),
    "llm-rerank": Look("green", "◆", "diamond", "6 3"),
    "cross-encoder": Look("violet", "▲", "triangle", "6 3"),
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

"""How strategies and texts look on every page: hues, marks, dashes, titles, escaped labels."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import PurePath
from typing import Literal

import streamlit as st

from workbench.formatting import count_text
from workbench.retrieval.strategies import STRATEGIES
from workbench.types import JsonObject, Passage, suggest_formats

# Labels, which Streamlit reads as Markdown

_MARKDOWN_CHARS = frozenset("\\`*_{}[]#|~:$<>!&()+-=")
_JOINER = "\u2060"  # zero-width
# Streamlit replaces these after it removes backslashes: URLs, icons and emoji, arrows and dashes.
_LATE_PATTERN = re.compile(
    r"(?<=http)(?=s?://)|(?<=www)(?=\.)|(?<=@)|(?<=:)(?=[\w+/-]+:)|(?<=-)(?=[->])|(?<=<)(?=[-=])|(?<=[>~])(?==)",
    re.IGNORECASE,
)
MAX_FILE_NAME_CHARS = 60  # characters of a name of a downloaded file
MAX_FILES_NAMED = 3  # files listed in a sentence
# Metadata of documents that lists leave out: dates have a column and a filter of their own, the rest is rarely of use.
CRAWL_METADATA = ("links", "links_found", "crawled_at", "crawl_depth", "canonical_url")  # of the crawler itself
MINOR_METADATA = (*CRAWL_METADATA, "date", "created", "modified", "pages", "pdf_title")
_LIST_PATTERN = re.compile(r"^(\d+)\.")


def escape_markdown(text: str, longest: int | None = None) -> str:
    """Return text that Streamlit's Markdown shows literally, on one line, cut to ``longest`` characters.

    Text from outside must pass through it before it is used as a label, title, toast or Markdown, so that it cannot
    load pictures, add links or use directives.
    """
    line = " ".join(text.split())
    cut = line if longest is None else shorten(line, longest)
    safe = "".join(f"\\{char}" if char in _MARKDOWN_CHARS else char for char in _LATE_PATTERN.sub(_JOINER, cut))
    return _LIST_PATTERN.sub(r"\1\\.", safe)


def shorten(text: str, longest: int) -> str:
    """Return a text of at most ``longest`` characters, with an ellipsis if it was cut."""
    return text if len(text) <= longest else text[: longest - 1].rstrip() + "…"


MAX_BADGE_CHARS = 80  # characters of a title in a badge


def format_measured(test_set: str, over: str) -> str:
    """Return a test set and its scope as badges in Markdown, the same on every page."""
    badges = (f"Test set: {test_set}" if test_set else "", f"Scope: {over}")
    return " ".join(f":gray-badge[{escape_markdown(text, MAX_BADGE_CHARS)}]" for text in badges if text)


def make_file_name(title: str, otherwise: str) -> str:
    """Return a file name made from a title's words that is safe on any system; ``otherwise`` if there are none."""
    words = "".join(char if char.isalnum() else "-" for char in title)
    return "-".join(part for part in words.split("-") if part)[:MAX_FILE_NAME_CHARS].strip("-") or otherwise


def make_label_function(names: Mapping[str, str], otherwise: str | None = None) -> Callable[[str | None], str]:
    """Return a function that maps a key to its display name; unknown keys become ``otherwise``, or stay unchanged."""

    def show(key: str | None) -> str:
        return str(names.get(key or "", otherwise if otherwise is not None else key))

    return show


def describe_unsupported(names: Sequence[str]) -> str:
    """Return "Unsupported file type: clip.mp4.", or its plural for several files; "" for none."""
    if not names:
        return ""
    advice = suggest_formats(PurePath(name).suffix.lower() for name in names)
    if len(names) == 1:
        return f"Unsupported file type: {names[0]}. {advice}".strip()
    named, last = names[:-1], names[-1]
    if len(names) > MAX_FILES_NAMED:
        named = names[: MAX_FILES_NAMED - 1]
        last = count_text(len(names) - len(named), "other file")
    return f"Unsupported file types: {', '.join(named)} and {last}. {advice}".strip()


Hue = Literal[
    "blue", "orange", "green", "violet", "yellow", "red", "gray",
    "brown", "cyan", "pink", "indigo", "lime", "slate", "plum", "ink",
]  # fmt: skip

# Every hue as (light, dark); the first seven are also in the theme (frame/.streamlit/config.toml).
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
    """The look of a strategy."""

    hue: Hue  # name of a hue in ``PALETTE``
    mark: str  # its character in text, recognisable without colour
    shape: Literal["circle", "square", "triangle", "diamond", "cross", "ring"]  # its shape in charts
    dash: str = ""  # ``stroke-dasharray`` of its line in charts

    def hex(self, theme: str | None) -> str:
        """Return the hue as a hexadecimal colour for the theme "light" or "dark"."""
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
_SPARE_LOOKS = (
    Look("green", "○", "ring", "2 2"),
    Look("plum", "■", "square", "2 2"),
    Look("red", "○", "ring", "2 2"),
    Look("yellow", "▲", "triangle", "2 2"),
)


def get_look(strategy: str) -> Look:
    """Return the look of a strategy, or of "strategy@index"; one without a look always gets the same spare one."""
    strategy = strategy.partition("@")[0]
    if strategy in LOOKS:
        return LOOKS[strategy]
    others = [name for name in STRATEGIES if name not in LOOKS]
    place = others.index(strategy) if strategy in others else len(others)
    return _SPARE_LOOKS[place % len(_SPARE_LOOKS)]


def make_hue_css() -> str:
    """Return a CSS class for every hue: ``.hue-blue`` sets ``--hue`` for both themes."""
    return "\n".join(
        f".hue-{name} {{ --hue: light-dark({light}, {dark}); }}" for name, (light, dark) in PALETTE.items()
    )


def render_mark(strategy: str) -> str:
    """Return a strategy's mark in its hue, as HTML."""
    look = get_look(strategy)
    light, dark = PALETTE[look.hue]
    return f'<span style="color:light-dark({light},{dark})" aria-hidden="true">{look.mark}</span>'


# Titles of strategies, parameters and places


def strategy_title(name: str) -> str:
    """Return the title of a strategy, or of "strategy@index"."""
    strategy, _, index = name.partition("@")
    title = STRATEGIES[strategy].title if strategy in STRATEGIES else strategy
    return f"{title} on {index}" if index else title


def strategy_look(name: str) -> JsonObject:
    """Return the name, title, hue and shape of a strategy, or of "strategy@index", for a component."""
    look = get_look(name)
    return {"name": name, "title": strategy_title(name), "hue": look.hue, "shape": look.shape}


_PARAMETER_TITLES = {
    "late_weight": "Late-interaction weight",
    "late": "Late interaction",
    "lambda": "Relevance (lambda)",
    "size": "Max tokens",
    "small": "Merge sections under (tokens)",
    "overlap": "Overlap (tokens)",
    "parent": "Max tokens of a section",
    "percentile": "Percentile of distance",
}
_CHOICE_TITLES = {"convex": "Weighted", "rrf": "RRF", "ignore": "Ignore", "join": "Join", "llm": "LLM"}


def parameter_title(name: str) -> str:
    """Return the label of a parameter."""
    return _PARAMETER_TITLES.get(name, name.replace("_", " ").capitalize())


def choice_title(choice: str) -> str:
    """Return the label of a parameter's value."""
    return _CHOICE_TITLES.get(choice, choice)


def format_place(passage: Passage, headings: Sequence[str]) -> str:
    """Return a passage's place in its document: heading path and page, or ""."""
    path = list(headings)
    if path and path[0].strip().lower() == passage.document_title.strip().lower():
        path = path[1:]
    return " › ".join([*path, *([f"p. {passage.page}"] if passage.page else [])])


# Markdown as plain text

_MARKDOWN_PATTERNS = (
    (re.compile(r"^```.*$", re.M), ""),  # fences
    (re.compile(r"^\s{0,3}#{1,6}\s+(.+?)\s*#*$", re.M), r"\1 —"),
    (re.compile(r"^\s*\|?[\s:|-]*-{3,}[\s:|-]*$", re.M), ""),  # delimiter row of a table
    (re.compile(r"^(?:[ \t]*\|[ \t]?)+|(?:[ \t]?\|[ \t]*)+$", re.M), ""),
    (re.compile(r"[ \t]\|[ \t]"), " · "),
    (re.compile(r"^\s*(?:[-*+]|\d+[.)])\s+", re.M), "· "),
    (re.compile(r"^\s*>\s?", re.M), ""),
    (re.compile(r"!?\[([^\]]*)\]\([^)]*\)"), r"\1"),
    (re.compile(r"\*\*|__|`"), ""),
    (re.compile(r"(?<!\w)[*_](?=\S)|(?<=\S)[*_](?!\w)"), ""),
    (re.compile(r"\s+"), " "),
)


def strip_markdown(text: str) -> str:
    """Return Markdown as plain text on one line."""
    for pattern, replacement in _MARKDOWN_PATTERNS:
        text = pattern.sub(replacement, text)
    return text.strip(" —")


def show_message(heading: str, *sentences: str, detail: str = "") -> None:
    """Show a heading with sentences under it; ``detail`` is an error message, shown verbatim."""
    body = "".join(f"<p>{escape(sentence)}</p>" for sentence in sentences if sentence)
    quoted = f'<p class="detail">{escape(detail)}</p>' if detail else ""
    st.html(f'<div class="wb-state"><h2>{escape(heading)}</h2>{quoted}{body}</div>')

"""Rendered text: elements from a fixed list of tags, with text runs that carry their source spans; never HTML.

The browser's script creates the elements and sets their texts; it accepts only the same tags.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from workbench.types import JsonObject, JsonValue, Span


@dataclass(frozen=True, slots=True)
class TextRun:
    """Displayed text and its source span in the document."""

    text: str  # the text
    start: int  # start of the span, in characters
    end: int  # end of the span. If text and span have the same length, their characters correspond one to one.

    @property
    def is_exact(self) -> bool:
        """True if parts of the run have spans of their own; otherwise it can only be marked as a whole."""
        return len(self.text) == self.end - self.start


@dataclass(frozen=True, slots=True)
class Element:
    """An element of a rendered text."""

    tag: str  # its tag
    children: tuple[Element | TextRun, ...] = ()  # its elements and text runs
    # HTML-like attributes, such as class, title, start, align and level.
    attributes: Mapping[str, JsonValue] = field(default_factory=dict)
    span: Span | None = None  # source span, if the element is marked as a whole, such as a formula


Node: TypeAlias = Element | TextRun


def to_json(
    nodes: Sequence[Node],
    pieces: Callable[[TextRun], Sequence[JsonValue]],
    whole: Callable[[Span], JsonValue] = lambda _: None,
) -> list[JsonValue]:
    """Return nodes as JSON; ``pieces`` converts text runs, ``whole`` marks elements with a span."""
    out: list[JsonValue] = []
    for node in nodes:
        if isinstance(node, TextRun):
            out.extend(pieces(node))
            continue
        made: JsonObject = {"tag": node.tag, **node.attributes}
        if node.children:
            made["in"] = to_json(node.children, pieces, whole)
        if node.span is not None and (mark := whole(node.span)) is not None:
            made["mark"] = mark
        out.append(made)
    return out


def plain_text(nodes: Sequence[Node]) -> str:
    """Return the text of nodes."""
    return "".join(node.text if isinstance(node, TextRun) else plain_text(node.children) for node in nodes)


# A rendered text as short lines

_BLOCK_TAGS = frozenset(("p", "blockquote", "ul", "ol", "li", "table", "thead", "tbody", "pre", "hr"))


def split_into_lines(blocks: Sequence[Node], headings: Iterable[str] = ()) -> tuple[Element, ...]:
    """Return the lines of a text: paragraphs with the class "heading", "item", "row", "row heading", "code" or none.

    Headings at the start that are in ``headings`` are omitted.
    """
    shown = {" ".join(heading.split()) for heading in headings}
    made = [line for block in blocks for line in _iterate_lines(block) if plain_text(line.children).strip()]
    while made and made[0].attributes.get("class") == "heading" and _normalise_text(made[0]) in shown:
        made.pop(0)
    return tuple(made)


def split_code(text: str) -> tuple[Element, ...]:
    """Return the lines of a code text."""
    return tuple(_iterate_code((TextRun(text, 0, len(text)),)))


def _normalise_text(line: Element) -> str:
    return " ".join(plain_text(line.children).split())


def _iterate_lines(node: Node) -> Iterator[Element]:
    if isinstance(node, TextRun):
        yield Element("p", (node,))
    elif "level" in node.attributes:
        yield Element("p", node.children, {"class": "heading"})
    elif node.tag == "li":
        yield from _iterate_item(node)
    elif node.tag == "tr":
        yield _make_row(node)
    elif node.tag == "pre":
        yield from _iterate_code(run for code in node.children if isinstance(code, Element) for run in code.children)
    elif node.tag == "p" or node.tag not in _BLOCK_TAGS:
        yield node if node.tag == "p" else Element("p", (node,))
    else:
        for child in node.children:
            yield from _iterate_lines(child)


def _iterate_item(node: Element) -> Iterator[Element]:
    """Yield the lines of a list item; the first one has the bullet."""
    words = tuple(child for child in node.children if isinstance(child, TextRun) or child.tag not in _BLOCK_TAGS)
    inner = [line for child in node.children if child not in words for line in _iterate_lines(child)]
    first = Element("p", words) if words else inner.pop(0) if inner else Element("p")
    if "class" not in first.attributes:
        first = Element("p", first.children, {"class": "item"})
    yield first
    yield from inner


def _make_row(node: Element) -> Element:
    """Return a table row as a line of cells, separated by spaces for screen readers and copying."""
    inside = [cell for cell in node.children if isinstance(cell, Element)]
    cells = [Element("span", cell.children, {**cell.attributes, "class": "cell"}) for cell in inside]
    spaced = [part for cell in cells for part in (TextRun(" ", 0, 0), cell)][1:]
    return Element("p", tuple(spaced), {"class": "row heading" if any(cell.tag == "th" for cell in inside) else "row"})


def _iterate_code(runs: Iterable[Node]) -> Iterator[Element]:
    for run in runs:
        if isinstance(run, TextRun):
            for line in _split_run(run):
                if line.text.strip():
                    yield Element("p", (Element("code", (line,)),), {"class": "code", "dir": "ltr"})


def _split_run(run: TextRun) -> Iterator[TextRun]:
    at = 0
    for line in run.text.split("\n"):
        exact = run.start + at, run.start + at + len(line)
        yield TextRun(line, *(exact if run.is_exact else (run.start, run.end)))
        at += len(line) + 1

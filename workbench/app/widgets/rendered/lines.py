"""A rendered text as short lines for a small place: each heading, item, row of a table and line of code is a line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from workbench.app.widgets.rendered.elements import Element, Node, TextRun, shown_text

_BLOCKS = frozenset(("p", "blockquote", "ul", "ol", "li", "table", "thead", "tbody", "pre", "hr"))


def lines(blocks: Sequence[Node], headings: Iterable[str] = ()) -> tuple[Element, ...]:
    """Return the lines of a text: paragraphs of the class "heading", "item", "row", "row heading", "code" or none.

    Opening headings that ``headings`` names are left out: a small place shows them already.
    """
    shown = {" ".join(heading.split()) for heading in headings}
    made = [line for block in blocks for line in _lines(block) if shown_text(line.children).strip()]
    while made and made[0].attributes.get("class") == "heading" and _words(made[0]) in shown:
        made.pop(0)
    return tuple(made)


def code_lines(text: str) -> tuple[Element, ...]:
    """Return the lines of a text that is code throughout."""
    return tuple(_code_lines((TextRun(text, 0, len(text)),)))


def _words(line: Element) -> str:
    return " ".join(shown_text(line.children).split())


def _lines(node: Node) -> Iterator[Element]:
    if isinstance(node, TextRun):
        yield Element("p", (node,))
    elif "level" in node.attributes:
        yield Element("p", node.children, {"class": "heading"})
    elif node.tag == "li":
        yield from _item(node)
    elif node.tag == "tr":
        yield _row(node)
    elif node.tag == "pre":
        yield from _code_lines(run for code in node.children if isinstance(code, Element) for run in code.children)
    elif node.tag == "p" or node.tag not in _BLOCKS:
        yield node if node.tag == "p" else Element("p", (node,))
    else:
        for child in node.children:
            yield from _lines(child)


def _item(node: Element) -> Iterator[Element]:
    """Yield the lines of an item; its first one carries the dot."""
    words = tuple(child for child in node.children if isinstance(child, TextRun) or child.tag not in _BLOCKS)
    inner = [line for child in node.children if child not in words for line in _lines(child)]
    first = Element("p", words) if words else inner.pop(0) if inner else Element("p")
    if "class" not in first.attributes:
        first = Element("p", first.children, {"class": "item"})
    yield first
    yield from inner


def _row(node: Element) -> Element:
    """Return a row of a table as a line of cells, with a blank between two for those who hear or copy it."""
    inside = [cell for cell in node.children if isinstance(cell, Element)]
    cells = [Element("span", cell.children, {**cell.attributes, "class": "cell"}) for cell in inside]
    spaced = [part for cell in cells for part in (TextRun(" ", 0, 0), cell)][1:]
    return Element("p", tuple(spaced), {"class": "row heading" if any(cell.tag == "th" for cell in inside) else "row"})


def _code_lines(runs: Iterable[Node]) -> Iterator[Element]:
    for run in runs:
        if isinstance(run, TextRun):
            for line in _cut_at_line_ends(run):
                if line.text.strip():
                    yield Element("p", (Element("code", (line,)),), {"class": "code", "dir": "ltr"})


def _cut_at_line_ends(run: TextRun) -> Iterator[TextRun]:
    at = 0
    for line in run.text.split("\n"):
        exact = run.start + at, run.start + at + len(line)
        yield TextRun(line, *(exact if run.is_exact else (run.start, run.end)))
        at += len(line) + 1

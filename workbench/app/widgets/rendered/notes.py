"""The notes of GitHub's Markdown: a quotation that begins with [!NOTE] or [!WARNING], shown with its label."""

from __future__ import annotations

import re

from workbench.app.widgets.rendered.elements import Element, Node, TextRun

_LABEL = re.compile(r"\[!(note|tip|important|warning|caution)\]\s*", re.IGNORECASE)


def labelled_note(children: tuple[Node, ...]) -> tuple[Node, ...]:
    """Return what is in a quotation, with the mark of a note turned into its label in bold; others as they are."""
    first = children[0] if children else None
    if not isinstance(first, Element) or first.tag != "p":
        return children
    mark: list[TextRun] = []
    for node in first.children:
        if not isinstance(node, TextRun) or node.text == "\n":
            break
        mark.append(node)
    match = _LABEL.fullmatch("".join(run.text for run in mark))
    if match is None:
        return children
    label = Element("strong", (TextRun(match[1].capitalize(), mark[0].start, mark[-1].end),))
    rest = first.children[len(mark) + 1 :]
    return (Element("p", (label, Element("br"), *rest) if rest else (label,)), *children[1:])

"""A rendered text: elements of a closed list around stretches of text that know their places; no HTML anywhere.

The browser's script makes an element for each and sets texts; it knows the same list of tags and refuses others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from workbench.types.json import JsonObject, JsonValue
from workbench.types.results import Span


@dataclass(frozen=True, slots=True)
class TextRun:
    """A stretch of shown text and the characters of the document it stands for, from ``start`` to before ``end``.

    Where both are of one length, each character stands for its own; else the stretch can only be marked whole.
    """

    text: str
    start: int
    end: int

    @property
    def is_exact(self) -> bool:
        """Tell whether a part of the stretch can be told from the rest."""
        return len(self.text) == self.end - self.start


@dataclass(frozen=True, slots=True)
class Element:
    """An element: its tag, what is in it, and its attributes (``class``, ``title``, ``start``, ``align``, ``level``).

    ``span`` is set where the whole element stands for characters of the document, such as a formula.
    """

    tag: str
    children: tuple[Element | TextRun, ...] = ()
    attributes: Mapping[str, JsonValue] = field(default_factory=dict)
    span: Span | None = None


Node: TypeAlias = Element | TextRun


def drawn(
    nodes: Sequence[Node],
    pieces: Callable[[TextRun], Sequence[JsonValue]],
    whole: Callable[[Span], JsonValue] = lambda _: None,
) -> list[JsonValue]:
    """Return nodes as JSON: a text is what ``pieces`` makes of it, an element with a span has the mark of ``whole``."""
    out: list[JsonValue] = []
    for node in nodes:
        if isinstance(node, TextRun):
            out.extend(pieces(node))
            continue
        made: JsonObject = {"tag": node.tag, **node.attributes}
        if node.children:
            made["in"] = drawn(node.children, pieces, whole)
        if node.span is not None and (mark := whole(node.span)) is not None:
            made["mark"] = mark
        out.append(made)
    return out


def shown_text(nodes: Sequence[Node]) -> str:
    """Return the words of nodes, without their elements."""
    return "".join(node.text if isinstance(node, TextRun) else shown_text(node.children) for node in nodes)

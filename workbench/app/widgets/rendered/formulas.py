"""Formulas as MathML, which browsers draw themselves; a formula that cannot be converted stands as it was written."""

from __future__ import annotations

from functools import lru_cache
from html import unescape
from typing import TYPE_CHECKING

from workbench.app.widgets.rendered.elements import Element, Node, TextRun
from workbench.types.results import Span

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element as XmlElement

LONGEST = 2_000  # characters: the converter takes a formula apart by recursion
# fmt: off
TAGS = frozenset((
    "mrow", "mi", "mn", "mo", "ms", "mtext", "mspace", "mfrac", "msqrt", "mroot", "msub", "msup", "msubsup", "munder",
    "mover", "munderover", "mtable", "mtr", "mtd", "mstyle", "mpadded", "mphantom", "menclose", "mmultiscripts",
    "mprescripts", "none",
))
_ATTRIBUTES = frozenset((
    "stretchy", "fence", "form", "largeop", "movablelimits", "linethickness", "columnalign", "width",
))
# fmt: on
_ENVIRONMENTS = {"aligned": "split"}  # those that the converter does not know, as ones it does
_PLAIN_VALUE = frozenset("0123456789abcdefghijklmnopqrstuvwxyz.- ")


def formula(written: str, span: Span, *, is_block: bool) -> Element:
    """Return a formula of TeX, marked as a whole."""
    math = _math(written.strip(), is_block)
    kind = "formula block" if is_block else "formula"
    if math is None:
        return Element("code", (TextRun(written.strip(), *span),), {"class": kind, "dir": "ltr"})
    return Element("span", (math,), {"class": kind, "title": written.strip(), "dir": "ltr"}, span)


@lru_cache(maxsize=512)
def _math(written: str, is_block: bool) -> Element | None:
    """Return the MathML of TeX; None where the converter fails or leaves a command or a column of TeX as a word."""
    if len(written) > LONGEST or not written:
        return None
    from latex2mathml.converter import convert_to_element

    for name, known in _ENVIRONMENTS.items():
        written = written.replace(f"{{{name}}}", f"{{{known}}}")
    try:
        root = convert_to_element(written, display="block" if is_block else "inline")
        children = tuple(_element(child) for child in root)
    except Exception:  # noqa: BLE001 - a parser of foreign text fails in any way it likes
        return None
    if any("\\" in text or text == "&" for child in root.iter() for text in (child.text or "",)):
        return None
    return Element("math", children, {"display": "block" if is_block else "inline"})


def _element(xml: XmlElement) -> Element:
    """Return a part of a formula; of its attributes only those that load and style nothing."""
    if xml.tag not in TAGS:
        raise ValueError(f"'{xml.tag}' is no part of a formula.")
    words: tuple[Node, ...] = (TextRun(unescape(xml.text), 0, 0),) if xml.text else ()
    attributes = {
        name: value for name, value in xml.attrib.items() if name in _ATTRIBUTES and set(value) <= _PLAIN_VALUE
    }
    return Element(xml.tag, (*words, *(_element(child) for child in xml)), attributes)

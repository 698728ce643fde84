"""The words that OCR read on a page, each with its place in the text and on the page's picture."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class WordPlace:
    """A word's characters ``start`` to ``end`` of a text, and its box in shares (0..1) of the page from its top left.

    ``confidence`` is the recogniser's own, 0..1. A word that a line's end divides has one place a line.
    """

    start: int
    end: int
    left: float
    top: float
    right: float
    bottom: float
    confidence: float

    def moved(self, by: int) -> WordPlace:
        """Return the place in a text that has ``by`` more characters before it."""
        return replace(self, start=self.start + by, end=self.end + by)


@dataclass(frozen=True, slots=True)
class ScannedPage:
    """A page that OCR read: its number (from 1), the mean confidence of its words (0..1) and their places.

    Of a page that has text of its own these are the words in its pictures alone.
    """

    number: int
    confidence: float
    words: tuple[WordPlace, ...]

    def moved(self, by: int) -> ScannedPage:
        """Return the page as part of a text that has ``by`` more characters before it."""
        return replace(self, words=tuple(word.moved(by) for word in self.words))

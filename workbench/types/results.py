"""Results of a search and of a comparison."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from typing import TYPE_CHECKING, TypeAlias, TypeVar, overload

from workbench.errors import InvalidInput
from workbench.types.json import JsonValue, Value, as_items
from workbench.types.parameter import VECTOR
from workbench.types.scope import ResolvedScope

if TYPE_CHECKING:
    import altair
    import pandas
    from IPython.lib.pretty import RepresentationPrinter
    from PIL.Image import Image

# --- A name that a question says, and that tells documents apart ---


@dataclass(frozen=True, slots=True)
class Name(Value):
    """A name of documents in a question; the documents that have it are preferred.

    ``kind`` is "title", "name" (a part of a file's name or title), "year", "quarter", "type", "source", or the key of a
    document's metadata. ``documents`` is how many have it.
    """

    text: str
    kind: str
    documents: int = 1


def preference(names: Iterable[Name]) -> str:
    """Return a sentence on what is preferred, such as "Preferring: 3M · 2018."; "" without a name."""
    texts = " · ".join(name.text for name in names)
    return f"Preferring: {texts}." if texts else ""


@dataclass(frozen=True, slots=True)
class Leg(Value):
    """The verdict of one way of matching about a passage.

    ``score`` is in the leg's own unit (cosine, BM25, MaxSim); ``contribution`` is what it adds to the final score;
    ``rank`` counts from 1 and is None where the leg did not find the passage by itself.
    """

    score: float
    rank: int | None = None
    contribution: float = 0.0


@dataclass(frozen=True, slots=True)
class Passage(Value):
    """A piece of a document that was found, with why: ``sum(leg.contribution) == score`` for fused strategies.

    ``draw_page`` is the workbench's way to the pictures of pages; a hit that was copied to another process has none.
    """

    rank: int
    score: float
    passage_id: str
    document_id: str
    document_title: str
    source_id: str
    path: str | None
    url: str | None
    text: str
    start: int
    end: int
    match_type: str
    attribution: Mapping[str, Leg]
    metadata: Mapping[str, JsonValue] = field(default_factory=dict)
    draw_page: Callable[[Passage], Image] | None = field(default=None, compare=False, repr=False)

    def __reduce__(self) -> tuple[type[Passage], tuple[object, ...]]:
        return Passage, tuple(getattr(self, item.name) for item in fields(self) if item.repr)

    def page_image(self) -> Image:
        """Return the picture of the page that it begins on, with its lines marked; a notebook shows it as it is.

        Raises:
            NotFound: its document has no pages that can be seen. UnreadableDocument: the page cannot be drawn.
            InvalidInput: it came without a workbench.
        """
        if self.draw_page is None:
            raise InvalidInput("This hit came without its workbench; ask wb.pages.of_passage(hit) for its page.")
        return self.draw_page(self)

    @property
    def headings(self) -> tuple[str, ...]:
        """The headings it stands under, the document's own first; empty where it has none."""
        return tuple(str(heading) for heading in as_items(self.metadata.get("heading_path")))

    @property
    def page(self) -> str:
        """The page it begins on, counted from 1, with the number that the page bears where that differs: "12 (xii)"."""
        page, label = self.metadata.get("page"), self.metadata.get("page_label")
        return f"{page} ({label})" if page and label else str(page or "")

    @property
    def similarity(self) -> float:
        """Cosine between query and passage, 0..1, whichever strategy found it."""
        leg = self.attribution.get(VECTOR)
        return leg.score if leg else 0.0


@dataclass(frozen=True, slots=True)
class Evidence(Value):
    """Evidence that something close to the question was found; ``reason`` is a sentence where nothing was, else ""."""

    close: bool = True
    reason: str = ""


CLOSE = Evidence()
MOST_RANKED = 200  # passages of one question
_T = TypeVar("_T")


class Found(Sequence[_T]):
    """A sequence of what was found for a question, best first.

    ``evidence`` says whether anything of it is close to the question at all.
    """

    __slots__ = ()
    results: tuple[_T, ...]
    evidence: Evidence

    def __len__(self) -> int:
        return len(self.results)

    @overload
    def __getitem__(self, item: int) -> _T: ...
    @overload
    def __getitem__(self, item: slice) -> tuple[_T, ...]: ...
    def __getitem__(self, item: int | slice) -> _T | tuple[_T, ...]:
        return self.results[item]

    def __iter__(self) -> Iterator[_T]:
        return iter(self.results)

    @property
    def nothing_close(self) -> str:
        """The sentence that says why nothing of what was found is close; "" where something is, or nothing is there."""
        return far_sentence(self.results, self.evidence)


@dataclass(frozen=True, slots=True)
class Findings(Found[_T], Value):
    """The things of one kind that were found for a question, as a sequence; ``degraded`` says what could not serve."""

    results: tuple[_T, ...] = ()
    evidence: Evidence = CLOSE
    degraded: tuple[str, ...] = ()


def far_sentence(results: Sequence[object], evidence: Evidence) -> str:
    """Return why nothing of the results is close to the question; "" where something is, or there are none."""
    return "" if evidence.close or not results else evidence.reason


@dataclass(frozen=True, slots=True)
class SearchResult(Found["Passage"], Value):
    """The passages that one strategy found for one query, best first; behaves as a sequence of them.

    ``corrections`` are words of the query that the index does not know, with the known words tried for each, as the
    passages write them.
    ``evidence`` says whether anything that was found is close to the question at all. ``preferring`` are the names in
    the query whose documents were preferred.
    """

    query: str
    strategy: str
    scope: ResolvedScope
    under_filled: bool
    degraded: tuple[str, ...]
    timings_ms: Mapping[str, float]
    results: tuple[Passage, ...]
    index: str = ""  # pyright: ignore[reportIncompatibleMethodOverride] - the index searched; a place is nobody's wish
    corrections: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    evidence: Evidence = CLOSE
    preferring: tuple[Name, ...] = ()

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes for a person, a sentence each: what is preferred, nothing is close, the scope is odd, a part failed."""
        return (*_preferred(self.preferring), *self.remarks)

    @property
    def remarks(self) -> tuple[str, ...]:
        """The notes but for what is preferred."""
        return (*filter(None, [self.nothing_close]), *self.scope.notes, *self.degraded, *self._limit_reached())

    def _limit_reached(self) -> list[str]:
        if len(self.results) < MOST_RANKED:
            return []
        return [
            f"A search ranks at most {MOST_RANKED} passages; to see others, narrow the scope or ask a more specific "
            "question."
        ]

    def to_pandas(self) -> pandas.DataFrame:
        """Return a DataFrame, one row a passage: rank, score, title, heading, text and each leg's score."""
        from workbench.display import result_frame

        return result_frame(self)

    def _repr_html_(self) -> str:
        from workbench.display import result_html

        return result_html(self)

    def _repr_pretty_(self, printer: RepresentationPrinter, cycle: bool) -> None:
        from workbench.display import result_text

        printer.text(result_text(self))


@dataclass(frozen=True, slots=True)
class Comparison(Value):
    """The same query answered by several strategies, and how far they agree (each pair: 0..1)."""

    query: str
    strategies: Mapping[str, SearchResult]
    agreement: Mapping[str, Mapping[str, float]]

    @property
    def preferring(self) -> tuple[Name, ...]:
        """The names in the query whose documents any of the strategies preferred."""
        return tuple(dict.fromkeys(name for result in self.strategies.values() for name in result.preferring))

    @property
    def notes(self) -> tuple[str, ...]:
        """The notes of all results, each once; those of one strategy alone begin with its name."""
        notes = [(name, note) for name, result in self.strategies.items() for note in result.remarks]
        texts = [note for _, note in notes]
        return tuple(
            dict.fromkeys(
                (
                    *_preferred(self.preferring),
                    *(note if texts.count(note) == len(self.strategies) else f"{name}: {note}" for name, note in notes),
                )
            )
        )

    def to_pandas(self) -> pandas.DataFrame:
        """Return a DataFrame, one row a passage, one rank column a strategy."""
        from workbench.display import comparison_frame

        return comparison_frame(self)

    def plot(self) -> altair.LayerChart | altair.FacetChart:
        """Return an Altair bump chart that joins the same passage across the strategies."""
        from workbench.display import bump_chart

        return bump_chart(self)

    def _repr_html_(self) -> str:
        from workbench.display import comparison_html

        return comparison_html(self)

    def _repr_pretty_(self, printer: RepresentationPrinter, cycle: bool) -> None:
        from workbench.display import comparison_text

        printer.text(comparison_text(self))


def _preferred(names: Iterable[Name]) -> tuple[str, ...]:
    sentence = preference(names)
    return (sentence,) if sentence else ()


# --- The words that OCR read on a page, each with its place in the text and on the page's picture ---


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


# --- Spans: stretches of a text, counted in characters, from ``start`` to before ``end`` ---

Span: TypeAlias = tuple[int, int]  # start, end
PageSpan: TypeAlias = tuple[int, int, int]  # page from 1, start, end: the characters that stand on it
DocumentSpan: TypeAlias = tuple[str, int, int]  # document, start, end: a stretch of its text


# --- The steps of a search whose time is kept, declared once and in the order in which they happen ---

TOTAL = "total"  # beside the steps in ``timings_ms``: the whole search; the steps need not add up to it


class TimedStep(StrEnum):
    """A step that ``Trace.stage`` times; its value is the key in ``timings_ms``."""

    LLM = "llm"
    EMBED = "embed"
    VECTOR = "vector"
    SPELLING = "spelling"
    KEYWORD = "keyword"
    FRAMEWORK = "framework"
    FUSE = "fuse"
    WIDEN = "widen"
    RERANK = "rerank"
    CLUSTER = "cluster"
    LEARNED = "learned"
    CROSS_ENCODER = "cross-encoder"
    MMR = "mmr"
    FETCH = "fetch"
    EVIDENCE = "evidence"
    EXTRACT = "extract"

"""Results of a search and of a comparison."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from typing import TYPE_CHECKING, TypeAlias, TypeVar, overload

from workbench.errors import InvalidInput
from workbench.types.json import JsonObject, JsonValue, Value, as_items
from workbench.types.parameter import VECTOR
from workbench.types.scope import ResolvedScope

if TYPE_CHECKING:
    import altair
    import pandas
    from IPython.lib.pretty import RepresentationPrinter
    from PIL.Image import Image

# Document names in a question


@dataclass(frozen=True, slots=True)
class DocumentName(Value):
    """A name in a question that identifies documents; they are preferred."""

    text: str
    kind: str  # "title", "name" (part of a title or file name with a period), "year" or "quarter"
    documents: int = 1  # that have the name


def preference_text(names: Iterable[DocumentName]) -> str:
    """Return a sentence on the preferred documents, such as "Preferring: 3M · 2018."; "" without names."""
    texts = " · ".join(name.text for name in names)
    return f"Preferring: {texts}." if texts else ""


@dataclass(frozen=True, slots=True)
class Leg(Value):
    """The score that one way of matching gives a passage."""

    score: float  # in the leg's own unit (cosine, BM25, MaxSim)
    rank: int | None = None  # from 1; None if the leg did not retrieve the passage itself
    contribution: float = 0.0  # to the final score


@dataclass(frozen=True, slots=True)
class Copy(Value):
    """A passage with nearly the same text as a better one, under which it is folded."""

    passage_id: str
    document_id: str
    document_title: str
    source_id: str
    path: str | None
    url: str | None
    start: int
    end: int


def count_copies(copies: Sequence[Copy]) -> str:
    """Return "1 copy" or "2 copies"."""
    return "1 copy" if len(copies) == 1 else f"{len(copies):,} copies"


MAX_COPIES_NAMED = 3  # documents named with the number of copies


def copies_json(copies: Sequence[Copy]) -> JsonObject:
    """Return the number of copies folded under a result and the ids of their first documents; {} without copies."""
    documents = list(dict.fromkeys(copy.document_id for copy in copies))
    return {"copies": len(copies), "copies_in": documents[:MAX_COPIES_NAMED]} if copies else {}


def copies_text(copies: Sequence[Copy], titles: int = 5) -> str:
    """Return a line on the copies of a passage, such as "2 copies: A · B"; "" without copies.

    Args:
        copies: The copies.
        titles: Number of different document titles to name; the others are counted.
    """
    if not copies:
        return ""
    names = list(dict.fromkeys(copy.document_title for copy in copies))
    more = [f"{len(names) - titles:,} more"] if len(names) > titles else []
    return f"{count_copies(copies)}: {' · '.join([*names[:titles], *more])}"


@dataclass(frozen=True, slots=True)
class Passage(Value):
    """A passage that was found, with its attribution: ``sum(leg.contribution) == score`` for fused strategies."""

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
    copies: tuple[Copy, ...] = ()  # passages with nearly the same text, which are not among the results
    # Renders a page of the document; None for a hit that was copied to another process.
    draw_page: Callable[[Passage], Image] | None = field(default=None, compare=False, repr=False)

    def __reduce__(self) -> tuple[type[Passage], tuple[object, ...]]:
        return Passage, tuple(getattr(self, item.name) for item in fields(self) if item.repr)

    def page_image(self) -> Image:
        """Return the image of the page where the passage starts, with its lines marked; notebooks display it.

        Raises:
            NotFound: The document has no page images.
            UnreadableDocument: Rendering the page failed.
            InvalidInput: The hit came without a workbench.
        """
        if self.draw_page is None:
            raise InvalidInput("This hit is not connected to a workbench; call wb.pages.of_passage(hit) for its page.")
        return self.draw_page(self)

    @property
    def headings(self) -> tuple[str, ...]:
        """The heading path, the document's own heading first; empty if there is none."""
        return tuple(str(heading) for heading in as_items(self.metadata.get("heading_path")))

    @property
    def page(self) -> str:
        """The page where it starts, counted from 1, with the printed page number if that differs: "12 (xii)"."""
        page, label = self.metadata.get("page"), self.metadata.get("page_label")
        return f"{page} ({label})" if page and label else str(page or "")

    @property
    def similarity(self) -> float:
        """Cosine between query and passage, 0..1, whichever strategy found it."""
        leg = self.attribution.get(VECTOR)
        return leg.score if leg else 0.0


@dataclass(frozen=True, slots=True)
class Evidence(Value):
    """Evidence that a search found something close to the question."""

    close: bool = True
    reason: str = ""  # sentence on why nothing is close


CLOSE_EVIDENCE = Evidence()
MAX_RANKED_PASSAGES = 200  # passages per question
_T = TypeVar("_T")


class ResultSequence(Sequence[_T]):
    """A sequence of results for a question, best first; ``evidence`` is whether any of them is close to it."""

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
        """The sentence on why no result is close; "" if one is, or if there are no results."""
        return weak_match_text(self.results, self.evidence)


@dataclass(frozen=True, slots=True)
class Results(ResultSequence[_T], Value):
    """Results of one kind for a question, as a sequence."""

    results: tuple[_T, ...] = ()
    evidence: Evidence = CLOSE_EVIDENCE
    degraded: tuple[str, ...] = ()  # sentences on what could not be searched


def weak_match_text(results: Sequence[object], evidence: Evidence) -> str:
    """Return the sentence on why no result is close to the question; "" if one is, or if there are none."""
    return "" if evidence.close or not results else evidence.reason


@dataclass(frozen=True, slots=True)
class SearchResult(ResultSequence["Passage"], Value):
    """The passages that one strategy found for one query, best first; behaves as a sequence of them."""

    query: str
    strategy: str
    scope: ResolvedScope
    under_filled: bool  # whether there are fewer passages than requested
    degraded: tuple[str, ...]  # sentences on parts that failed
    timings_ms: Mapping[str, float]  # by ``TimedStep`` and ``TOTAL``
    results: tuple[Passage, ...]
    index: str = ""  # pyright: ignore[reportIncompatibleMethodOverride] - the index searched, not Sequence.index
    corrections: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # unknown word -> words tried instead
    evidence: Evidence = CLOSE_EVIDENCE
    preferring: tuple[DocumentName, ...] = ()  # names in the query whose documents were preferred

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences on preferred documents, weak matches, the scope, and parts that failed."""
        return (*_preferred(self.preferring), *self.remarks)

    @property
    def remarks(self) -> tuple[str, ...]:
        """The notes except on preferred documents."""
        return (*filter(None, [self.nothing_close]), *self.scope.notes, *self.degraded, *self._limit_reached())

    def _limit_reached(self) -> list[str]:
        if len(self.results) < MAX_RANKED_PASSAGES:
            return []
        return [
            f"A search ranks at most {MAX_RANKED_PASSAGES} passages; narrow the scope or ask a more specific question."
        ]

    def to_pandas(self) -> pandas.DataFrame:
        """Return a DataFrame, one row per passage: rank, score, title, heading, text and the score of each leg."""
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
    """Results of several strategies for one query."""

    query: str
    strategies: Mapping[str, SearchResult]
    agreement: Mapping[str, Mapping[str, float]]  # measure -> pair of strategies -> 0..1

    @property
    def preferring(self) -> tuple[DocumentName, ...]:
        """The names in the query whose documents any of the strategies preferred."""
        return tuple(dict.fromkeys(name for result in self.strategies.values() for name in result.preferring))

    @property
    def notes(self) -> tuple[str, ...]:
        """The notes of all results without repetition; a note on one strategy only is prefixed with its name."""
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
        """Return a DataFrame with one row per passage and one rank column per strategy."""
        from workbench.display import comparison_frame

        return comparison_frame(self)

    def plot(self) -> altair.LayerChart | altair.FacetChart:
        """Return an Altair bump chart that connects the ranks of each passage across the strategies."""
        from workbench.display import bump_chart

        return bump_chart(self)

    def _repr_html_(self) -> str:
        from workbench.display import comparison_html

        return comparison_html(self)

    def _repr_pretty_(self, printer: RepresentationPrinter, cycle: bool) -> None:
        from workbench.display import comparison_text

        printer.text(comparison_text(self))


def _preferred(names: Iterable[DocumentName]) -> tuple[str, ...]:
    sentence = preference_text(names)
    return (sentence,) if sentence else ()


# Words that OCR read on a page


@dataclass(frozen=True, slots=True)
class WordPlace:
    """A word in a text and on the page's image.

    A word that is divided at the end of a line has one place per line.
    """

    start: int  # characters of the text
    end: int
    left: float  # box in shares (0..1) of the page, from its top left
    top: float
    right: float
    bottom: float
    confidence: float  # of the OCR engine, 0..1

    def shift(self, by: int) -> WordPlace:
        """Return the place shifted by a number of characters."""
        return replace(self, start=self.start + by, end=self.end + by)


@dataclass(frozen=True, slots=True)
class ScannedPage:
    """A page that OCR read; if the page has text of its own, only the words in its images."""

    number: int  # from 1
    confidence: float  # mean of the words, 0..1
    words: tuple[WordPlace, ...]

    def shift(self, by: int) -> ScannedPage:
        """Return the page with its words shifted by a number of characters."""
        return replace(self, words=tuple(word.shift(by) for word in self.words))


# Spans in characters; the end is exclusive

Span: TypeAlias = tuple[int, int]  # start, end
PageSpan: TypeAlias = tuple[int, int, int]  # page from 1, start, end
DocumentSpan: TypeAlias = tuple[str, int, int]  # document, start, end


# Timed steps of a search, in their order

TOTAL = "total"  # key of the whole search in ``timings_ms``; the steps need not add up to it


class TimedStep(StrEnum):
    """A timed step; its value is the key in ``timings_ms``."""

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

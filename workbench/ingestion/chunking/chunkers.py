"""The chunkers by name, with their parameters described, and the one function that runs them."""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from typing import cast

import numpy as np

from workbench.errors import InvalidInput, choices
from workbench.ingestion.chunking.blocks import Atom, atoms_of, fitting
from workbench.ingestion.chunking.finish import Spans, finished, pack, pack_full
from workbench.ingestion.chunking.spans import ChunkInput, CutPassage, Piece, Ruler, Tokenize
from workbench.ingestion.chunking.structure import Section, headed, merged, pieces_of, sections_of, structure
from workbench.ingestion.chunking.task import CuttingTask, Embed
from workbench.text import sentence_spans
from workbench.types import Parameter, ParameterValue, read_parameters

# --- The chunker of source code: functions and classes stay whole where they fit ---


def code(task: CuttingTask) -> list[Piece]:
    """Keep a class whole while it fits, else its methods; small neighbours join. All but code goes to structure."""
    if task.document.document_type != "code":
        return structure(task)
    sections = whole_definitions(sections_of(task.blocks), task.ruler, task.size)
    sections = merged(sections, task.ruler, task.size, int(task.options["small"]))
    return [piece for section in sections for piece in pieces_of(section, task, task.size)]


def whole_definitions(sections: list[Section], ruler: Ruler, size: int) -> list[Section]:
    """Join each definition with all that is defined inside it, outermost first, where these fit ``size`` tokens."""
    whole: list[Section] = []
    index = 0
    while index < len(sections):
        section = sections[index]
        after = index + 1
        while after < len(sections) and section.path and sections[after].path[: len(section.path)] == section.path:
            after += 1
        if ruler.count(section.start, sections[after - 1].end) > size:
            after = index + 1
        blocks = tuple(block for inner in sections[index:after] for block in inner.blocks)
        whole.append(Section(blocks, section.path))
        index = after
    return whole


# --- Windows of a fixed number of tokens, blind to what they cut through ---


def fixed(task: CuttingTask) -> list[Piece]:
    """Slide a window over the tokens; each begins ``overlap`` tokens before the end of the one before.

    A window that is only headings, such as the last one, joins its neighbour; where both are more than a window they
    are parted evenly.
    """
    overlap = min(int(task.options["overlap"]), task.size - 1)
    end = len(task.text)
    pieces: list[Piece] = []
    start = 0
    while start < end:
        stop = task.ruler.reach(start, task.size, end)
        pieces.append(Piece(start, stop))
        if stop >= end:
            break
        start = _back(task.ruler, start, stop, overlap)
        if task.ruler.reach(start, task.size, end) <= stop:
            start = stop  # the repeated tokens leave no room for the long word after them
    return headed(task, pieces, task.size, parts=not overlap)


def _back(ruler: Ruler, start: int, stop: int, overlap: int) -> int:
    """Return where the next window begins: ``overlap`` tokens before ``stop``, at a word's start, after ``start``."""
    if overlap == 0:
        return stop
    after = bisect_left(ruler.starts, stop)
    for position in ruler.starts[max(0, after - overlap) : after]:
        if position > start and not ruler.inside_word(position):
            return position
    return stop


# --- Recursive character splitting, measured in tokens: the baseline most people know ---

SEPARATORS = ("\n\n", "\n", ".", "?", "!", " ", "")
Bounds = tuple[int, int]


def recursive(task: CuttingTask) -> list[Piece]:
    """Split at the coarsest separator that occurs, again at finer ones what is too long, and merge up to the size.

    Follows LangChain's RecursiveCharacterTextSplitter with ``keep_separator=True``: a separator begins the piece after
    it. At the last separator, "", it parts tokens where the original parts characters. A piece that is only headings
    joins the next one, or takes half of it where both are over the size; the original leaves it alone.
    """
    overlap = min(int(task.options["overlap"]), task.size - 1)
    bounds = _cut(task.ruler, (0, len(task.text)), SEPARATORS, task.size, overlap)
    return headed(task, [Piece(*piece) for piece in bounds], task.size, parts=not overlap)


def _cut(ruler: Ruler, bounds: Bounds, separators: Sequence[str], size: int, overlap: int) -> Iterator[Bounds]:
    """Yield pieces of a stretch, each at most ``size`` tokens."""
    text = ruler.text
    index = next(i for i, separator in enumerate(separators) if text.find(separator, *bounds) >= 0)
    finer = separators[index + 1 :]

    def fits(split: Bounds) -> bool:
        return ruler.count(*split) < size or not finer

    for merge, splits in groupby(_splits(ruler, bounds, separators[index]), key=fits):
        if merge:
            yield from _merged(ruler, splits, size, overlap)
            continue
        for split in splits:
            yield from _cut(ruler, split, finer, size, overlap)


def _splits(ruler: Ruler, bounds: Bounds, separator: str) -> Iterator[Bounds]:
    """Return consecutive stretches, each but the first beginning with the separator."""
    return pairwise(_edges(ruler, *bounds, separator))


def _edges(ruler: Ruler, start: int, end: int, separator: str) -> Iterator[int]:
    yield start
    if separator:
        place = ruler.text.find(separator, start, end)
        while place >= 0:
            if place > start:
                yield place
            place = ruler.text.find(separator, place + len(separator), end)
    else:
        yield from (cut for cut in ruler.boundaries(start, end) if cut > start)
    yield end


def _merged(ruler: Ruler, splits: Iterable[Bounds], size: int, overlap: int) -> Iterator[Bounds]:
    """Yield runs of neighbouring splits of at most ``size`` tokens, each run starting up to ``overlap`` back."""
    window: deque[Bounds] = deque()
    for split in splits:
        if window and ruler.count(window[0][0], split[1]) > size:
            yield window[0][0], window[-1][1]
            while window and (
                ruler.count(window[0][0], window[-1][1]) > overlap or ruler.count(window[0][0], split[1]) > size
            ):
                window.popleft()
        window.append(split)
    if window:
        yield window[0][0], window[-1][1]


# --- Chunkers that go by whole sections: one passage each, and small passages that know their section ---


def heading(task: CuttingTask) -> list[Piece]:
    """Make a passage of each section; a heading without text of its own stays with the section below it."""
    sections = merged(sections_of(task.blocks), task.ruler, task.size, small=0)
    return headed(task, [piece for section in sections for piece in pieces_of(section, task, task.size)])


def hierarchical(task: CuttingTask) -> list[Piece]:
    """Cut small passages inside larger ones; ``parent`` is the larger one, returned when enough of it is found.

    A parent is a section of at most ``parent`` tokens (small neighbours joined, long ones parted evenly).
    """
    limit = max(task.size, int(task.options["parent"]))
    sections = merged(sections_of(task.blocks), task.ruler, limit, small=limit // 4)
    return headed(task, [piece for section in sections for piece in _children(section, task, limit)])


def _children(section: Section, task: CuttingTask, limit: int) -> list[Piece]:
    atoms = atoms_of(section.blocks, task.ruler, task.size, whole=task.room)
    starts = [atom.start for atom in atoms]
    children: list[Piece] = []
    for parent in pack(atoms, task.ruler, limit):
        inside = atoms[bisect_left(starts, parent.start) : bisect_left(starts, parent.end)]
        children += (replace(child, parent=(parent.start, parent.end)) for child in pack(inside, task.ruler, task.size))
    return children


# --- The chunker that breaks where neighbouring sentences' embeddings part ---

SLICE = 512  # atoms whose vectors are in memory at once
BUFFER = 1  # sentences on either side that are embedded with each, to steady the comparison


def semantic(task: CuttingTask) -> list[Piece]:
    """Cut where the cosine distance between neighbours is in the top ``100 - percentile`` percent of the document.

    After Greg Kamradt's percentile breakpoints. Groups over ``size`` are parted evenly; groups under ``small`` tokens
    join the next one, and headings what follows them.
    """
    atoms = atoms_of(task.blocks, task.ruler, task.size, whole=task.room)
    if len(atoms) < 3:
        return headed(task, pack(atoms, task.ruler, task.size))
    far = np.concatenate([distances(vectors) for vectors in _embedded(task, atoms)])
    breaks = far > np.percentile(far, float(task.options["percentile"]))
    pieces: list[Piece] = []
    group: list[Atom] = [atoms[0]]
    for atom, parts in zip(atoms[1:], breaks, strict=True):
        if parts and task.ruler.count(group[0].start, group[-1].end) >= int(task.options["small"]):
            pieces.extend(pack(group, task.ruler, task.size))
            group = []
        group.append(atom)
    return headed(task, pieces + pack(group, task.ruler, task.size))


def distances(vectors: np.ndarray) -> np.ndarray:
    """Return 1 - cosine of each row and the next; a row of zeros is at distance 1 from anything."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit = vectors / np.where(lengths == 0, 1, lengths)
    return 1 - np.sum(unit[:-1] * unit[1:], axis=1)


def _embedded(task: CuttingTask, atoms: Sequence[Atom]) -> Iterator[np.ndarray]:
    """Yield the vectors of all atoms, a few hundred at a time; each array begins with the last row of the one before.

    So neighbours' distances need no more than that many vectors in memory at once.
    """
    if task.embed is None:
        raise InvalidInput("The chunker 'semantic' compares sentences: pass the option 'embed'.")
    last = len(atoms) - 1
    before: list[np.ndarray] = []
    for first in range(0, len(atoms), SLICE):
        places = range(first, min(first + SLICE, len(atoms)))
        texts = [task.text[atoms[max(0, at - BUFFER)].start : atoms[min(last, at + BUFFER)].end] for at in places]
        vectors = np.asarray(task.embed(texts), dtype=np.float64)
        yield np.concatenate([*before, vectors])
        before = [vectors[-1:]]


# --- Chunkers that go by sentences alone: packed, and each by itself with its neighbours noted ---


def sentence(task: CuttingTask) -> list[Piece]:
    """Fill passages with sentences one after the other, whatever headings lie between them; none is only headings."""
    spans = sentence_spans(task.text)
    atoms = [Atom(*part) for start, end in spans for part in fitting(task.ruler, start, end, task.size)]
    return headed(task, pack_full(atoms, task.ruler, task.size))


def window(task: CuttingTask) -> list[Piece]:
    """Make every sentence a passage, with headings before it; "window" in its metadata: ``neighbours`` on either side.

    The neighbours are of the same section. The window is for showing and answering, so the encoder's limit does not
    bind it.
    """
    pieces = [piece for section in sections_of(task.blocks) for piece in _windows(section, task)]
    return [_within_window(piece) for piece in headed(task, pieces)]


def _within_window(piece: Piece) -> Piece:
    first, last = piece.metadata["window"]
    return replace(piece, metadata={**piece.metadata, "window": (min(first, piece.start), max(last, piece.end))})


def _windows(section: Section, task: CuttingTask) -> list[Piece]:
    reach = int(task.options["neighbours"])
    atoms = atoms_of(section.blocks, task.ruler, task.size, whole=task.room)
    pieces: list[Piece] = []
    for index, atom in enumerate(atoms):
        first, last = atoms[max(0, index - reach)], atoms[min(len(atoms) - 1, index + reach)]
        pieces.append(Piece(atom.start, atom.end, metadata={**atom.metadata, "window": (first.start, last.end)}))
    return pieces


DEFAULT_CHUNKER = "structure"
DEFAULT_LIMIT = 254  # MiniLM's 256 without its two special tokens
LOWEST_LIMIT = 32


@dataclass(frozen=True, slots=True)
class Chunker:
    """One way of cutting; ``needs_embed`` when it asks for the option ``embed``."""

    name: str
    why: str
    function: Callable[[CuttingTask], list[Piece]]
    parameters: tuple[Parameter, ...]
    needs_embed: bool = False


def _whole(name: str, low: int, high: int, default: int, why: str) -> Parameter:
    return Parameter(name, "int", default, why, low, high)


SIZE = _whole("size", 16, 8192, 200, "Tokens a passage: small ones are precise, large ones complete.")
OVERLAP = _whole("overlap", 0, 1024, 0, "Tokens repeated from the passage before, for statements across a cut.")
SMALL = _whole("small", 0, 1024, 64, "Sections under this many tokens join their neighbours.")
SECTION = _whole(
    "size", 16, 8192, 8192, "Tokens a section may have before it is parted; the model's limit parts it too."
)
CHILD = _whole("size", 16, 8192, 100, "Tokens a passage; its section is returned.")
SENTENCE = _whole("size", 16, 8192, 200, "Tokens a sentence may have before it is parted.")
NEIGHBOURS = _whole("neighbours", 0, 10, 2, "Sentences on either side that are shown with the one found.")
PARENT = _whole("parent", 64, 8192, 600, "Tokens of the section that is returned for its passages.")
PERCENTILE = Parameter("percentile", "float", 90.0, "Breaks where the distance is above this percentile.", 50, 99.9)

CHUNKERS: dict[str, Chunker] = {
    chunker.name: chunker
    for chunker in (
        Chunker("structure", "Headings, paragraphs, tables and code, packed evenly.", structure, (SIZE, SMALL)),
        Chunker("recursive", "Coarse separators first, finer ones where needed.", recursive, (SIZE, OVERLAP)),
        Chunker("token", "Windows of a fixed number of tokens.", fixed, (SIZE, OVERLAP)),
        Chunker("sentence", "Whole sentences, filled up; headings are ignored.", sentence, (SIZE,)),
        Chunker("window", "Single sentences, shown with their neighbours.", window, (SENTENCE, NEIGHBOURS)),
        Chunker("heading", "One passage a section.", heading, (SECTION,)),
        Chunker("hierarchical", "Small passages that lead to their section.", hierarchical, (CHILD, PARENT)),
        Chunker("semantic", "Breaks where the meaning turns.", semantic, (SIZE, SMALL, PERCENTILE), needs_embed=True),
        Chunker("code", "Functions and classes kept whole.", code, (SIZE, SMALL)),
    )
}


def chunk(
    name: str, document: ChunkInput, tokens: Tokenize, options: Mapping[str, object] | None = None
) -> list[CutPassage]:
    """Cut a document as ``spans_of`` does; every span is made at once."""
    return list(spans_of(name, document, tokens, options))


def spans_of(name: str, document: ChunkInput, tokens: Tokenize, options: Mapping[str, object] | None = None) -> Spans:
    """Cut a document: every word is in a span, no span is without one, each with its header fits ``limit`` tokens.

    Other characters are in a span too, except those in a run that has no word and is too long for one. A span is made
    when it is asked for.

    ``options``: the chunker's own parameters; ``limit``, the encoder's max_tokens (default 254); for "semantic" also
    ``embed``, a callable from texts to an array of one row each.

    Raises:
        InvalidInput: no such chunker or option, or a value out of range.
    """
    chunker = CHUNKERS.get(name)
    if chunker is None:
        raise InvalidInput(f"There is no chunker '{name}'. Choose one of {choices(CHUNKERS)}.")
    given = dict(options or {})
    limit, embed = given.pop("limit", DEFAULT_LIMIT), cast("Embed | None", given.pop("embed", None))
    if not isinstance(limit, int) or limit < LOWEST_LIMIT:
        raise InvalidInput(f"The option 'limit' is {limit!r}; it must be a whole number of at least {LOWEST_LIMIT}.")
    if chunker.needs_embed and embed is None:
        raise InvalidInput(f"The chunker '{name}' compares sentences: pass the option 'embed'.")
    task = CuttingTask(document, tokens, limit, complete(chunker, given), embed)
    return finished(task, chunker.function(task) if document.text.strip() else [])


def complete(chunker: Chunker, given: Mapping[str, object]) -> dict[str, ParameterValue]:
    """Return all options of a chunker, defaults where none was given.

    Raises:
        InvalidInput: an unknown option, or a value out of range.
    """
    return read_parameters(f"The chunker {chunker.name!r}", chunker.parameters, given)

"""The table of chunkers with their parameters, and the function that runs them."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from math import ceil
from typing import cast

import numpy as np

from workbench.errors import InvalidInput, list_choices
from workbench.ingestion.chunking.blocks import Atom, Block, heading_text, split_atoms, split_to_fit
from workbench.ingestion.chunking.spans import (
    BlockKind,
    ChunkInput,
    CutPassage,
    LazySequence,
    Piece,
    TokenCounter,
    Tokenize,
    strip_span,
)
from workbench.ingestion.chunking.task import CuttingTask, Embed, is_caption_line, leads_to_table
from workbench.text import sentence_spans
from workbench.types import Parameter, ParameterValue, read_parameters

# --- Packing atoms into passages ---

WITHIN_COST = 0.15  # ending inside a block costs as much as missing the even length by 15%
LEAD_IN_COST = 1.0  # ending with a heading or a lead-in line


def pack_evenly(atoms: Sequence[Atom], ruler: TokenCounter, size: int) -> list[Piece]:
    """Return pieces of consecutive atoms, each of at most ``size`` tokens unless a single atom has more.

    Tokens are spread evenly (220 tokens at size 200 give two halves, not 200 and 20), preferably ending at block
    boundaries.
    """
    pieces: list[Piece] = []
    first = 0
    while first < len(atoms):
        last = _last_atom(atoms, ruler, first, size)
        pieces.append(Piece(atoms[first].start, atoms[last].end, metadata=atoms[first].metadata))
        first = last + 1
    return pieces


def pack_full(atoms: Sequence[Atom], ruler: TokenCounter, size: int) -> list[Piece]:
    """Return pieces filled with up to ``size`` tokens; the last one takes the rest."""
    pieces: list[Piece] = []
    first = 0
    while first < len(atoms):
        last = first
        while last + 1 < len(atoms) and ruler.count(atoms[first].start, atoms[last + 1].end) <= size:
            last += 1
        pieces.append(Piece(atoms[first].start, atoms[last].end, metadata=atoms[first].metadata))
        first = last + 1
    return pieces


def _last_atom(atoms: Sequence[Atom], ruler: TokenCounter, first: int, size: int) -> int:
    """Return the last atom of a piece: the one nearest to an even share of the rest, with a penalty inside blocks."""
    start = atoms[first].start
    remaining = ruler.count(start, atoms[-1].end)
    target = remaining / max(1, ceil(remaining / size))
    best, best_cost = first, float("inf")
    for index in range(first, len(atoms)):
        length = ruler.count(start, atoms[index].end)
        if index > first and length > size:
            break
        cost = abs(length - target) / max(1.0, target)
        cost += LEAD_IN_COST if atoms[index].clings else 0.0 if atoms[index].ends else WITHIN_COST
        if cost <= best_cost:
            best, best_cost = index, cost
    return best


# --- Joining pieces without words ---


def has_words(text: str, start: int, end: int) -> bool:
    """Return whether ``text[start:end]`` has a letter or digit."""
    return any(text[position].isalnum() for position in range(start, end))


def join_wordless(task: CuttingTask, pieces: Sequence[Piece]) -> list[Piece]:
    """Return stripped pieces that each have a letter or digit, unless none has.

    A piece without words joins a neighbour; if both are full, it takes the last word of the one before. If it is too
    long for that (a screen of dashes), it is left out of the passages.
    """
    worded = [has_words(task.text, piece.start, piece.end) for piece in pieces]
    if all(worded) or not any(worded):
        return list(pieces)
    joined: list[Piece] = []
    waiting: Piece | None = None  # a piece without words that the next one may take
    for piece, good in zip(pieces, worded, strict=True):
        if good:
            joined.append(_extend_piece(task, piece, waiting) or piece if waiting else piece)
            waiting = None
        elif joined and waiting is None and (longer := _extend_piece(task, joined[-1], piece)):
            joined[-1] = longer
        elif joined and waiting is None and (parted := _move_last_word(task, joined, piece)):
            joined[-1:] = parted
        else:
            waiting = (waiting and _extend_piece(task, piece, waiting)) or piece
    return joined


def _extend_piece(task: CuttingTask, piece: Piece, more: Piece) -> Piece | None:
    """Return a piece extended by a neighbour without words, or None if there is no room or the section ends there."""
    start, end = min(piece.start, more.start), max(piece.end, more.end)
    if piece.parent is not None and not (piece.parent[0] <= start and end <= piece.parent[1]):
        return None
    own = len(task.tokens(task.text[piece.start : piece.end]))
    if len(task.tokens(task.text[start:end])) > (task.size if own <= task.size else task.room):
        return None
    metadata = dict(piece.metadata)
    if "window" in metadata:
        first, last = metadata["window"]
        metadata["window"] = (min(first, start), max(last, end))
    return replace(piece, start=start, end=end, metadata=metadata)


def _move_last_word(task: CuttingTask, pieces: Sequence[Piece], piece: Piece) -> list[Piece] | None:
    """Return the last piece without its last word, and that word with ``piece``, or None if either does not fit."""
    before = pieces[-1]
    covered = pieces[-2].end if len(pieces) > 1 else before.start
    word = _last_word_start(task, before)
    start, end = strip_span(task.text, before.start, word)
    if end <= max(start, covered) or not has_words(task.text, start, end):
        return None
    longer = _extend_piece(task, replace(before, start=word), piece)
    return [replace(before, start=start, end=end), longer] if longer else None


def _last_word_start(task: CuttingTask, piece: Piece) -> int:
    position = piece.end - 1
    while position > piece.start and not task.text[position].isalnum():
        position -= 1
    while position > piece.start and task.ruler.inside_word(position):
        position -= 1
    return position


def finish_pieces(task: CuttingTask, pieces: Iterable[Piece]) -> Spans:
    """Return the spans of pieces that have words, in order."""
    return Spans(
        task, _drop_nested(join_wordless(task, [piece for rough in pieces for piece in _fit_piece(task, rough)]))
    )


def _drop_nested(pieces: Iterable[Piece]) -> list[Piece]:
    """Return the pieces that are not contained in a neighbour, as half of an overlapping piece can be."""
    apart: list[Piece] = []
    for piece in pieces:
        if apart and piece.end <= apart[-1].end:
            continue
        while apart and piece.start <= apart[-1].start:
            apart.pop()
        apart.append(piece)
    return apart


def _fit_piece(task: CuttingTask, piece: Piece) -> Iterator[Piece]:
    """Yield the stripped piece, or its halves if words cut at its ends pushed it over the limit."""
    start, end = strip_span(task.text, piece.start, piece.end)
    if start == end:
        return
    halves_word = task.ruler.inside_word(start) or task.ruler.inside_word(end)
    if halves_word and end - start > 1 and len(task.tokens(task.text[start:end])) > task.room:
        middle = (start + end) // 2
        yield from _fit_piece(task, replace(piece, start=start, end=middle))
        yield from _fit_piece(task, replace(piece, start=middle, end=end))
        return
    yield replace(piece, start=start, end=end)


class Spans(LazySequence[CutPassage]):
    """The spans of one document, of which only the positions of the cuts are in memory."""

    def __init__(self, task: CuttingTask, pieces: Sequence[Piece]) -> None:
        """Args:
        task: The task.
        pieces: Stripped pieces.
        """
        self.task = task
        self._pieces = pieces
        self._block_starts = array("I", (block.start for block in task.blocks)) if pieces else array("I")

    def __len__(self) -> int:
        return len(self._pieces)

    def _make_item(self, place: int) -> CutPassage:
        piece = self._pieces[place]
        blocks = self._blocks(piece.start, piece.end)
        path = _common_path(blocks)
        table = self._table(blocks, piece)
        return CutPassage(
            piece.start,
            piece.end,
            path,
            _common_kind(blocks),
            self._page(piece.start),
            piece.parent,
            self.task.header(path[:-1] if self._shows(blocks, piece, path) else path, table),
            piece.metadata,
        )

    def _blocks(self, start: int, end: int) -> list[Block]:
        first = max(0, bisect_right(self._block_starts, start) - 1)
        last = bisect_right(self._block_starts, end - 1)
        blocks = self.task.blocks[first:last]
        telling = [block for block in blocks if has_words(self.task.text, block.start, block.end)]
        return telling or blocks  # a rule before a heading leaves the passage in the heading's section

    def _table(self, blocks: list[Block], piece: Piece) -> str:
        """Return the name of the table that a passage continues, or ""."""
        if blocks and blocks[0].kind == "table" and piece.start >= blocks[0].start:
            return self.task.captions[blocks[0].start]
        return ""

    def _page(self, position: int) -> int | None:
        page = self.task.page_index(position)
        return None if page is None else self.task.document.pages[page][0]

    def _shows(self, blocks: list[Block], piece: Piece, path: tuple[str, ...]) -> bool:
        """Return whether the passage starts with the last heading of its path, so the header can omit it."""
        if not blocks or not path or piece.start > blocks[0].start:
            return False
        own = self.task.text[blocks[0].start : blocks[0].end]
        return blocks[0].kind == "heading" and heading_text(own) == path[-1]


def _common_path(blocks: list[Block]) -> tuple[str, ...]:
    path = blocks[0].path if blocks else ()
    for block in blocks[1:]:
        while block.path[: len(path)] != path:
            path = path[:-1]
    return path


def _common_kind(blocks: list[Block]) -> BlockKind:
    """Return the kind shared by all blocks except headings, or "text" if they are mixed."""
    kinds: set[BlockKind] = {block.kind for block in blocks if block.kind != "heading"}
    if not kinds:
        return "heading" if blocks else "text"
    return kinds.pop() if len(kinds) == 1 else "text"


# --- The default chunker: passages that follow the document's structure, packed to about equal size ---


def join_headings(
    task: CuttingTask, pieces: Sequence[Piece], most: int | None = None, *, parts: bool = True
) -> list[Piece]:
    """Return pieces in order such that none has only headings or table names, if possible.

    Such a piece answers no question but ranks high. It joins the piece after it; the last one joins the piece before
    it. If together they exceed the room or ``most`` tokens, the other piece is split at a line break or between words.
    For overlapping pieces (without ``parts``) it stays whole, and its first half is repeated.
    """
    bare = [_is_only_heading(task, piece) for piece in pieces]
    if not any(bare) or all(bare):
        return list(pieces)

    def fits(piece: Piece) -> bool:
        start, end = strip_span(task.text, piece.start, piece.end)
        if most is None:  # it fits the model together with any header
            return has_words(task.text, start, end) and len(task.tokens(task.text[start:end])) <= task.room
        return has_words(task.text, start, end) and task.ruler.count(start, end) <= most

    def join(piece: Piece, start: int, end: int) -> list[Piece]:
        made = _join_or_split(task, piece, start, end, fits)
        if parts or len(made) < 2:
            return made
        repeated = [made[0], piece] if start < piece.start else [piece, made[1]]
        return repeated if repeated[1].start <= repeated[0].end else made  # else the text between them is lost

    joined: list[Piece] = []
    waiting: list[Piece] = []
    for piece, alone in zip(pieces, bare, strict=True):
        if alone:
            waiting.append(piece)
        else:
            joined += join(piece, waiting[0].start, piece.end) or [*waiting, piece] if waiting else [piece]
            waiting = []
    if waiting:
        joined[-1:] = join(joined[-1], joined[-1].start, waiting[-1].end) or [joined[-1], *waiting]
    return joined


def _is_only_heading(task: CuttingTask, piece: Piece) -> bool:
    """Return whether a piece has only headings, optionally followed by short lines that name a table."""
    start, end = strip_span(task.text, piece.start, piece.end)  # a piece may start with blank lines
    first = max(0, bisect_right(task.blocks, start, key=lambda block: block.start) - 1)
    last = bisect_left(task.blocks, end, key=lambda block: block.start)
    inside = task.blocks[first:last]
    if not inside:
        return False
    before_table = leads_to_table(task.text, task.blocks, last)
    return all(
        block.kind == "heading"
        or (
            before_table
            and is_caption_line(block, task.text[max(block.start, piece.start) : min(block.end, piece.end)])
        )
        for block in inside
    )


def _join_or_split(task: CuttingTask, piece: Piece, start: int, end: int, fits: Callable[[Piece], bool]) -> list[Piece]:
    """Return a piece extended to ``text[start:end]``, cut in two if necessary, or no piece if no cut fits."""
    parent = piece.parent and (min(piece.parent[0], start), max(piece.parent[1], end))
    whole = replace(piece, start=start, end=end, parent=parent)
    if fits(whole):
        return [whole]
    middle = task.ruler.reach(start, task.ruler.count(start, end) // 2, end)
    line = task.text.rfind("\n", max(start, piece.start) + 1, middle)
    middle = line if line > piece.start else middle
    spans = [strip_span(task.text, start, middle), strip_span(task.text, middle, end)]
    halves = [_note_table_header(task, replace(whole, start=first, end=last)) for first, last in spans if first < last]
    halves_word = task.ruler.inside_word(middle)
    return halves if not halves_word and all(fits(half) and not _is_only_heading(task, half) for half in halves) else []


def _note_table_header(task: CuttingTask, piece: Piece) -> Piece:
    """Return a piece with the span of the table header if it starts among a table's rows."""
    block = task.blocks[max(0, bisect_right(task.blocks, piece.start, key=lambda block: block.start) - 1)]
    if block.kind != "table" or not block.body <= piece.start < block.end:
        return piece
    return replace(piece, metadata={**piece.metadata, "table_header": strip_span(task.text, block.start, block.body)})


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and the blocks under it, up to the next heading."""

    blocks: tuple[Block, ...]  # its blocks
    path: tuple[str, ...]  # headings above it and its own (the first, if several were joined)

    @property
    def start(self) -> int:
        """The first character of its first block."""
        return self.blocks[0].start

    @property
    def end(self) -> int:
        """The character after its last block."""
        return self.blocks[-1].end

    @property
    def only_heading(self) -> bool:
        """True if it has headings without text."""
        return all(block.kind == "heading" for block in self.blocks)


def chunk_by_structure(task: CuttingTask) -> list[Piece]:
    """Pack sentences and blocks within sections. Small sections join neighbours under the same parent."""
    sections = merge_sections(group_sections(task.blocks), task.ruler, task.size, int(task.options["small"]))
    return join_headings(task, [piece for section in sections for piece in cut_section(section, task, task.size)])


def cut_section(section: Section, task: CuttingTask, size: int) -> list[Piece]:
    """Cut a section into pieces of at most ``size`` tokens, keeping tables and code whole if there is room."""
    if task.ruler.count(section.start, section.end) <= size:
        return [Piece(section.start, section.end)]
    return pack_evenly(split_atoms(section.blocks, task.ruler, size, whole=task.room), task.ruler, size)


def group_sections(blocks: list[Block]) -> list[Section]:
    """Group blocks into sections, which start at a heading or a change of path (definitions in code)."""
    groups: list[list[Block]] = []
    for block in blocks:
        if not groups or block.kind == "heading" or block.path != groups[-1][-1].path:
            groups.append([])
        groups[-1].append(block)
    return [Section(tuple(group), group[0].path) for group in groups]


def merge_sections(sections: list[Section], ruler: TokenCounter, size: int, small: int) -> list[Section]:
    """Join related sections if both fit ``size`` tokens and one has fewer than ``small`` tokens."""
    joined: list[Section] = []
    for section in sections:
        if joined and _belongs_together(joined[-1], section, ruler, size, small):
            last = joined.pop()
            joined.append(Section(last.blocks + section.blocks, last.path))
        else:
            joined.append(section)
    return joined


def _belongs_together(last: Section, section: Section, ruler: TokenCounter, size: int, small: int) -> bool:
    below = section.path[: len(last.path)] == last.path
    if last.only_heading and below:
        return True  # a heading stays with the text after it
    if not (below or section.path[:-1] == last.path[:-1]):
        return False
    if min(ruler.count(last.start, last.end), ruler.count(section.start, section.end)) >= small:
        return False
    return ruler.count(last.start, section.end) <= size


# --- Source code ---


def chunk_code(task: CuttingTask) -> list[Piece]:
    """Keep classes whole if they fit, or else their methods; join small neighbours. Other text is cut by structure."""
    if task.document.document_type != "code":
        return chunk_by_structure(task)
    sections = join_definitions(group_sections(task.blocks), task.ruler, task.size)
    sections = merge_sections(sections, task.ruler, task.size, int(task.options["small"]))
    return [piece for section in sections for piece in cut_section(section, task, task.size)]


def join_definitions(sections: list[Section], ruler: TokenCounter, size: int) -> list[Section]:
    """Join each definition with everything inside it, outermost first, if they fit in ``size`` tokens."""
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


# --- Windows of a fixed number of tokens ---


def chunk_fixed(task: CuttingTask) -> list[Piece]:
    """Slide a window over the tokens; each window starts ``overlap`` tokens before the end of the previous one.

    A window with only headings joins its neighbour; if both exceed the size, they are split evenly.
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
        start = _next_window_start(task.ruler, start, stop, overlap)
        if task.ruler.reach(start, task.size, end) <= stop:
            start = stop  # the overlap leaves no room for the long word after it
    return join_headings(task, pieces, task.size, parts=not overlap)


def _next_window_start(ruler: TokenCounter, start: int, stop: int, overlap: int) -> int:
    """Return the start of the next window: ``overlap`` tokens before ``stop``, at a word, after ``start``."""
    if overlap == 0:
        return stop
    after = bisect_left(ruler.starts, stop)
    for position in ruler.starts[max(0, after - overlap) : after]:
        if position > start and not ruler.inside_word(position):
            return position
    return stop


# --- Recursive splitting, measured in tokens ---

SEPARATORS = ("\n\n", "\n", ".", "?", "!", " ", "")
Bounds = tuple[int, int]


def chunk_recursive(task: CuttingTask) -> list[Piece]:
    """Split at the coarsest separator, split long pieces again at finer ones, and merge pieces up to the size.

    Follows LangChain's RecursiveCharacterTextSplitter with ``keep_separator=True``: a separator starts the piece after
    it. The last separator, "", splits between tokens instead of characters. A piece with only headings joins the next
    one, or takes half of it if both exceed the size; the original keeps it separate.
    """
    overlap = min(int(task.options["overlap"]), task.size - 1)
    bounds = _split_recursively(task.ruler, (0, len(task.text)), SEPARATORS, task.size, overlap)
    return join_headings(task, [Piece(*piece) for piece in bounds], task.size, parts=not overlap)


def _split_recursively(
    ruler: TokenCounter, bounds: Bounds, separators: Sequence[str], size: int, overlap: int
) -> Iterator[Bounds]:
    """Yield pieces of a span, each of at most ``size`` tokens."""
    text = ruler.text
    index = next(i for i, separator in enumerate(separators) if text.find(separator, *bounds) >= 0)
    finer = separators[index + 1 :]

    def fits(split: Bounds) -> bool:
        return ruler.count(*split) < size or not finer

    for merge, splits in groupby(pairwise(_separator_positions(ruler, *bounds, separators[index])), key=fits):
        if merge:
            yield from _merge_splits(ruler, splits, size, overlap)
            continue
        for split in splits:
            yield from _split_recursively(ruler, split, finer, size, overlap)


def _separator_positions(ruler: TokenCounter, start: int, end: int, separator: str) -> Iterator[int]:
    """Yield the bounds of consecutive parts of a span, all but the first starting with the separator."""
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


def _merge_splits(ruler: TokenCounter, splits: Iterable[Bounds], size: int, overlap: int) -> Iterator[Bounds]:
    """Yield runs of neighbouring splits of at most ``size`` tokens, each overlapping the last by up to ``overlap``."""
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


# --- Sections, whole or as parents ---


def chunk_by_heading(task: CuttingTask) -> list[Piece]:
    """Make one passage per section. A heading without text stays with the section below it."""
    sections = merge_sections(group_sections(task.blocks), task.ruler, task.size, small=0)
    return join_headings(task, [piece for section in sections for piece in cut_section(section, task, task.size)])


def chunk_hierarchical(task: CuttingTask) -> list[Piece]:
    """Cut small passages inside larger ones; the larger ``parent`` is returned if enough of its passages are found.

    A parent is a section of at most ``parent`` tokens (small neighbours are joined, long ones split evenly).
    """
    limit = max(task.size, int(task.options["parent"]))
    sections = merge_sections(group_sections(task.blocks), task.ruler, limit, small=limit // 4)
    return join_headings(task, [piece for section in sections for piece in _cut_children(section, task, limit)])


def _cut_children(section: Section, task: CuttingTask, limit: int) -> list[Piece]:
    atoms = split_atoms(section.blocks, task.ruler, task.size, whole=task.room)
    starts = [atom.start for atom in atoms]
    children: list[Piece] = []
    for parent in pack_evenly(atoms, task.ruler, limit):
        inside = atoms[bisect_left(starts, parent.start) : bisect_left(starts, parent.end)]
        children += (
            replace(child, parent=(parent.start, parent.end)) for child in pack_evenly(inside, task.ruler, task.size)
        )
    return children


# --- Breaks between dissimilar sentences ---

SLICE_ATOMS = 512  # atoms with vectors in memory at once
BUFFER_SENTENCES = 1  # sentences on either side embedded with each, to reduce noise


def chunk_semantic(task: CuttingTask) -> list[Piece]:
    """Break at the top ``100 - percentile`` percent of cosine distances between neighbours in the document.

    After Greg Kamradt's percentile breakpoints. Groups over ``size`` are split evenly; groups under ``small`` tokens
    join the next one, and headings join the text after them.
    """
    atoms = split_atoms(task.blocks, task.ruler, task.size, whole=task.room)
    if len(atoms) < 3:
        return join_headings(task, pack_evenly(atoms, task.ruler, task.size))
    far = np.concatenate([cosine_distances(vectors) for vectors in _embed_atoms(task, atoms)])
    breaks = far > np.percentile(far, float(task.options["percentile"]))
    pieces: list[Piece] = []
    group: list[Atom] = [atoms[0]]
    for atom, parts in zip(atoms[1:], breaks, strict=True):
        if parts and task.ruler.count(group[0].start, group[-1].end) >= int(task.options["small"]):
            pieces.extend(pack_evenly(group, task.ruler, task.size))
            group = []
        group.append(atom)
    return join_headings(task, pieces + pack_evenly(group, task.ruler, task.size))


def cosine_distances(vectors: np.ndarray) -> np.ndarray:
    """Return 1 - cosine between each row and the next. A row of zeros has distance 1 to any other."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit = vectors / np.where(lengths == 0, 1, lengths)
    return 1 - np.sum(unit[:-1] * unit[1:], axis=1)


def _embed_atoms(task: CuttingTask, atoms: Sequence[Atom]) -> Iterator[np.ndarray]:
    """Yield the vectors of all atoms in arrays, each starting with the last row of the previous one.

    This bounds the vectors in memory while comparing neighbours.
    """
    assert task.embed is not None  # checked by ``cut_spans``
    last = len(atoms) - 1
    before: list[np.ndarray] = []
    for first in range(0, len(atoms), SLICE_ATOMS):
        places = range(first, min(first + SLICE_ATOMS, len(atoms)))
        texts = [
            task.text[atoms[max(0, at - BUFFER_SENTENCES)].start : atoms[min(last, at + BUFFER_SENTENCES)].end]
            for at in places
        ]
        vectors = np.asarray(task.embed(texts), dtype=np.float64)
        yield np.concatenate([*before, vectors])
        before = [vectors[-1:]]


# --- Sentences, packed or with their neighbours ---


def chunk_sentences(task: CuttingTask) -> list[Piece]:
    """Fill passages with consecutive sentences regardless of headings. No passage has only headings."""
    spans = sentence_spans(task.text)
    atoms = [Atom(*part) for start, end in spans for part in split_to_fit(task.ruler, start, end, task.size)]
    return join_headings(task, pack_full(atoms, task.ruler, task.size))


def chunk_windows(task: CuttingTask) -> list[Piece]:
    """Make each sentence, with the headings before it, a passage; record ``neighbours`` on either side as "window".

    The neighbours are in the same section. The window is for display and answers, so the encoder's limit does not
    apply.
    """
    pieces = [piece for section in group_sections(task.blocks) for piece in _section_windows(section, task)]
    return [_within_window(piece) for piece in join_headings(task, pieces)]


def _within_window(piece: Piece) -> Piece:
    first, last = piece.metadata["window"]
    return replace(piece, metadata={**piece.metadata, "window": (min(first, piece.start), max(last, piece.end))})


def _section_windows(section: Section, task: CuttingTask) -> list[Piece]:
    reach = int(task.options["neighbours"])
    atoms = split_atoms(section.blocks, task.ruler, task.size, whole=task.room)
    pieces: list[Piece] = []
    for index, atom in enumerate(atoms):
        first, last = atoms[max(0, index - reach)], atoms[min(len(atoms) - 1, index + reach)]
        pieces.append(Piece(atom.start, atom.end, metadata={**atom.metadata, "window": (first.start, last.end)}))
    return pieces


DEFAULT_CHUNKER = "structure"
DEFAULT_LIMIT_TOKENS = 254  # tokens; MiniLM's 256 without its two special tokens
MIN_LIMIT_TOKENS = 32


@dataclass(frozen=True, slots=True)
class Chunker:
    """A chunker."""

    name: str  # its name
    why: str  # one line on what it does
    function: Callable[[CuttingTask], list[Piece]]  # cuts a document
    parameters: tuple[Parameter, ...]  # its parameters
    needs_embed: bool = False  # True if it needs the option ``embed``


def _int_parameter(name: str, low: int, high: int, default: int, why: str) -> Parameter:
    return Parameter(name, "int", default, why, low, high)


SIZE_PARAMETER = _int_parameter(
    "size", 16, 8192, 200, "Tokens per passage: small passages are precise, large ones complete."
)
OVERLAP_PARAMETER = _int_parameter(
    "overlap", 0, 1024, 0, "Tokens repeated from the previous passage, to keep statements at a boundary whole."
)
SMALL_PARAMETER = _int_parameter("small", 0, 1024, 64, "Sections with fewer tokens join their neighbours.")
SECTION_PARAMETER = _int_parameter(
    "size", 16, 8192, 8192, "Tokens per section before it is split; the model's limit also applies."
)
CHILD_PARAMETER = _int_parameter("size", 16, 8192, 100, "Tokens per passage; its section is returned.")
SENTENCE_PARAMETER = _int_parameter("size", 16, 8192, 200, "Tokens per sentence before it is split.")
NEIGHBOURS_PARAMETER = _int_parameter("neighbours", 0, 10, 2, "Sentences shown on either side of the one found.")
PARENT_PARAMETER = _int_parameter("parent", 64, 8192, 600, "Tokens of the section that is returned for its passages.")
PERCENTILE_PARAMETER = Parameter("percentile", "float", 90.0, "Breaks at distances above this percentile.", 50, 99.9)

CHUNKERS: dict[str, Chunker] = {
    chunker.name: chunker
    for chunker in (
        Chunker(
            "structure",
            "Headings, paragraphs, tables and code, packed evenly.",
            chunk_by_structure,
            (SIZE_PARAMETER, SMALL_PARAMETER),
        ),
        Chunker(
            "recursive",
            "Coarse separators first, finer ones if needed.",
            chunk_recursive,
            (SIZE_PARAMETER, OVERLAP_PARAMETER),
        ),
        Chunker("token", "Windows of a fixed number of tokens.", chunk_fixed, (SIZE_PARAMETER, OVERLAP_PARAMETER)),
        Chunker(
            "sentence", "Whole sentences, packed to the size; headings are ignored.", chunk_sentences, (SIZE_PARAMETER,)
        ),
        Chunker(
            "window",
            "Single sentences, shown with their neighbours.",
            chunk_windows,
            (SENTENCE_PARAMETER, NEIGHBOURS_PARAMETER),
        ),
        Chunker("heading", "One passage per section.", chunk_by_heading, (SECTION_PARAMETER,)),
        Chunker(
            "hierarchical",
            "Small passages that return their section.",
            chunk_hierarchical,
            (CHILD_PARAMETER, PARENT_PARAMETER),
        ),
        Chunker(
            "semantic",
            "Breaks where the topic changes.",
            chunk_semantic,
            (SIZE_PARAMETER, SMALL_PARAMETER, PERCENTILE_PARAMETER),
            needs_embed=True,
        ),
        Chunker("code", "Functions and classes kept whole.", chunk_code, (SIZE_PARAMETER, SMALL_PARAMETER)),
    )
}


def chunk(
    name: str, document: ChunkInput, tokens: Tokenize, options: Mapping[str, object] | None = None
) -> list[CutPassage]:
    """Cut a document as ``cut_spans`` does, and return a list."""
    return list(cut_spans(name, document, tokens, options))


def cut_spans(name: str, document: ChunkInput, tokens: Tokenize, options: Mapping[str, object] | None = None) -> Spans:
    """Cut a document so that every word is in a span and each span fits ``limit`` tokens with its header.

    Other characters are also in a span, except runs without a word that are too long for one. Spans are created on
    access.

    Args:
        name: Name of the chunker.
        document: The document.
        tokens: Returns the token spans of a text.
        options: The chunker's parameters; ``limit``, the encoder's max_tokens (default 254); and for "semantic"
            ``embed``, a function from texts to an array with one row each.

    Raises:
        InvalidInput: There is no such chunker or option, or a value is out of range.
    """
    chunker = CHUNKERS.get(name)
    if chunker is None:
        raise InvalidInput(f"Unknown chunker '{name}'. Choose one of {list_choices(CHUNKERS)}.")
    given = dict(options or {})
    limit, embed = given.pop("limit", DEFAULT_LIMIT_TOKENS), cast("Embed | None", given.pop("embed", None))
    if not isinstance(limit, int) or limit < MIN_LIMIT_TOKENS:
        raise InvalidInput(f"Invalid option 'limit' {limit!r}: expected an integer of at least {MIN_LIMIT_TOKENS}.")
    if chunker.needs_embed and embed is None:
        raise InvalidInput(f"The chunker '{name}' needs the option 'embed' to compare sentences.")
    task = CuttingTask(document, tokens, limit, complete_options(chunker, given), embed)
    return finish_pieces(task, chunker.function(task) if document.text.strip() else [])


def complete_options(chunker: Chunker, given: Mapping[str, object]) -> dict[str, ParameterValue]:
    """Return all options of a chunker, with defaults for those not given.

    Raises:
        InvalidInput: An option is unknown, or a value is out of range.
    """
    return read_parameters(f"The chunker {chunker.name!r}", chunker.parameters, given)

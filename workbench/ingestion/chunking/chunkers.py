"""The chunkers by name, with their parameters described, and the one function that runs them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import cast

from workbench.errors import InvalidInput, choices
from workbench.ingestion.chunking.code import code
from workbench.ingestion.chunking.cutting_task import CuttingTask, Embed
from workbench.ingestion.chunking.finish import Spans, finished
from workbench.ingestion.chunking.fixed import fixed
from workbench.ingestion.chunking.recursive import recursive
from workbench.ingestion.chunking.sections import heading, hierarchical
from workbench.ingestion.chunking.semantic import semantic
from workbench.ingestion.chunking.sentence import sentence, window
from workbench.ingestion.chunking.span import ChunkInput, CutPassage, Piece, Tokenize
from workbench.ingestion.chunking.structure import structure
from workbench.types import Parameter, ParameterValue, read_parameters

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

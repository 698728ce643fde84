"""Code in documents: fenced blocks of Markdown and passages of source files, with their heading."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath

from workbench.errors import NotFound
from workbench.types import Document, Passage, Value

MAX_DISTANCE_CHARS = 1_500  # characters between a passage and a block that may belong to it
_FENCE = re.compile(r" {0,3}(?:`{3,}|~{3,})[ \t]*\{?\.?([\w+#.-]*)")
_LANGUAGE_ALIASES = {  # aliases and file suffixes of languages
    "py": "python", "js": "javascript", "ts": "typescript", "sh": "bash", "shell": "bash", "yml": "yaml",
    "rb": "ruby", "rs": "rust", "golang": "go", "c++": "cpp", "md": "markdown",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class CodeExample(Value):
    """A block of code and the passage it was found by."""

    passage: Passage
    code: str
    language: str  # lower case; "" if not stated
    heading: str  # path of headings above it, joined by " > "
    start: int  # in the document's text, in characters


def find_code(
    read: Callable[[str], Document], passages: Mapping[str, Sequence[Passage]], language: str = ""
) -> Iterator[CodeExample]:
    """Yield code in or near passages: by document in the given order, nearest first, without duplicates.

    Args:
        read: Returns a document with its text; may raise NotFound.
        passages: Passages found, by document id.
        language: Only code in this language; "" for all.
    """
    wanted = canonical_language(language)
    for document_id, group in passages.items():
        try:
            document = read(document_id)
        except NotFound:  # deleted since the search
            continue
        for example in sorted(
            _find_examples(document, group), key=lambda found_example: _sort_key(found_example, group)
        ):
            if wanted in ("", example.language):
                yield example


def canonical_language(language: str) -> str:
    """Return the canonical name of a language: "python" for "py" and "Python"."""
    word = language.strip().lower().removeprefix(".")
    return _LANGUAGE_ALIASES.get(word, word)


def _find_examples(document: Document, passages: Sequence[Passage]) -> Iterator[CodeExample]:
    from workbench.ingestion.chunking.blocks import parse_blocks

    text = document.text or ""
    if document.document_type == "code":
        language = canonical_language(PurePath(document.path or document.title).suffix)
        for passage in passages:
            yield CodeExample(passage, passage.text, language, " > ".join(passage.headings), passage.start)
        return
    for block in parse_blocks(text):
        if block.kind != "code":
            continue
        near = [
            passage
            for passage in passages
            if passage.start - MAX_DISTANCE_CHARS <= block.start and block.end <= passage.end + MAX_DISTANCE_CHARS
        ]
        if near:
            nearest = min(near, key=lambda passage: abs(passage.start - block.start))
            mark = _FENCE.match(text[block.start : block.end])
            code = text[block.start : block.end]
            if mark is not None:
                code = code.partition("\n")[2].rsplit("\n", 1)[0]
            language = canonical_language(mark.group(1)) if mark else ""
            yield CodeExample(nearest, code, language, " > ".join(block.path), block.start)


def _sort_key(example: CodeExample, passages: Sequence[Passage]) -> tuple[int, int]:
    """Return the sort key: the rank of the passage, then the position in the text."""
    return min(passage.rank for passage in passages if passage.passage_id == example.passage.passage_id), example.start

"""Code in documents: the marked blocks of Markdown and the passages of source files, with the heading above."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath

from workbench.errors import NotFound
from workbench.types import Document, Passage, Value

NEAR = 1_500  # characters between a passage and a block that it may speak of
_MARK = re.compile(r" {0,3}(?:`{3,}|~{3,})[ \t]*\{?\.?([\w+#.-]*)")
_NAMES = {  # words that mean the same language; endings of files among them
    "py": "python", "js": "javascript", "ts": "typescript", "sh": "bash", "shell": "bash", "yml": "yaml",
    "rb": "ruby", "rs": "rust", "golang": "go", "c++": "cpp", "md": "markdown",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class CodeExample(Value):
    """A block of code and the passage it was found by; ``start`` is its place in the document's text, in characters."""

    passage: Passage
    code: str
    language: str
    heading: str
    start: int


def code_near(
    read: Callable[[str], Document], passages: Mapping[str, Sequence[Passage]], language: str = ""
) -> Iterator[CodeExample]:
    """Yield code in or near passages, document by document in the order given, each block once, nearest first.

    ``read`` returns a document with its text; ``language`` narrows, "" does not.
    """
    wanted = named(language)
    for document_id, group in passages.items():
        try:
            document = read(document_id)
        except NotFound:  # deleted since the search
            continue
        for example in sorted(_examples(document, group), key=lambda found_example: _distance(found_example, group)):
            if wanted in ("", example.language):
                yield example


def named(language: str) -> str:
    """Return a language by the one name it has here: "py" and "Python" are "python"."""
    word = language.strip().lower().removeprefix(".")
    return _NAMES.get(word, word)


def _examples(document: Document, passages: Sequence[Passage]) -> Iterator[CodeExample]:
    from workbench.ingestion.chunking.blocks import blocks_of

    text = document.text or ""
    if document.document_type == "code":
        language = named(PurePath(document.path or document.title).suffix)
        for passage in passages:
            yield CodeExample(passage, passage.text, language, " > ".join(passage.headings), passage.start)
        return
    for block in blocks_of(text):
        if block.kind != "code":
            continue
        near = [
            passage for passage in passages if passage.start - NEAR <= block.start and block.end <= passage.end + NEAR
        ]
        if near:
            nearest = min(near, key=lambda passage: abs(passage.start - block.start))
            mark = _MARK.match(text[block.start : block.end])
            code = text[block.start : block.end]
            if mark is not None:
                code = code.partition("\n")[2].rsplit("\n", 1)[0]
            language = named(mark.group(1)) if mark else ""
            yield CodeExample(nearest, code, language, " > ".join(block.path), block.start)


def _distance(example: CodeExample, passages: Sequence[Passage]) -> tuple[int, int]:
    """Order by the rank of the passage, then by the place in the text."""
    return min(passage.rank for passage in passages if passage.passage_id == example.passage.passage_id), example.start

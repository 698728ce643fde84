"""The messages between an ingest and the process that reads its files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from workbench.ingestion.raw import Draft

OUT_OF_MEMORY = 77  # the exit code of a process that may take no more memory


@dataclass(frozen=True, slots=True)
class ParserRequest:
    """A file to read but for the pages in ``left_out``; with ``only``, pages (first, last) of it are tried instead."""

    name: str
    data: bytes
    left_out: tuple[int, ...] = ()
    only: tuple[int, int] | None = None


# "ready" (the id of the process) comes once, "page" (page, pages) before each page that takes long; "pages" says how
# many a file has of which some were tried.
Frame: TypeAlias = (
    tuple[Literal["ready"], int]
    | tuple[Literal["page"], tuple[int, int]]
    | tuple[Literal["draft"], Draft]
    | tuple[Literal["pages"], int]
    | tuple[Literal["error"], str]
)

"""The part of the corpus a search may see: as people name it, and after names became ids."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import Literal

from workbench.types.json import Value

ScopeKind = Literal["all", "global", "project"]
NamesUse = Literal["prefer", "only", "ignore"]


@dataclass(frozen=True, slots=True)
class Scope(Value):
    """The part of the corpus a search may see; fields narrow each other, an empty scope is everything a person has.

    ``sources`` are ids, titles or URLs; ``None`` means any, an empty tuple means none at all.
    ``tags`` match a source that has *any* of them. ``kind`` "project" needs ``project``; "all" with a
    ``project`` means that project and the global sources, never another project. ``languages`` are ISO 639-1
    codes or the keyword index's names ("de" or "german"; "cjk" is Chinese, Japanese and Korean, "simple" any other).
    ``names`` says what the names of documents in a question do: their documents are preferred, or the "only" ones, or
    names are words like others ("ignore"); those of ``ignored_names`` always are.
    """

    kind: ScopeKind = "all"
    project: str | None = None
    folder: str | None = None
    tags: tuple[str, ...] = ()
    sources: tuple[str, ...] | None = None
    document_types: tuple[str, ...] = ()
    documents: tuple[str, ...] | None = None
    languages: tuple[str, ...] = ()
    since: date | None = None
    until: date | None = None
    names: NamesUse = "prefer"
    ignored_names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("tags", "sources", "document_types", "documents", "languages", "ignored_names"):
            if isinstance(value := getattr(self, name), str):  # one name: its letters are nobody's tags
                object.__setattr__(self, name, (value,))


@dataclass(frozen=True, slots=True)
class ResolvedScope(Value):
    """A scope after names became ids; ``source_ids`` None means no restriction, an empty tuple nothing.

    ``preferred_source_ids`` win between passages that match equally well (a project's own sources);
    ``without_documents`` are left out (those already found, when more are looked for). ``project_id`` and
    ``folder_id`` are where all of its sources lie, if that is one place.
    """

    source_ids: tuple[str, ...] | None = None
    document_ids: tuple[str, ...] | None = None
    document_types: tuple[str, ...] = ()
    languages: tuple[str, ...] = ()
    since: date | None = None
    until: date | None = None
    preferred_source_ids: tuple[str, ...] = ()
    without_documents: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    project_id: str | None = None
    folder_id: str | None = None
    names: NamesUse = "prefer"
    ignored_names: tuple[str, ...] = ()

    @property
    def place(self) -> ResolvedScope:
        """What can be read at all: the filters alone, with the documents that this round of a search leaves out."""
        return ResolvedScope(
            source_ids=self.source_ids,
            document_ids=self.document_ids,
            document_types=self.document_types,
            languages=self.languages,
            since=self.since,
            until=self.until,
        )

    @property
    def is_empty(self) -> bool:
        """True when nothing can match."""
        return self.source_ids == () or self.document_ids == ()

    @property
    def is_everything(self) -> bool:
        """True when nothing is filtered out."""
        return (
            self.source_ids is None and self.document_ids is None and not self.document_types
            and not self.languages
            and self.since is None and self.until is None and not self.without_documents
        )  # fmt: skip

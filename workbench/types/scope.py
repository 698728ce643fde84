"""The part of the corpus that a search may see, by names and by ids."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import Literal

from workbench.types.json import Value

ScopeKind = Literal["all", "global", "project"]
NamesUse = Literal["prefer", "only", "ignore"]


@dataclass(frozen=True, slots=True)
class Scope(Value):
    """The part of the corpus that a search may see.

    All fields must match; an empty scope is the user's whole corpus.
    """

    kind: ScopeKind = "all"  # "project" needs ``project``; "all" with a project adds the global sources to it
    project: str | None = None
    folder: str | None = None
    tags: tuple[str, ...] = ()  # of a source, which needs one of them
    sources: tuple[str, ...] | None = None  # ids, titles or URLs; None means any, an empty tuple none
    document_types: tuple[str, ...] = ()
    documents: tuple[str, ...] | None = None
    languages: tuple[str, ...] = ()  # ISO 639-1 codes or names; "cjk" is Chinese, Japanese, Korean, "simple" any other
    since: date | None = None
    until: date | None = None
    names: NamesUse = "prefer"  # documents named in the question: boost them, require them, or ignore their names
    ignored_names: tuple[str, ...] = ()  # names that are ignored in any case

    def __post_init__(self) -> None:
        for name in ("tags", "sources", "document_types", "documents", "languages", "ignored_names"):
            if isinstance(value := getattr(self, name), str):  # a single name, not a sequence of letters
                object.__setattr__(self, name, (value,))


@dataclass(frozen=True, slots=True)
class ResolvedScope(Value):
    """A scope with ids instead of names."""

    source_ids: tuple[str, ...] | None = None  # None means no restriction, an empty tuple nothing
    document_ids: tuple[str, ...] | None = None  # the same
    document_types: tuple[str, ...] = ()
    languages: tuple[str, ...] = ()
    since: date | None = None
    until: date | None = None
    preferred_source_ids: tuple[str, ...] = ()  # win ties between passages: a project's own sources
    without_documents: tuple[str, ...] = ()  # excluded, such as those already found when more are requested
    notes: tuple[str, ...] = ()
    project_id: str | None = None  # of all its sources, if they share one
    folder_id: str | None = None  # of all its sources, if they share one
    names: NamesUse = "prefer"
    ignored_names: tuple[str, ...] = ()

    @property
    def place(self) -> ResolvedScope:
        """Only the filters, without preferences and without the documents that this search excludes."""
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
        """True if nothing can match."""
        return self.source_ids == () or self.document_ids == ()

    @property
    def is_everything(self) -> bool:
        """True if nothing is filtered out."""
        return (
            self.source_ids is None and self.document_ids is None and not self.document_types
            and not self.languages
            and self.since is None and self.until is None and not self.without_documents
        )  # fmt: skip

"""The names that a question says, with the documents that have them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from workbench.retrieval.names.names_table import Mention


@dataclass(frozen=True, slots=True)
class SaidName:
    """Of a document that name, its title or its file's, of which a question says most: the ``share`` 0..1, by idf."""

    document_id: str
    name: str = ""
    share: float = 0.0


@dataclass(frozen=True, slots=True)
class QuestionNames:
    """The names that a question says and that are not ignored; ``asked`` is the question without the ignored ones.

    ``strengths`` say how far the names together pick each document out of all, 0..1, by document id; ``others`` are
    documents whose labels tell another period than the question.
    """

    asked: str
    mentions: tuple[Mention, ...] = ()
    strengths: Mapping[str, float] | None = None
    others: frozenset[str] = frozenset()

    def documents_of_all(self) -> frozenset[str] | None:
        """Return the documents that have a name of each kind that the question says; None where it says none."""
        kinds: dict[str, frozenset[str]] = {}
        for mention in self.mentions:
            kinds[mention.name.kind] = kinds.get(mention.name.kind, frozenset()) | mention.documents
        return frozenset.intersection(*kinds.values()) if kinds else None

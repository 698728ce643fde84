"""Rankers: the trained weights of the strategy ``learned``, listed, kept, exported and imported."""

from __future__ import annotations

from dataclasses import replace

from workbench.errors import Conflict
from workbench.retrieval.parameters import SHIPPED
from workbench.retrieval.ranker import checked_name, checked_weights, file_text, from_file, shipped
from workbench.services.corpus import Corpus
from workbench.types import Ranker


class RankerService:
    """The verbs over rankers. Their weights never change: another training is another ranker, under a name of its own.

    Training is ``evals.learning``; it keeps what it found here.
    """

    def __init__(self, corpus: Corpus) -> None:
        self._table = corpus.rankers

    def list(self) -> list[Ranker]:
        """Return the ranker that comes with the workbench, then all others by name."""
        return [shipped(), *self._table.list()]

    def get(self, name: str) -> Ranker:
        """Return a ranker. Raises NotFound."""
        return shipped() if name == SHIPPED else self._table.get(name)

    def check_new(self, name: str) -> str:
        """Return a name under which a ranker can be kept, without surplus blanks.

        Raises:
            InvalidInput: a name that cannot be. Conflict: there is a ranker of that name.
        """
        checked = checked_name(name)
        if any(ranker.name == checked for ranker in self.list()):
            raise _taken(checked)
        return checked

    def save(self, ranker: Ranker) -> Ranker:
        """Keep a ranker and return it as it is kept.

        Raises:
            InvalidInput: a name or weights that cannot be. Conflict: there is a ranker of that name.
        """
        name = checked_name(ranker.name)
        checked_weights(dict(ranker.weights))
        if name == SHIPPED or not self._table.add(replace(ranker, name=name)):
            raise _taken(name)
        return self._table.get(name)

    def delete(self, name: str) -> None:
        """Delete a ranker.

        Raises:
            NotFound: there is none. Conflict: it comes with the workbench, or a promotion serves with it.
        """
        ranker = self.get(name)
        if ranker.name == SHIPPED:
            raise Conflict(f"The ranker {SHIPPED!r} comes with the workbench and stays.")
        serving = self._table.serving(name)
        if serving:
            raise Conflict(f"The ranker {name!r} serves {', '.join(serving)}; promote something else there first.")
        self._table.delete(name)

    def export(self, name: str) -> str:
        """Return a ranker as the text of a JSON file. Raises NotFound."""
        return file_text(self.get(name))

    def restore(self, text: str, name: str | None = None) -> Ranker:
        """Keep the ranker of an exported file, under another name where one is given.

        Raises:
            InvalidInput: the file is no ranker, or broken. Conflict: there is a ranker of that name.
        """
        ranker = from_file(text)
        if name is not None:
            ranker = replace(ranker, name=name)
        return self.save(ranker)


def _taken(name: str) -> Conflict:
    return Conflict(f"There is a ranker {name!r} already; choose another name, or delete that one first.")

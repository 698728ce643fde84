"""Promotion: the strategy that won a comparison serves a scope, until that is undone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from workbench.errors import Conflict, InvalidInput, ScopeError
from workbench.retrieval.options import named
from workbench.retrieval.parameters import SHIPPED
from workbench.retrieval.ranker import checked_name, checked_weights, file_text, from_file, shipped
from workbench.retrieval.strategies import DEFAULT_STRATEGY, check_parameters, strategy_named
from workbench.services.corpus import Corpus
from workbench.services.search import Requests, promotion_keys
from workbench.storage.promotions import EVERYWHERE
from workbench.types import Promotion, Ranker, Scope

LONGEST_NOTE = 1000  # characters


class PromotionService:
    """The verbs over promotions. The most specific scope wins: a source, its folder, its project, everywhere."""

    def __init__(self, corpus: Corpus, requests: Requests) -> None:
        self._corpus, self._requests = corpus, requests

    def promote(
        self,
        strategy: str,
        *,
        scope: Scope | None = None,
        parameters: Mapping[str, object] | None = None,
        index: str | None = None,
        note: str = "",
    ) -> Promotion:
        """Let a strategy, with its parameters and index, serve a scope from now on; "strategy@index" works too.

        Raises:
            InvalidInput: an unknown strategy or parameter, or a scope that cannot have a promotion.
            NotFound: no such index or ranker. ScopeError: no such project, folder or source.
            ConfigurationError: the strategy needs a model that is not configured.
        """
        strategy, index = named(strategy, index)
        checked = check_parameters(strategy, parameters)
        if len(note) > LONGEST_NOTE:
            raise InvalidInput(f"The note has {len(note):,} characters; shorten it to at most {LONGEST_NOTE:,}.")
        chosen = self._corpus.index(index)
        if chosen.status != "ready":
            raise Conflict(f"The index {chosen.name!r} is {chosen.status}; finish building it before it serves.")
        key = self.key(scope)
        if key == EVERYWHERE and strategy_named(strategy).needs_scope:
            raise InvalidInput(
                f"The strategy {strategy!r} needs a scope, so it cannot serve everywhere; promote it for a project, "
                "a folder or a source."
            )
        self._requests.check_usable(strategy)
        self._requests.check_named(checked)
        return self._corpus.promotions.add(key, strategy, checked, chosen.name if index else None, note.strip())

    def undo(self, scope: Scope | None = None) -> Promotion | None:
        """Take back a scope's newest promotion and return what serves it now (None: the built-in default).

        Raises:
            Conflict: the scope has no promotion.
        """
        key = self.key(scope)
        if not self._corpus.promotions.undo(key):
            raise Conflict(f"Nothing is promoted for {key!r}, so there is nothing to undo.")
        return self.serving(scope)

    def serving(self, scope: Scope | None = None) -> Promotion | None:
        """Return the promotion that serves a search in a scope; None where it is the built-in default."""
        return self._corpus.promotions.serving(promotion_keys(self._requests.resolve(scope or Scope())))

    def current(self) -> list[Promotion]:
        """Return the promotions that serve now, one a scope."""
        return [promotion for promotion in self._corpus.promotions.list() if promotion.serves]

    def history(self, scope: Scope | None = None) -> list[Promotion]:
        """Return all versions of a scope, newest first; of every scope where none is given."""
        return self._corpus.promotions.list(None if scope is None else [self.key(scope)])

    def key(self, scope: Scope | None) -> str:
        """Return the one key that a scope's own promotions have: "everywhere", "project:ID", "folder:ID", "source:ID".

        Raises:
            ScopeError: the scope has none, or names what does not exist.
        """
        scope = scope or Scope()
        scope = replace(scope, names="prefer", ignored_names=())  # they belong to a question, not to a place
        plain = Scope(kind=scope.kind, project=scope.project, folder=scope.folder, sources=scope.sources)
        if scope != plain or scope.kind == "global" or (scope.sources is not None and len(scope.sources) != 1):
            raise ScopeError(
                "A strategy is promoted everywhere, for a project, a folder or one source; name one of them."
            )
        resolved = self._requests.resolve(scope)
        if scope.sources:
            inside = resolved.source_ids or ()
            return f"source:{inside[0] if inside else self._corpus.sources.find(scope.sources[0]).id}"
        if scope.folder:
            return f"folder:{resolved.folder_id}"
        return f"project:{resolved.project_id}" if scope.project else EVERYWHERE

    @property
    def built_in(self) -> str:
        """The strategy that serves where nothing is promoted."""
        return DEFAULT_STRATEGY


# --- Rankers: the trained weights of the strategy ``learned``, listed, kept, exported and imported ---


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

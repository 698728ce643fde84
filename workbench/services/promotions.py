"""Promotions: which strategy serves a scope; and trained rankers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from workbench.errors import Conflict, InvalidInput, ScopeError
from workbench.retrieval.parameters import DEFAULT_RANKER
from workbench.retrieval.ranker import check_name, check_weights, dump_ranker, load_default_ranker, parse_ranker
from workbench.retrieval.strategies import (
    DEFAULT_STRATEGY,
    check_index,
    check_parameters,
    split_strategy,
    strategy_named,
)
from workbench.services.corpus import Corpus
from workbench.services.search import Requests, list_promotion_keys
from workbench.types import EVERYWHERE_KEY, Index, ParameterValue, Promotion, Proposal, Ranker, Scope

MAX_NOTE_CHARS = 1000  # characters
MAX_REASON_CHARS, MAX_PROPOSER_CHARS = 900, 80  # of a proposal, whose reason and proposer are the note of its promotion


class PromotionService:
    """Operations on promotions. The most specific scope wins: source, folder, project, everywhere."""

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
        rival: str = "",
    ) -> Promotion:
        """Make a strategy, with its parameters and index, the default of a scope.

        Args:
            strategy: Name of a strategy, or NAME@INDEX.
            scope: All documents (None), a project, a folder or one source.
            parameters: Parameters of the strategy, by name.
            index: Index to search; the default index if None.
            note: Reason, up to 1,000 characters.
            rival: Another strategy, or NAME@INDEX. Searches of agents then mix the results of both, to see whose
                documents they open; ``wb.interleavings()`` returns the outcome.

        Raises:
            InvalidInput: The strategy, a parameter, the note or the rival is invalid.
            NotFound: No such index or ranker.
            ScopeError: No such project, folder or source, or the scope cannot have a promotion.
            Conflict: The index is not completely built.
            ConfigurationError: The strategy needs a model that is not configured.
        """
        strategy, index = split_strategy(strategy, index)
        checked = check_parameters(strategy, parameters)
        if len(note) > MAX_NOTE_CHARS:
            raise InvalidInput(f"The note has {len(note):,} characters; shorten it to at most {MAX_NOTE_CHARS:,}.")
        key = self.key(scope)
        chosen = self._check_service(strategy, index, key, checked)
        self._requests.find_ranker(checked)  # it must exist
        self._check_rival(rival, strategy, chosen, key)
        own_index = chosen.name if index else None
        return self._corpus.promotions.add(key, strategy, checked, own_index, note.strip(), rival)

    def _check_service(
        self, strategy: str, index: str | None, key: str, parameters: Mapping[str, ParameterValue]
    ) -> Index:
        """Return the index of a strategy that can serve the scope of a key; raises as ``promote``."""
        chosen = self._corpus.index(index)
        check_index(strategy_named(strategy), chosen)
        if chosen.status != "ready":
            raise Conflict(f"The index {chosen.name!r} is {chosen.status}; finish building it first.")
        if key == EVERYWHERE_KEY and strategy_named(strategy).needs_scope:
            raise InvalidInput(
                f"The strategy {strategy!r} needs a scope; promote it for a project, a folder or a source."
            )
        self._requests.check_usable(strategy, parameters)
        return chosen

    def _check_rival(self, rival: str, strategy: str, index: Index, key: str) -> None:
        """Check a rival, if there is one; raises as ``promote``."""
        if rival:
            name, named = split_strategy(rival, None)
            other = self._check_service(name, named, key, check_parameters(name, None))
            if (name, other.name) == (strategy, index.name):
                raise InvalidInput(f"The rival is {strategy!r} itself; name another strategy.")

    def propose(
        self,
        strategy: str,
        reason: str,
        *,
        proposed_by: str = "",
        scope: Scope | None = None,
        parameters: Mapping[str, object] | None = None,
        index: str | None = None,
        rival: str = "",
    ) -> Proposal:
        """Store a promotion for a person to accept or reject; nothing changes until then.

        Args:
            strategy: Name of a strategy, or NAME@INDEX.
            reason: Why, up to 900 characters.
            proposed_by: Who proposes it, such as an agent.
            scope: All documents (None), a project or one source.
            parameters: Parameters of the strategy, by name.
            index: Index to search; the default index if None.
            rival: Strategy to interleave with, as in ``promote``.

        Raises:
            InvalidInput: The strategy, a parameter, the reason, the proposer or the rival is invalid.
            NotFound: No such index. ScopeError: No such project or source, or another scope.
        """
        strategy, index = split_strategy(strategy, index)
        checked = check_parameters(strategy, parameters)
        if not reason.strip() or len(reason) > MAX_REASON_CHARS:
            raise InvalidInput(f"Give a reason of 1 to {MAX_REASON_CHARS} characters.")
        if len(proposed_by.strip()) > MAX_PROPOSER_CHARS:
            raise InvalidInput(f"Invalid name of the proposer; use at most {MAX_PROPOSER_CHARS} characters.")
        chosen = self._corpus.index(index)
        scope_key = self.key(scope)
        kind, _, key = scope_key.partition(":")
        if kind == "folder":
            raise ScopeError("A promotion can be proposed everywhere, for a project or for one source.")
        values: dict[str, object] = {"project_id": None, "source_id": None, "strategy": strategy}
        values |= {
            "index": chosen.name if index else None,
            "rival": rival,
            "reason": reason.strip(),
            "proposed_by": proposed_by.strip(),
        }
        self._check_rival(rival, strategy, chosen, scope_key)
        if key:
            values[f"{kind}_id"] = key
        return self._corpus.proposals.list(self._corpus.proposals.add(values, checked))[0]

    def proposals(self, *, decided: bool = False) -> list[Proposal]:
        """Return the proposals that wait for a decision, oldest first, also those that are ``decided``."""
        return self._corpus.proposals.list(decided=decided)

    def accept(self, proposal_id: int) -> Promotion:
        """Promote what was proposed. Raises NotFound if it is not open, and the errors of ``promote``."""
        with self._corpus.proposals.decide(proposal_id, accepted=True) as one:
            by = f" (proposed by {one.proposed_by})" if one.proposed_by else ""
            return self.promote(
                one.strategy, scope=one.scope, parameters=one.parameters, index=one.index, note=f"{one.reason}{by}",
                rival=one.rival,
            )  # fmt: skip

    def reject(self, proposal_id: int, why: str = "") -> Proposal:
        """Reject a proposal; its reason then starts with ``why``, for the agent. Raises NotFound if it is not open."""
        note = f"Rejected: {why.strip()} | " if why.strip() else ""
        with self._corpus.proposals.decide(proposal_id, accepted=False, note=note):
            pass
        return self._corpus.proposals.list(proposal_id)[0]

    def undo(self, scope: Scope | None = None) -> Promotion | None:
        """Undo a scope's newest promotion, and return the one now in effect (None for the built-in default).

        Raises:
            Conflict: The scope has no promotion.
        """
        key = self.key(scope)
        if not self._corpus.promotions.undo(key):
            raise Conflict(f"Nothing is promoted for {key!r}.")
        return self.find_active(scope)

    def find_active(self, scope: Scope | None = None) -> Promotion | None:
        """Return the promotion that serves a scope; None for the built-in default."""
        return self._corpus.promotions.find_active(list_promotion_keys(self._requests.resolve(scope or Scope())))

    def current(self) -> list[Promotion]:
        """Return the promotions in effect, one per scope."""
        return [promotion for promotion in self._corpus.promotions.list() if promotion.serves]

    def history(self, scope: Scope | None = None) -> list[Promotion]:
        """Return all versions of a scope's promotions, newest first; all scopes if None."""
        return self._corpus.promotions.list(None if scope is None else [self.key(scope)])

    def key(self, scope: Scope | None) -> str:
        """Return the key of a scope's promotions: "everywhere", "project:ID", "folder:ID" or "source:ID".

        Raises:
            ScopeError: The scope cannot have a promotion, or contains an unknown name.
        """
        scope = scope or Scope()
        scope = replace(scope, names="prefer", ignored_names=())  # options of a question, not of a scope
        plain = Scope(kind=scope.kind, project=scope.project, folder=scope.folder, sources=scope.sources)
        if scope != plain or scope.kind == "global" or (scope.sources is not None and len(scope.sources) != 1):
            raise ScopeError(
                "A strategy can be promoted everywhere, for a project, a folder or one source; choose one of these."
            )
        resolved = self._requests.resolve(scope)
        if scope.sources:
            inside = resolved.source_ids or ()
            return f"source:{inside[0] if inside else self._corpus.sources.find(scope.sources[0]).id}"
        if scope.folder:
            return f"folder:{resolved.folder_id}"
        return f"project:{resolved.project_id}" if scope.project else EVERYWHERE_KEY

    @property
    def built_in(self) -> str:
        """The strategy that is used if none is promoted."""
        return DEFAULT_STRATEGY


# Rankers: trained weights of the strategy learned


class RankerService:
    """Operations on rankers. Their weights never change: each training creates a ranker with a new name.

    Training is in ``evals.learning``.
    """

    def __init__(self, corpus: Corpus) -> None:
        self._table = corpus.rankers

    def list(self) -> list[Ranker]:
        """Return the built-in ranker, then all others by name."""
        return [load_default_ranker(), *self._table.list()]

    def get(self, name: str) -> Ranker:
        """Return a ranker. Raises NotFound."""
        return load_default_ranker() if name == DEFAULT_RANKER else self._table.get(name)

    def check_new(self, name: str) -> str:
        """Return a valid, unused name for a ranker, with normalised spaces.

        Raises:
            InvalidInput: The name is invalid.
            Conflict: There is a ranker with this name.
        """
        checked = check_name(name)
        if any(ranker.name == checked for ranker in self.list()):
            raise _name_conflict(checked)
        return checked

    def save(self, ranker: Ranker) -> Ranker:
        """Store a ranker, and return it as stored.

        Raises:
            InvalidInput: The name or the weights are invalid.
            Conflict: There is a ranker with this name.
        """
        name = check_name(ranker.name)
        check_weights(dict(ranker.weights))
        if name == DEFAULT_RANKER or not self._table.add(replace(ranker, name=name)):
            raise _name_conflict(name)
        return self._table.get(name)

    def delete(self, name: str) -> None:
        """Delete a ranker. Raises NotFound, or Conflict if it is the built-in one, or a promotion uses it."""
        ranker = self.get(name)
        if ranker.name == DEFAULT_RANKER:
            raise Conflict(f"The ranker {DEFAULT_RANKER!r} is built in; only trained rankers can be deleted.")
        serving = self._table.list_scopes(name)
        if serving:
            raise Conflict(f"The ranker {name!r} is in use ({', '.join(serving)}); promote something else there first.")
        self._table.delete(name)

    def export(self, name: str) -> str:
        """Return a ranker as JSON. Raises NotFound."""
        return dump_ranker(self.get(name))

    def restore(self, text: str, name: str | None = None) -> Ranker:
        """Store an exported ranker, under another name if one is given.

        Raises:
            InvalidInput: The text is not a valid ranker.
            Conflict: There is a ranker with this name.
        """
        ranker = parse_ranker(text)
        if name is not None:
            ranker = replace(ranker, name=name)
        return self.save(ranker)


def _name_conflict(name: str) -> Conflict:
    return Conflict(f"There is already a ranker {name!r}; choose another name, or delete that one first.")

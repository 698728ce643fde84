"""Which strategy serves a scope, and trained and imported rankers by name."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager

from psycopg.types.json import Jsonb

from workbench.errors import NotFound
from workbench.storage.database import Row, Table, bind_json, clean_parameters, statement
from workbench.types import ParameterValue, Promotion, Proposal, Ranker


class Promotions(Table):
    """The table ``promotions``; a scope's key is "everywhere", "project:ID", "folder:ID" or "source:ID"."""

    def add(
        self,
        scope_key: str,
        strategy: str,
        parameters: Mapping[str, ParameterValue],
        index: str | None,
        note: str,
        rival: str = "",
    ) -> Promotion:
        """Store a scope's next version and return it."""
        kind, _, key = scope_key.partition(":")
        values: dict[str, object] = {"project_id": None, "folder_id": None, "source_id": None, "scope_key": scope_key}
        values |= {"strategy": strategy, "parameters": Jsonb(dict(parameters))}
        values |= {"index": index, "note": clean_parameters(note), "rival": rival}
        if key:
            values[f"{kind}_id"] = key
        with self._database.transaction() as connection:
            connection.execute(statement("promotion_lock"))
            connection.execute(statement("promotion_insert"), values)
        return self.list([scope_key])[0]

    def list(self, scope_keys: Sequence[str] | None = None) -> list[Promotion]:
        """Return every version for the given scopes, or for all, the newest in each scope first."""
        keys = None if scope_keys is None else list(scope_keys)
        return [_promotion(row) for row in self._rows("promotion_list", {"keys": keys})]

    def find_active(self, scope_keys: Sequence[str]) -> Promotion | None:
        """Return the promotion of the first scope that has one; keys are ordered from specific to general."""
        row = self._row("promotion_serving", {"keys": list(scope_keys)})
        return _promotion(row) if row else None

    def indexes(self) -> Sequence[str]:
        """Return the names of the finished indexes that are promoted in any scope."""
        return self._column("promotion_indexes")

    def undo(self, scope_key: str) -> bool:
        return self._row("promotion_undo", {"scope_key": scope_key}) is not None


class Proposals(Table):
    """The table ``proposals``."""

    def add(self, proposal: Mapping[str, object], parameters: Mapping[str, ParameterValue]) -> int:
        """Store a proposal and return its id."""
        values = {**proposal, "parameters": Jsonb(dict(parameters))}
        return int(self._value("proposal_insert", clean_parameters(values)))

    def list(self, proposal_id: int | None = None, *, decided: bool = False) -> list[Proposal]:
        """Return the open proposals, also those that are ``decided``, or the one with an id."""
        return [Proposal(**row) for row in self._rows("proposal_list", {"id": proposal_id, "decided": decided})]

    @contextmanager
    def decide(self, proposal_id: int, *, accepted: bool, note: str = "") -> Generator[Proposal]:
        """Yield an open proposal and close it, unless the block fails; other decisions wait. Raises NotFound."""
        open_ones, values = self.list(proposal_id), {"id": proposal_id, "accepted": accepted, "note": note}
        missing = NotFound("proposal", str(proposal_id), "List the proposals with 'workbench strategies proposals'.")
        with self._database.transaction() as connection:
            if connection.execute(statement("proposal_decide"), values).fetchone() is None:
                raise missing
            yield open_ones[0]


def _promotion(row: Row) -> Promotion:
    title = row.get("scope_title", "")
    names = ("version", "strategy", "parameters", "rival", "note", "promoted_at", "undone_at")
    return Promotion(
        scope=row["scope_key"],
        index=row["index_name"],
        serves=bool(row.get("serves", True)),
        scope_title=f"{row['folder_project']} / {title}" if row.get("folder_project") else title,
        **{name: row[name] for name in names},
    )


# --- Trained and imported rankers, by name ---


class Rankers(Table):
    """The table ``rankers``, without the built-in ranker."""

    def list(self) -> list[Ranker]:
        return [Ranker(**row) for row in self._rows("ranker_list", {"name": None})]

    def get(self, name: str) -> Ranker:
        """Return a ranker. Raises NotFound."""
        missing = NotFound("ranker", name, "List the rankers with 'workbench rankers list'.")
        return Ranker(**self._get("ranker_list", {"name": name}, missing))

    def add(self, ranker: Ranker) -> bool:
        names = ("name", "trained_on", "index", "note", "version", "questions")
        values = {name: getattr(ranker, name) for name in names}
        values |= {"weights": bind_json(ranker.weights), "figures": bind_json(ranker.figures)}
        return self._row("ranker_insert", values) is not None

    def list_scopes(self, name: str) -> list[str]:
        return self._column("ranker_serving", {"name": name})

    def delete(self, name: str) -> bool:
        """Delete a ranker; False if there is none.

        Its runs are deleted too, and its promotions can no longer be restored by undo.
        """
        with self._database.transaction() as connection:
            connection.execute(statement("ranker_forget_runs"), {"name": name})
            connection.execute(statement("ranker_withdraw"), {"name": name})
            return connection.execute(statement("ranker_delete"), {"name": name}).fetchone() is not None

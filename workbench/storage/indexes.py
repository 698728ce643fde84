"""Indexes: each is a (chunker, embedding model) pair over the same documents, with separate tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from psycopg.types.json import Jsonb

from workbench.errors import Conflict, InvalidInput, NotFound, list_choices
from workbench.storage.database import Connection, Row, Table, statement
from workbench.storage.graph import SERVING_PARAMETERS
from workbench.types import Index, JsonValue, ParameterValue

_LIST = statement("index_list")


def check_index_name(name: str) -> None:
    """Raise InvalidInput if a name is not valid as part of a table name."""
    if not (name.isascii() and name.replace("_", "a").isalnum() and name[:1].islower() and name == name.lower()):
        raise InvalidInput(
            f"Invalid index name {name!r}: use lower-case letters, digits and _, starting with a letter."
        )
    if len(name) > 40:
        raise InvalidInput(f"The index name {name!r} is too long; use at most 40 characters.")


class Indexes(Table):
    def list(self, *, dataset: str | None = None) -> list[Index]:
        """Return the user's indexes, or those of one evaluation corpus, with their counts."""
        rows = self._database.rows(_LIST, {"name": None, "dataset": dataset, **SERVING_PARAMETERS})
        return [_index(row) for row in rows]

    def get(self, name: str | None = None) -> Index:
        """Return an index by name, or the default one, without counts, which require a scan.

        Raises:
            NotFound: There is no such index; the message lists the existing ones.
        """
        row = self._row("index_get", {"name": name, **SERVING_PARAMETERS})
        if row is None:
            valid = list_choices(index.name for index in self.list())
            raise NotFound("index", name or "the default", f"Valid indexes: {valid}.")
        return _index(row)

    def with_counts(self, name: str) -> Index:
        """Return an index with the number of its documents and passages. Raises NotFound."""
        row = self._database.row(_LIST, {"name": name, "dataset": None, **SERVING_PARAMETERS})
        return _index(row) if row else self.get(name)

    def create(
        self,
        name: str,
        *,
        chunker: str,
        chunker_options: Mapping[str, ParameterValue],
        embedding_model: str,
        dimensions: int,
        is_default: bool = False,
        dataset: str | None = None,
        status: str = "ready",
        transformations: Sequence[str] = (),
        attachment: Mapping[str, JsonValue] | None = None,
        attachment_url: str | None = None,
    ) -> Index:
        """Create an index and its tables in one transaction; with ``attachment`` its vectors are in another table.

        Raises:
            InvalidInput: The name is not valid as part of a table name.
            Conflict: The name is taken.
        """
        check_index_name(name)
        values = {
            "name": name,
            "chunker": chunker,
            "chunker_options": Jsonb(dict(chunker_options)),
            "transformations": Jsonb(list(transformations)),
            "embedding_model": embedding_model,
            "dimensions": dimensions,
            "is_default": is_default,
            "dataset": dataset,
            "status": status,
            "attachment": None if attachment is None else Jsonb(dict(attachment)),
            "attachment_url": attachment_url,
        }
        with self._database.transaction() as connection:
            connection.execute(statement("index_insert"), values)
            connection.execute(statement("index_create_tables"), {"name": name, "dimensions": dimensions})
        return self.get(name)

    def set_default(self, name: str) -> Index:
        """Make an index the default. Raises Conflict if it is still being built, or reads a table in place."""
        index = self.get(name)
        if index.is_attached:
            raise Conflict(
                f"{name!r} reads a table in place, so new documents cannot be added to it; promote a strategy with it "
                "instead."
            )
        if index.status != "ready":
            raise Conflict(f"The index {name!r} is {index.status}; finish building it before you make it the default.")
        with self._database.transaction() as connection:
            connection.execute(statement("index_undefault"))
            connection.execute(statement("index_default"), {"name": name})
        return self.get(name)

    def attachment_url(self, name: str) -> str | None:
        """Return the address of an attached table with its password; None for a table of our own database."""
        return self._value("index_attachment_url", {"name": name})

    def set_attachment(self, name: str, attachment: Mapping[str, JsonValue]) -> None:
        """Store the state of an attached table."""
        self._rows("index_attach", {"name": name, "attachment": Jsonb(dict(attachment))})

    def set_status(self, name: str, status: str) -> None:
        """Mark an index as building, ready or failed."""
        self._rows("index_status", {"name": name, "status": status})

    def clear_notes(self, name: str) -> None:
        """Remove the notes of the previous build."""
        self._rows("index_clear_notes", {"name": name})

    def add_notes(self, name: str, notes: Sequence[str]) -> None:
        """Add sentences on what a build left out."""
        self._rows("index_add_notes", {"name": name, "notes": Jsonb(list(notes))})

    def set_nearness(self, name: str, nearness: Mapping[str, float]) -> None:
        self._rows("index_nearness", {"name": name, "nearness": Jsonb(dict(nearness))})

    def count_flagged(self, name: str) -> tuple[int, int]:
        """Return the number of passages without a span, and of those that are longer than the model reads."""
        row = self._row("count_flagged_passages", index=name)
        return (int(row["no_span"]), int(row["cut_off"])) if row else (0, 0)

    def component_results(self, keys: Sequence[bytes]) -> dict[bytes, JsonValue]:
        return {bytes(row["key"]): row["nodes"] for row in self._rows("component_results", {"keys": list(keys)})}

    def keep_component_results(self, results: Mapping[bytes, JsonValue]) -> None:
        values = {"keys": list(results), "nodes": [Jsonb(nodes) for nodes in results.values()]}
        self._rows("component_results_insert", values)

    def delete(self, name: str) -> Index:
        """Drop an index and its tables. Raises Conflict if it is the default index, or a job is building it."""
        index = self.get(name)
        if index.is_default:
            raise Conflict(f"{name!r} is the default index; make another one the default before you delete it.")
        builder = self._row("index_builder", {"name": name})
        if builder is not None:
            raise Conflict(f"The index {name!r} is being built by job {builder['id']}; cancel the job first.")
        for corpus in self._rows("index_names_of_attached", {"name": name}):
            self.drop(corpus["name"])
        self.drop(name)
        return index

    def replace(self, name: str, successor: str) -> Index:
        """Replace an index's passages and definition with another one's, which is deleted; name and promotions stay.

        Raises:
            Conflict: The successor is still being built.
        """
        if self.get(successor).status != "ready":
            raise Conflict(f"The index {successor!r} is still being built; finish it before it replaces another one.")
        with self._database.transaction() as connection:
            for index in sorted((name, successor)):
                self.take_turn(connection, index)
            connection.execute(statement("index_replace"), {"name": name, "successor": successor})
        return self.get(name)

    def set_model(self, name: str, model: str) -> None:
        """Change the name of an index's model, whose vectors are the same."""
        self._rows("index_model", {"name": name, "model": model})

    def drop(self, name: str) -> None:
        """Drop an index and its tables in one transaction, without checks."""
        with self._database.transaction() as connection:
            connection.execute(statement("index_drop_tables"), {"name": name})
            connection.execute(statement("index_delete"), {"name": name})

    def of_dataset(self, dataset: str) -> list[str]:
        return self._column("index_names_of_dataset", {"dataset": dataset})

    def of_model(self, model: str) -> list[str]:
        return self._column("index_names_of_model", {"model": model})

    def take_turn(self, connection: Connection, index: str) -> None:
        """Wait until no other transaction is writing to this index; call it before writing passages."""
        connection.execute(statement("index_turn"), {"name": index})

    def record_document(
        self, connection: Connection, index: str, document_id: str, content_hash: str, passages: int
    ) -> None:
        """Record in the caller's transaction that an index holds this version of a document."""
        connection.execute(
            statement("index_document_upsert"),
            {"index": index, "document_id": document_id, "content_hash": content_hash, "passages": passages},
        )

    def languages(self, name: str, source_ids: Sequence[str] | None = None) -> dict[str, int]:
        """Return the number of an index's passages by language (Postgres' names), the most frequent first.

        With ``source_ids``, only passages of these sources count.
        """
        values = {"index": name, "source_ids": None if source_ids is None else list(source_ids)}
        return {row["language"]: int(row["passages"]) for row in self._rows("languages_of_index", values)}

    def bytes_on_disk(self, name: str) -> int:
        """Return the size of an index's tables, in bytes."""
        return int(self._value("index_size", {"name": name}))


def _index(row: Row) -> Index:
    return Index(**{name: row[name] for name in Index.__dataclass_fields__ if name in row})

"""A pgvector table that belongs to someone else: described, searched in place, and never written to.

Every statement runs in a READ ONLY transaction with a time limit. Its rows are the passages of an index whose texts
and terms are in our database; its vectors remain there (``AttachedStore``).
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import time
from collections.abc import Collection, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from psycopg import errors, sql

from workbench.errors import InvalidInput, NotFound, StorageError, TableUnavailable, list_choices
from workbench.storage.passages import Row, fetch_document_ids, fetch_rows, make_row_id, parse_vector
from workbench.storage.ranking import (
    DEPTH_GROWTH,
    EXACT_UP_TO,
    Connection,
    Database,
    LegRanking,
    ScoreAndRank,
    bind_integers,
    fetch_one,
    fetch_scope_ids,
    filter_passages,
    statement,
)
from workbench.storage.store import PassageStore
from workbench.types import Index, JsonValue, ResolvedScope, Value, as_integer

SEARCH_TIMEOUT_S = 10  # per statement of a search
SCAN_TIMEOUT_S = 600  # per statement that reads the whole table
CONNECT_TIMEOUT_S = 5.0
RETRY_AFTER_S = 2.0  # after a failure, so that one search does not wait repeatedly for an unavailable server
MAX_RANKED_ROWS = 40_000  # rows that one search of a large scope examines
SAMPLE_ROWS = 20  # rows whose vectors are compared with the model's own
MIN_EF_SEARCH, MAX_EF_SEARCH = 100, 1000
UNIT_TOLERANCE = 0.01  # vectors of a length between 1 - this and 1 + this have the same order by all distances

OPERATORS = {"cosine": "<=>", "l2": "<->", "ip": "<#>"}
VECTOR_TYPES = ("vector", "halfvec")
ROLES = ("id", "text", "vector", "metadata")
_OPERATOR_CLASS = re.compile(r"^(?:vector|halfvec)_(cosine|l2|ip)_ops$")
_COLUMNS_OF_FORMATS = {  # by which the tables of LangChain and LlamaIndex are recognised; others are a "table"
    "langchain": {
        "collection": "collection_id",
        "text": "document",
        "vector": "embedding",
        "metadata": "cmetadata",
    },
    "langchain-store": {"id": "langchain_id", "text": "content", "vector": "embedding"},
    "llamaindex": {"id": "node_id", "text": "text", "vector": "embedding", "metadata": "metadata_"},
}
_TEXT_NAMES = ("text", "content", "document", "body", "chunk", "page_content", "passage")
_TEXT_TYPES = ("text", "character varying", "character", "citext")
_JSON_TYPES = ("json", "jsonb")
_METADATA_TYPES = (*_TEXT_TYPES, *_JSON_TYPES, "uuid", "date", "boolean", "integer", "bigint", "smallint", "numeric")
MAX_METADATA_COLUMNS = 40


@dataclass(frozen=True, slots=True)
class TableMap(Value):
    """Which columns of a table are searched, and how."""

    table: str  # quoted, with its schema
    format: str  # one of _COLUMNS_OF_FORMATS, or "table"
    id: str
    text: str
    vector: str
    id_type: str
    operand: str  # compared with a question: the column, or the expression of its index
    operand_type: str  # vector or halfvec
    extension_schema: str  # of pgvector
    distance: str = "cosine"
    metadata: tuple[str, ...] = ()
    json_metadata: tuple[str, ...] = ()  # columns that contain JSON objects
    filter: Mapping[str, str] = field(default_factory=dict[str, str])
    collection: str = ""  # of a LangChain table
    vector_index: str = ""  # "" if every distance is computed
    iterates: bool = False  # whether pgvector can continue a search that a filter has emptied

    @classmethod
    def parse(cls, stored: Mapping[str, object]) -> TableMap:
        """Return the map written by ``to_dict``."""
        values: dict[str, Any] = {name: stored[name] for name in cls.__dataclass_fields__}
        values |= {name: tuple(values[name]) for name in ("metadata", "json_metadata")}
        return cls(**values)


@dataclass(frozen=True, slots=True)
class TableRow:
    """A row as it is read: its id as text, its text and its metadata."""

    key: str
    text: str
    metadata: Mapping[str, JsonValue]
    vector: NDArray[np.float32] | None = None  # only for a sample


@dataclass(frozen=True, slots=True)
class TableCounts(Value):
    """Rows of a table, within its filter."""

    rows: int
    without_vector: int
    without_text: int
    repeated: int  # rows whose id another row has
    dimensions: tuple[int, ...]  # without duplicates


@dataclass(frozen=True, slots=True)
class _Column:
    name: str
    type: str
    readable: bool
    is_key: bool


class AttachedTable:
    """A table or view on a server, read through its map."""

    def __init__(self, database: Database, mapped: TableMap) -> None:
        """Nothing is connected before the first use."""
        self.database, self.map = database, mapped
        self._failed: tuple[float, TableUnavailable] | None = None

    # Statements

    @contextmanager
    def open(self, seconds: int = SEARCH_TIMEOUT_S) -> Generator[Connection]:
        """Yield a connection in a READ ONLY transaction with a time limit.

        Raises:
            TableUnavailable: The server is unreachable, or a statement failed.
        """
        if self._failed is not None and time.monotonic() - self._failed[0] < RETRY_AFTER_S:
            raise self._failed[1]
        try:
            with read_only(self.database, self.map.extension_schema, seconds) as connection:
                yield connection
        except TableUnavailable as error:
            self._failed = (time.monotonic(), error)
            raise

    def select(self, what: str, rest: str = "", **parts: sql.Composable) -> sql.Composed:
        """Compose a statement over the rows that the map includes; the texts may use the map's columns by name."""
        mapped = self.map
        names: dict[str, sql.Composable] = {
            "id": _verbatim(sql.Identifier(mapped.id)),
            "text": _verbatim(sql.Identifier(mapped.text)),
            "vector": _verbatim(sql.Identifier(mapped.vector)),
            "operand": _verbatim(mapped.operand),
            "operator": _verbatim(OPERATORS[mapped.distance]),
            "type": _verbatim(mapped.operand_type),
            "id_type": _verbatim(mapped.id_type),
            "metadata": self._metadata,
            "usable": self._usable,
            **parts,
        }
        query = f"SELECT {what} FROM {{table}} AS t WHERE {{condition}} {rest}"
        table = _verbatim(mapped.table)
        return sql.SQL(cast("Any", query)).format(table=table, condition=self._condition, **names)

    @cached_property
    def _metadata(self) -> sql.Composable:
        mapped = self.map
        plain = [name for name in mapped.metadata if name not in mapped.json_metadata]
        pairs = [_verbatim(part) for name in plain for part in (sql.Literal(name), sql.Identifier(name))]
        objects: list[sql.Composable] = [sql.SQL("jsonb_build_object({})").format(sql.SQL(", ").join(pairs))]
        for name in mapped.json_metadata:
            column = _verbatim(sql.Identifier(name))
            is_object = sql.SQL("CASE WHEN jsonb_typeof({0}::jsonb) = 'object' THEN {0}::jsonb ELSE '{{}}' END")
            objects.append(is_object.format(column))
        return sql.SQL("({})").format(sql.SQL(" || ").join(objects))

    @cached_property
    def _condition(self) -> sql.Composable:
        mapped = self.map
        conditions: list[sql.Composable] = [sql.SQL("true")]
        for name, value in mapped.filter.items():
            if name in mapped.metadata or name in (mapped.id, mapped.text):
                left: sql.Composable = sql.SQL("{}::text").format(_verbatim(sql.Identifier(name)))
            else:
                left = sql.SQL("{} ->> {}").format(self._metadata, _verbatim(sql.Literal(name)))
            conditions.append(sql.SQL("{} = {}").format(left, _verbatim(sql.Literal(value))))
        if mapped.collection:
            schema = mapped.table.rpartition(".")[0]
            conditions.append(
                sql.SQL("collection_id = (SELECT uuid FROM {}.langchain_pg_collection WHERE name = {})").format(
                    _verbatim(schema), _verbatim(sql.Literal(mapped.collection))
                )
            )
        return sql.SQL(" AND ").join(conditions)

    @cached_property
    def _usable(self) -> sql.Composable:
        columns = {name: _verbatim(sql.Identifier(getattr(self.map, name))) for name in ("id", "text", "vector")}
        return sql.SQL("{id} IS NOT NULL AND {vector} IS NOT NULL AND {text} ~ '\\S'").format(**columns)

    # Reading the table

    def count(self) -> TableCounts:
        """Count the rows and what is wrong with them, in one scan."""
        what = (
            "count(*) AS rows, count(*) FILTER (WHERE {vector} IS NULL) AS without_vector, "
            "count(*) FILTER (WHERE {vector} IS NOT NULL AND ({text} IS NULL OR {text} !~ '\\S')) AS without_text, "
            "count({id}) FILTER (WHERE {usable}) - count(DISTINCT {id}) FILTER (WHERE {usable}) AS repeated, "
            "coalesce(array_agg(DISTINCT vector_dims({vector})) FILTER (WHERE {vector} IS NOT NULL), '{{}}') AS dims"
        )
        with self.open(SCAN_TIMEOUT_S) as connection:
            row = fetch_one(connection.execute(self.select(what), {}))
        dimensions = tuple(row.pop("dims"))
        return TableCounts(**row, dimensions=dimensions)

    def sample(self) -> list[TableRow]:
        """Return some rows with their vectors: the first ones with text, since a random sample would scan the table."""
        what = "{id}::text AS key, {text} AS text, {metadata} AS metadata, {vector}::text AS vector"
        query = self.select(what, "AND {usable} LIMIT {limit}", limit=sql.Literal(SAMPLE_ROWS))
        rows = self._rows(query)
        return [TableRow(row["key"], row["text"], row["metadata"], parse_vector(row["vector"])) for row in rows]

    def list_hashes(self) -> tuple[dict[str, bytes], str]:
        """Return the hash of each row's text, metadata and vector by its id, and the state of the table before."""
        query = self.select(
            "{id}::text AS key, decode(md5({text} || {metadata}::text || {vector}::text), 'hex') AS hash",
            "AND {usable}",
        )
        hashes: dict[str, bytes] = {}
        with self.open(SCAN_TIMEOUT_S) as connection:
            state = self._read_state(connection)
            with connection.cursor(name="rag_workbench_rows") as cursor:
                cursor.itersize = 10_000
                for row in cursor.execute(query, {}):
                    hashes.setdefault(row["key"], bytes(row["hash"]))
        return hashes, state

    def fetch(self, keys: Sequence[str]) -> list[TableRow]:
        """Return the rows with these ids; if several have the same id, the first."""
        query = self.select(
            "DISTINCT ON ({id}) {id}::text AS key, {text} AS text, {metadata} AS metadata",
            "AND {id} = ANY(%(keys)s::text[]::{id_type}[]) AND {usable}",
        )
        return [TableRow(**row) for row in self._rows(query, {"keys": list(keys)})]

    def _rows(self, query: sql.Composed, values: Mapping[str, object] = MappingProxyType({})) -> list[Row]:
        with self.open() as connection:
            return connection.execute(query, values).fetchall()

    def read_state(self) -> str:
        """Return a text that changes with the rows of the table, or of the tables behind a view; cheap."""
        with self.open() as connection:
            return self._read_state(connection)

    def _read_state(self, connection: Connection) -> str:
        return str(fetch_one(connection.execute(statement("attached_state"), {"table": self.map.table}))["state"])

    # Searching it

    def find_nearest(self, vector: NDArray[np.float32], limit: int) -> dict[str, float]:
        """Return the cosines of the nearest rows by their ids, by the table's own index and distance."""
        query = self.select(
            "{id}::text AS key, 1 - ({operand} <=> %(vector)s::{type}) AS cosine",
            "ORDER BY {operand} {operator} %(vector)s::{type} LIMIT %(limit)s",
        )
        with self.open() as connection:
            breadth = str(min(MAX_EF_SEARCH, max(MIN_EF_SEARCH, limit)))
            connection.execute(statement("attached_breadth"), {"breadth": breadth})
            if self.map.iterates:
                connection.execute(statement("attached_iterates"))
            rows = connection.execute(query, {"vector": _literal(vector), "limit": limit}).fetchall()
        return _read_cosines(rows)

    def fetch_cosines(self, vector: NDArray[np.float32], keys: Sequence[str]) -> dict[str, float]:
        query = self.select(
            "{id}::text AS key, 1 - ({operand} <=> %(vector)s::{type}) AS cosine",
            "AND {id} = ANY(%(keys)s::text[]::{id_type}[])",
        )
        return _read_cosines(self._rows(query, {"vector": _literal(vector), "keys": list(keys)}))

    def fetch_vectors(self, keys: Sequence[str]) -> dict[str, NDArray[np.float32]]:
        query = self.select(
            "{id}::text AS key, {vector}::text AS vector",
            "AND {id} = ANY(%(keys)s::text[]::{id_type}[]) AND {vector} IS NOT NULL",
        )
        return {row["key"]: parse_vector(row["vector"]) for row in self._rows(query, {"keys": list(keys)})}

    def count_nearer(self, vector: NDArray[np.float32], cosine: float, keys: Sequence[str] | None) -> int:
        """Return how many rows (None for all, else those of ``keys``) are nearer than a cosine."""
        inside = "" if keys is None else "AND {id} = ANY(%(keys)s::text[]::{id_type}[])"
        query = self.select(
            "count(*) AS n", f"AND {{usable}} AND 1 - ({{operand}} <=> %(vector)s::{{type}}) > %(cosine)s {inside}"
        )
        values = {"vector": _literal(vector), "cosine": cosine, "keys": list(keys or ())}
        return int(self._rows(query, values)[0]["n"])


def _verbatim(part: sql.Composable | str) -> sql.Composable:
    """Return a part of a statement whose percent signs are not placeholders."""
    text = part if isinstance(part, str) else part.as_string()
    return sql.SQL(cast("Any", text.replace("%", "%%")))


def _literal(vector: NDArray[np.float32]) -> str:
    return "[" + ",".join(map(repr, vector.tolist())) + "]"


def _read_cosines(rows: Iterable[Mapping[str, Any]]) -> dict[str, float]:
    """Return cosines by key; rows without a vector, and with one of length 0, have none."""
    found: dict[str, float] = {}
    for row in rows:
        if row["cosine"] is not None and math.isfinite(row["cosine"]):
            found.setdefault(row["key"], float(row["cosine"]))
    return found


# what a statement fails with if the owner of a table has changed it since it was attached
_CHANGES = (errors.UndefinedTable, errors.UndefinedColumn, errors.InvalidSchemaName, errors.InsufficientPrivilege)


@contextmanager
def read_only(database: Database, schema: str, seconds: int) -> Generator[Connection]:
    """Yield a connection in a READ ONLY transaction with a time limit; ``schema`` is pgvector's.

    Raises:
        TableUnavailable: The server is unreachable, or a statement failed.
    """
    try:
        with database.transaction() as connection:
            connection.execute("SET TRANSACTION READ ONLY")
            connection.execute(
                statement("attached_limits"), {"milliseconds": str(seconds * 1000), "schema": schema}, prepare=False
            )
            yield connection
    except TableUnavailable:
        raise
    except StorageError as error:
        text = str(error).replace("WORKBENCH_DATABASE_URL", "the address of the attached table")
        if isinstance(error.__cause__, _CHANGES):
            text = (
                f"An attached table at {database.place} was dropped, renamed, altered or closed to its user "
                f"({error.__cause__.diag.message_primary}): restore it, or delete the index that reads it"
            )
        raise TableUnavailable(text[:1].upper() + text[1:]) from error


# Describing a table


@dataclass(frozen=True, slots=True)
class TableRequest:
    """A user's description of a table."""

    table: str  # name of a table or view, with its schema unless that is public
    # Columns by role (id, text, vector, metadata); missing ones are recognised.
    columns: Mapping[str, str] = field(default_factory=dict[str, str])
    collection: str | None = None  # collection of a LangChain table
    # Values that a column or a field of the metadata must have.
    filter: Mapping[str, str] = field(default_factory=dict[str, str])
    distance: str | None = None  # cosine, l2 or ip; None for that of the table's index


def describe_table(database: Database, request: TableRequest) -> tuple[TableMap, list[str]]:
    """Return the map of a table, and notes on its index.

    Raises:
        InvalidInput: The table is not searchable in this way; the message has the reason.
        NotFound: There is no such table.
        TableUnavailable: The server is unreachable.
    """
    _check_request(request)
    with read_only(database, "public", SEARCH_TIMEOUT_S) as connection:
        extension = connection.execute(statement("attached_extension")).fetchone()
        if extension is None:
            raise InvalidInput(f"The database at {database.place} has no pgvector: it has no vectors to search.")
        oid, table = _find_table(connection, database, request.table)
        columns = {
            row["name"]: _Column(**row) for row in connection.execute(statement("attached_columns"), {"oid": oid})
        }
        found = _recognise(columns)
        roles = _choose_columns(request, table, columns, found)
        collection = _choose_collection(connection, table, found, request.collection)
        indexes = connection.execute(statement("attached_vector_indexes"), {"oid": oid}).fetchall()
    names = [name for name in roles["metadata"].split(",") if name]
    mapped = TableMap(
        table=table,
        format=found,
        id=roles["id"],
        text=roles["text"],
        vector=roles["vector"],
        id_type=columns[roles["id"]].type,
        operand=sql.Identifier(roles["vector"]).as_string(),
        operand_type=_base_type(columns[roles["vector"]].type),
        extension_schema=extension["schema"],
        metadata=tuple(names[:MAX_METADATA_COLUMNS]),
        json_metadata=tuple(name for name in names[:MAX_METADATA_COLUMNS] if columns[name].type in _JSON_TYPES),
        filter=dict(request.filter),
        collection=collection,
        iterates=tuple(map(int, extension["version"].split(".")[:2])) >= (0, 8),
    )
    return _choose_index(mapped, indexes, request.distance)


def _check_request(request: TableRequest) -> None:
    unknown = [name for name in request.columns if name not in ROLES]
    if unknown:
        raise InvalidInput(f"Invalid column role {unknown[0]!r}: use one of {list_choices(ROLES)}.")
    if request.distance is not None and request.distance not in OPERATORS:
        raise InvalidInput(f"Invalid distance {request.distance!r}: use one of {list_choices(OPERATORS)}.")
    if not request.table.strip():
        raise InvalidInput("Name the table or view to attach, such as langchain_pg_embedding.")


def _find_table(connection: Connection, database: Database, name: str) -> tuple[int, str]:
    found = re.findall(r'"((?:[^"]|"")+)"|([^."]+)', name.strip())
    parts = [quoted.replace('""', '"') or plain for quoted, plain in found]
    schema, table = (parts[0], parts[1]) if len(parts) > 1 else (None, parts[0])
    rows = connection.execute(statement("attached_tables"), {"table": table, "schema": schema}).fetchall()
    if not rows:
        raise NotFound("table", name, f"The database at {database.place} has no table or view of this name.")
    if len(rows) > 1 and rows[0]["schema"] != "public":
        schemas = list_choices(row["schema"] for row in rows)
        raise InvalidInput(f"There are {len(rows)} tables {table!r}; name the schema, one of {schemas}.")
    row = rows[0]
    if not row["readable"]:
        raise InvalidInput(
            f"The user of the connection may not read {row['schema']}.{row['table']}; grant it SELECT on the table "
            "and USAGE on the schema."
        )
    return row["oid"], sql.Identifier(row["schema"], row["table"]).as_string()


def _base_type(type_name: str) -> str:
    return type_name.partition("(")[0].rpartition(".")[2].strip('"')


def _recognise(columns: Mapping[str, _Column]) -> str:
    known = _COLUMNS_OF_FORMATS.items()
    return next((name for name, wanted in known if set(wanted.values()) <= columns.keys()), "table")


def _choose_columns(request: TableRequest, table: str, columns: Mapping[str, _Column], found: str) -> dict[str, str]:
    """Return the column of each role; "metadata" may be several, separated by commas."""
    vectors = [column.name for column in columns.values() if _base_type(column.type) in VECTOR_TYPES]
    texts = [column.name for column in columns.values() if column.type.partition("(")[0] in _TEXT_TYPES]
    keys = [column.name for column in columns.values() if column.is_key]
    guessed = {
        "id": keys[0] if len(keys) == 1 else next((name for name in ("id", "uuid") if name in columns), ""),
        "text": next((name for name in _TEXT_NAMES if name in texts), texts[0] if len(texts) == 1 else ""),
        "vector": vectors[0] if len(vectors) == 1 else "",
        **_COLUMNS_OF_FORMATS.get(found, {}),
    }
    roles = {**guessed, **{role: name.strip() for role, name in request.columns.items() if name.strip()}}
    if not vectors:
        raise InvalidInput(f"{table} has no column of the type vector or halfvec; only these can be searched.")
    for role in ("id", "text", "vector"):
        if not roles[role]:
            given = vectors if role == "vector" else columns
            raise InvalidInput(
                f"Which column of {table} has the {role}? Name it ({role}=COLUMN), one of {list_choices(given, 30)}."
            )
    if "metadata" not in roles:
        used = {roles["id"], roles["text"], roles["vector"], "_st"}
        roles["metadata"] = ",".join(
            column.name
            for column in columns.values()
            if column.name not in used and column.readable and column.type.partition("(")[0] in _METADATA_TYPES
        )
    roles["metadata"] = ",".join(name.strip() for name in roles["metadata"].split(",") if name.strip())
    for role in ROLES:
        for name in filter(None, roles[role].split(",") if role == "metadata" else [roles[role]]):
            _check_column(table, columns, role, name)
    return roles


def _check_column(table: str, columns: Mapping[str, _Column], role: str, name: str) -> None:
    column = columns.get(name)
    if column is None:
        raise InvalidInput(f"{table} has no column {name!r} for the {role}; it has {list_choices(columns, 30)}.")
    if not column.readable:
        raise InvalidInput(f"The user of the connection may not read the column {name!r} of {table}; grant it SELECT.")
    if role == "vector" and _base_type(column.type) not in VECTOR_TYPES:
        raise InvalidInput(
            f"The column {name!r} of {table} has the type {column.type}; only vector and halfvec can be searched."
        )


def _choose_collection(connection: Connection, table: str, found: str, wanted: str | None) -> str:
    """Return the collection of a LangChain table; "" for other tables."""
    if found != "langchain":
        if wanted:
            raise InvalidInput(f"{table} is not a LangChain table with collections; use a filter instead.")
        return ""
    schema = _verbatim(table.rpartition(".")[0])
    query = sql.SQL("SELECT name FROM {}.langchain_pg_collection ORDER BY name").format(schema)
    names = [str(row["name"]) for row in connection.execute(query, {})]
    if wanted is None and len(names) != 1:
        raise InvalidInput(f"{table} has {len(names)} collections; name one of {list_choices(names, 30)}.")
    if wanted is not None and wanted not in names:
        raise InvalidInput(f"{table} has no collection {wanted!r}; it has {list_choices(names, 30)}.")
    return wanted or names[0]


def _choose_index(
    mapped: TableMap, indexes: Sequence[Mapping[str, Any]], distance: str | None
) -> tuple[TableMap, list[str]]:
    """Return the map with the index that serves its searches, and a note if none does."""
    column = re.escape(mapped.operand) + "|" + re.escape(mapped.vector)
    cast_column = re.compile(rf"^\(*(?:{column})\)*::(?:[\w\"]+\.)?\"?(vector|halfvec)\"?\(\d+\)\)*$")
    usable: dict[str, tuple[str, str, str]] = {}  # distance -> name, expression, type
    for row in indexes:
        class_of = _OPERATOR_CLASS.match(row["operator_class"])
        expression = str(row["expression"])
        is_column = expression.strip("()") in (mapped.operand, mapped.vector)
        casts = cast_column.match(expression)
        if class_of is None or not (is_column or casts):
            continue
        operand = mapped.operand if is_column else expression
        usable.setdefault(
            class_of[1], (row["name"], operand, mapped.operand_type if is_column else str(casts and casts[1]))
        )
    chosen = distance or next((name for name in OPERATORS if name in usable), "cosine")
    if chosen in usable:
        name, operand, type_name = usable[chosen]
        return replace(mapped, distance=chosen, vector_index=name, operand=operand, operand_type=type_name), []
    mapped = replace(mapped, distance=chosen)
    if usable:
        others = ", ".join(f"{name} for {kind}" for kind, (name, _, _) in usable.items())
        return mapped, [
            f"{mapped.table} has no vector index for the distance {chosen} (only {others}), so every distance is "
            "computed"
        ]
    return mapped, [f"{mapped.table} has no vector index, so every distance is computed, which is slower on many rows"]


def hash_rows(hashes: Mapping[str, bytes]) -> str:
    digest = hashlib.sha256()
    for key in sorted(hashes):
        digest.update(key.encode(errors="replace") + b"\0" + hashes[key])
    return digest.hexdigest()


def make_embedded_text(row: TableRow) -> str:
    """Return the text that LlamaIndex embeds for a row of its own table: with its metadata; "" for other tables."""
    from llama_index.core.schema import MetadataMode, TextNode

    content = row.metadata.get("_node_content")
    if not isinstance(content, str):
        return ""
    try:
        node = TextNode.model_validate(json.loads(content) | {"text": row.text})
    except ValueError:  # another version of LlamaIndex wrote it
        return ""
    return node.get_content(metadata_mode=MetadataMode.EMBED)


# The store of an attached index


class AttachedStore(PassageStore):
    """The passages of an attached index: texts and terms in our database, vectors in the attached table."""

    def __init__(self, database: Database, index: Index, reader: Database | None, table: AttachedTable) -> None:
        """As for any index; ``table`` has its vectors."""
        super().__init__(database, index, reader)
        self.table = table

    def describe_changes(self, scope: ResolvedScope) -> str:
        """Return a note if the table has changed since its rows were last read, else "".

        Counters of the server may change without a change of the rows, so those of a small table are read again.
        """
        known, name = self.index.attachment or {}, self.index.name
        try:
            if self.table.read_state() == known["state"]:
                return ""
            if as_integer(known["rows"]) <= EXACT_UP_TO and hash_rows(self.table.list_hashes()[0]) == known["content"]:
                return ""
        except TableUnavailable:  # the vector leg reports it
            return ""
        return f"{name}: its table has changed since the last sync; run 'workbench indexes sync {name}'"

    def nearest(
        self,
        connection: Connection,
        vector: NDArray[np.float32],
        scope: ResolvedScope,
        limit: int,
        size: int,
        given: Collection[int] = (),
    ) -> LegRanking:
        """Return the nearest passages in scope: of a small scope by every distance, else by the table's own index."""
        if scope.is_empty:
            return LegRanking({})
        if not scope.is_everything and size <= EXACT_UP_TO:
            cosines = self.fetch_cosines(
                connection, vector, fetch_scope_ids(connection, self.index.name, scope).tolist()
            )
        else:
            cosines = self._find_deep(connection, vector, scope, limit)
        best = sorted(cosines, key=lambda key: (-cosines[key], key))[:limit]
        others = self.fetch_cosines(connection, vector, list(given)) if given else {}
        documents = fetch_document_ids(connection, self.index.name, [*best, *others])
        return LegRanking({key: cosines[key] for key in best}, others, documents=documents)

    def _find_deep(
        self, connection: Connection, vector: NDArray[np.float32], scope: ResolvedScope, limit: int
    ) -> dict[int, float]:
        """Return the nearest passages, searching deeper while rows are outside the scope or not synced."""
        depth = limit
        while True:
            by_key = self.table.find_nearest(vector, depth)
            numbers = self._find_numbers(connection, by_key)
            inside = filter_passages(connection, self.index.name, scope, list(numbers.values()))
            found = {number: by_key[key] for key, number in numbers.items() if number in inside}
            if len(found) >= limit or len(by_key) < depth or depth >= MAX_RANKED_ROWS:
                return found
            depth = min(MAX_RANKED_ROWS, depth * DEPTH_GROWTH)

    def fetch_cosines(
        self, connection: Connection, vector: NDArray[np.float32], ids: Sequence[int]
    ) -> dict[int, float]:
        keys = self._find_keys(connection, ids)
        return {keys[key]: cosine for key, cosine in self.table.fetch_cosines(vector, list(keys)).items()}

    def fetch_vectors(self, connection: Connection, ids: Sequence[int]) -> dict[int, NDArray[np.float32]]:
        keys = self._find_keys(connection, ids)
        return {keys[key]: vector for key, vector in self.table.fetch_vectors(list(keys)).items()}

    def fetch_vector_rank(
        self, connection: Connection, vector: NDArray[np.float32], scope: ResolvedScope, passage: int
    ) -> ScoreAndRank | None:
        """Return a passage's cosine and its rank among the rows in scope."""
        cosine = self.fetch_cosines(connection, vector, [passage]).get(passage)
        if cosine is None:
            return None
        keys = None
        if not scope.is_everything:
            keys = list(self._find_keys(connection, fetch_scope_ids(connection, self.index.name, scope).tolist()))
        return cosine, 1 + self.table.count_nearer(vector, cosine, keys)

    def _find_keys(self, connection: Connection, ids: Sequence[int]) -> dict[str, int]:
        """Return the passages by the ids of their rows."""
        rows = fetch_rows(connection, self.index.name, "attached_keys", {"ids": bind_integers(ids)})
        return {row["key"]: row["id"] for row in rows}

    def _find_numbers(self, connection: Connection, keys: Iterable[str]) -> dict[str, int]:
        """Return the passages of rows by the rows' ids; rows that are not synced are omitted."""
        by_node = {make_row_id(self.index.name, key): key for key in keys}
        rows = fetch_rows(connection, self.index.name, "ids_of_passages", {"node_ids": list(by_node)})
        return {by_node[row["node_id"]]: row["id"] for row in rows}

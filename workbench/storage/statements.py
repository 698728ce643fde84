"""Named SQL statements from ``sql/*.sql``.

A file consists of blocks that start with ``-- name: purpose``. The tables of an index are written as the placeholders
``{data}``, ``{lexicon}``, ``{postings}`` and ``{full_text}``; values are always bound parameters.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files

from psycopg import sql

_HEAD = re.compile(r"^-- ([a-z0-9_]+): .*$", re.MULTILINE)
_PURPOSE = re.compile(r"\A(\s*--.*\n)*")  # further comment lines, which are not sent to the server


@cache
def _statements() -> dict[str, str]:
    bodies: dict[str, str] = {}
    for file in sorted(files("workbench.storage").joinpath("sql").iterdir(), key=lambda item: item.name):
        if not file.name.endswith(".sql"):
            continue
        pieces = _HEAD.split(file.read_text(encoding="utf-8"))
        for name, body in zip(pieces[1::2], pieces[2::2], strict=True):
            if name in bodies:
                raise ValueError(f"there are two statements {name!r}")
            bodies[name] = _PURPOSE.sub("", body).strip()
    return bodies


@cache
def statement(name: str, index: str | None = None, **parts: str) -> sql.SQL:
    """Return a named statement with the tables of ``index`` and nested statements filled in.

    Args:
        name: Name of the statement.
        index: Name of the index whose tables it uses.
        parts: Names of statements that replace ``{keyword}``, such as a scope's predicate. A part may contain later
            ones.
    """
    tables = {}
    if index is not None:
        tables = {kind: sql.Identifier(f"{kind}_{index}") for kind in ("data", "lexicon", "postings", "full_text")}
        tables["plain"] = sql.Identifier(f"plain_postings_{index}")
        tables["framework"] = sql.Identifier(f"data_framework_{index}")
        tables["postings_key"] = sql.Identifier(f"postings_{index}_pkey")
        tables["vector_index"] = sql.Identifier(f"data_{index}_embedding_idx")
    names = list(parts)
    nested = {
        name: statement(parts[name], index, **{later: parts[later] for later in names[place + 1 :]})
        for place, name in enumerate(names)
    }
    composed = sql.SQL(_statements()[name]).format(**tables, **nested)  # pyright: ignore[reportArgumentType]
    return sql.SQL(composed.as_string())  # pyright: ignore[reportArgumentType] - composed once, not per call

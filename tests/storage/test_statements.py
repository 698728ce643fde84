"""Every statement named in the code is in the SQL files."""

from __future__ import annotations

import re
from pathlib import Path

from workbench.storage.database import statement

ROOT = Path(__file__).parents[2]
NAMED = re.compile(
    r'\b(?:statement\(\s*|self\._(?:rows?|column|value)\(\s*|(?:fetch_rows|_read)\(\s*connection,\s*\w+,\s*)"([a-z_]+)"'
)


def test_the_sql_files_hold_every_statement_that_the_code_names() -> None:
    files = [file for package in ("workbench", "mcp_app", "evals") for file in (ROOT / package).rglob("*.py")]
    sql = "".join(file.read_text("utf-8") for file in (ROOT / "workbench/storage/sql").glob("*.sql"))
    named = {name for file in files for name in NAMED.findall(file.read_text("utf-8"))}
    assert {"corpus_counts", "copy_passages", "cosines_of"} <= named  # by each way of naming one
    assert named - set(re.findall(r"^-- ([a-z_]+):", sql, re.MULTILINE)) == set()


def test_a_statement_is_found_by_its_name() -> None:
    assert "FROM embedding_parts" in statement("embedding_part_vectors").as_string()

"""The subcommands for sources, documents, projects, indexes and strategies; status and doctor."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest
from commands import Ran

from workbench import Workbench
from workbench.retrieval.strategies import STRATEGIES


def test_a_source_is_made_shown_changed_listed_and_deleted(workbench: Callable[..., Ran]) -> None:
    made = workbench("sources", "create", "Notes", "--tag", "a", "--url", "https://example.com", "--json").json
    assert workbench("sources", "show", made["id"], "--json").json == made
    changed = workbench("sources", "update", "Notes", "--title", "Papers 📄", "--no-tags", "--json").json
    assert (changed["title"], changed["tags"]) == ("Papers 📄", [])
    listed = workbench("sources", "list", "--json").json
    assert (listed["total"], listed["sources"][0]["title"]) == (1, "Papers 📄")
    assert workbench("sources", "delete", made["id"], "--json").json["title"] == "Papers 📄"
    assert workbench("sources", "list").out.startswith("No sources")


def test_a_source_is_put_into_a_project_and_folder(workbench: Callable[..., Ran], animals: Path) -> None:
    project = workbench("projects", "create", "Zoo", "--description", "All animals", "--json").json
    workbench("projects", "create-folder", "Zoo", "Mammals", "--color", "#ff0000")
    assert workbench("ingest", str(animals), "--project", project["id"], "--folder", "Mammals").code == 0
    shown = workbench("projects", "show", "Zoo", "--json").json
    assert (shown["source_count"], shown["folders"][0]["name"]) == (1, "Mammals")
    found = workbench("search", "cats", "--project", "Zoo", "--folder", "Mammals", "--scope", "project", "--json").json
    assert found["results"]


def test_folders_are_renamed_listed_and_deleted(workbench: Callable[..., Ran]) -> None:
    workbench("projects", "create", "Zoo")
    workbench("projects", "create-folder", "Zoo", "A")
    assert workbench("projects", "update-folder", "Zoo", "A", "--name", "B", "--json").json["name"] == "B"
    assert [folder["name"] for folder in workbench("projects", "folders", "Zoo", "--json").json["folders"]] == ["B"]
    assert workbench("projects", "delete-folder", "Zoo", "B").code == 0
    assert workbench("projects", "folders", "Zoo", "--json").json == {"folders": [], "total": 0}
    assert workbench("projects", "update", "Zoo", "--title", "Park", "--json").json["title"] == "Park"
    assert workbench("projects", "delete", "Park", "--json").json["kind"] == "project"


def test_a_name_that_is_taken_fails(workbench: Callable[..., Ran]) -> None:
    workbench("projects", "create", "Zoo")
    ran = workbench("projects", "create", "Zoo")
    assert ran.code == 1
    assert ran.err.count("\n") == 1 and "There is already a project with that name" in ran.err


def test_a_document_is_made_from_a_text_changed_and_deleted(workbench: Callable[..., Ran]) -> None:
    made = workbench("documents", "create", "--text", "# Owls\n\nOwls hoot.", "--meta", "by=me", "--json").json
    assert (made["title"], made["outcome"], made["metadata"]["by"]) == ("Owls", "created", "me")
    changed = workbench("documents", "update", made["id"], "--text", "# Owls\n\nOwls glide.", "--json").json
    assert changed["outcome"] == "updated"
    shown = workbench("documents", "show", made["id"], "--passages", "--json").json
    assert "glide" in shown["text"] and "glide" in shown["passages"][0]["text"]
    assert workbench("documents", "update", made["id"], "--title", " ").err == "The title is empty.\n"
    assert workbench("documents", "list", "--contains", "owl", "--json").json["total"] == 1
    assert workbench("documents", "list", "--named", "owls", "--json").json["total"] == 1
    assert workbench("documents", "list", "--named", "owls rest", "--json").json["total"] == 0
    assert workbench("documents", "delete", made["id"], "--json").json["documents"] == 1
    assert workbench("documents", "show", made["id"]).code == 2


def test_a_document_comes_from_areard_input(workbench: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("Bees hum."))
    made = workbench("documents", "create", "--text", "-", "--title", "Bees", "--json").json
    assert workbench("documents", "show", made["id"], "--json").json["text"] == "Bees hum."


def test_a_document_without_content_is_refused(workbench: Callable[..., Ran]) -> None:
    assert workbench("documents", "create", "--title", "Empty").code == 2
    assert workbench("documents", "create", "--file", "x", "--text", "y").code == 2
    assert workbench("documents", "create", "--file", "no-such-file").code == 1


def test_a_second_index_is_created_built_and_made_the_default(workbench: Callable[..., Ran], animals: Path) -> None:
    workbench("ingest", str(animals))
    made = workbench(
        "indexes", "create", "small", "--chunker", "sentence", "--option", "size=20", "--build", "--json"
    ).json
    assert (made["documents_count"], made["chunker_options"]["size"], made["missing_documents"]) == (3, 20, 0)
    assert workbench("indexes", "default", "small", "--json").json["is_default"]
    assert workbench("search", "cats", "--json").json["index"] == "small"
    assert workbench("indexes", "delete", "main").code == 0
    assert [index["name"] for index in workbench("indexes", "list", "--json").json["indexes"]] == ["small"]


def test_an_index_that_lacks_documents_is_seen_and_brought_up_to_date(
    workbench: Callable[..., Ran], animals: Path
) -> None:
    workbench("indexes", "create", "late")
    workbench("ingest", str(animals))
    assert workbench("indexes", "show", "late", "--json").json["missing_documents"] == 3
    assert workbench("indexes", "update", "late", "--build", "--json").json["missing_documents"] == 0


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("create", "x", "--chunker", "axe"), "There is no chunker 'axe'; use one of 'structure'"),
        (("create", "x", "--option", "size=big"), "Invalid size 'big'; use a whole number"),
        (("create", "x", "--option", "colour=1"), "has no parameter 'colour'"),
        (("create", "Robert'); DROP TABLE sources;--"), "Invalid index name"),
        (("update", "main"), "Nothing to change"),
        (("build", "nowhere"), "Index not found: nowhere."),
    ],
)
def test_mistakes_over_indexes_are_sentences(
    workbench: Callable[..., Ran], words: tuple[str, ...], sentence: str
) -> None:
    ran = workbench("indexes", *words)
    assert ran.code == 2
    assert sentence in ran.err and ran.err.count("\n") == 1


def test_strategies_are_listed_from_the_table(workbench: Callable[..., Ran]) -> None:
    listed = workbench("strategies", "list", "--json").json
    assert [strategy["name"] for strategy in listed["strategies"]] == list(STRATEGIES)
    assert listed["default"] in STRATEGIES
    shown = workbench("strategies", "show", "hybrid", "--json").json
    assert shown["parameters"][0]["name"] == "vector_weight"


def test_status_counts_what_there_is(workbench: Callable[..., Ran], animals: Path) -> None:
    workbench("ingest", str(animals))
    status = workbench("status", "--json").json
    apart = {"conversations": 0, "articles": 0, "archives": 0}
    assert status["corpus"] == {"projects": 0, "sources": 1, "documents": 3} | apart
    assert status["indexes"][0]["passages_count"] == 3
    assert "pgvector" in workbench("status").out


def test_doctor_is_content_with_a_healthy_house(workbench: Callable[..., Ran]) -> None:
    ran = workbench("doctor", "--json")
    assert (ran.code, ran.json["ok"]) == (0, True)
    assert {check["name"] for check in ran.json["checks"]} >= {"database", "pgvector", "embedding model", "disk"}


def test_one_document_is_reported_in_the_singular(workbench: Callable[..., Ran], tmp_path: Path) -> None:
    (tmp_path / "gauge.md").write_text("# Tide gauge\n\nIt records the level of the sea.")
    workbench("ingest", str(tmp_path))
    assert ": 1 document, 1 passage" in workbench("doctor").out
    shown = workbench("search", "sea", "--strategy", "keyword").out
    assert "1 passage by keyword in" in shown and "ms, fewer than requested" in shown
    assert workbench("export", str(tmp_path / "all.zip")).out.startswith("Wrote 1 document, ")


def test_doctor_reports_that_the_database_is_down(process: Callable[..., Ran]) -> None:
    ran = process("doctor", "--json", WORKBENCH_DATABASE_URL="postgresql://nobody@127.0.0.1:1/none")
    assert (ran.code, ran.json["ok"]) == (1, False)
    assert "is unreachable" in ran.json["checks"][0]["detail"]


def test_a_table_is_attached_synced_shown_and_deleted(
    workbench: Callable[..., Ran], wb: Workbench, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "A heron waits by the water."
    vector = str(wb.corpus.encoder().encode([text]).vectors[0].tolist())
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("CREATE TABLE birds (n int PRIMARY KEY, body text, v vector, kind text)")
        connection.execute("INSERT INTO birds VALUES (1, %s, %s, 'a'), (2, %s, %s, 'b')", (text, vector, text, vector))
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{database_url}\n"))

    attached = workbench("indexes", "attach", "birds", "birds", "--url", "-", "--filter", "kind=a", "--json").json

    assert (attached["passages_count"], attached["attachment"]["filter"]) == (1, {"kind": "a"})
    assert "rows" in workbench("indexes", "show", "birds").out
    assert workbench("search", "heron", "--strategy", "vector@birds", "--json").json["results"][0]["text"] == text
    assert workbench("indexes", "sync", "birds", "--json").json["attachment"]["rows"] == 1
    failed = workbench("indexes", "attach", "more", "birds", "--column", "text=nothing")
    assert failed.code and "has no column 'nothing' for the text" in failed.err
    assert workbench("indexes", "sync", "main").code
    assert workbench("indexes", "delete", "birds", "--yes", "--json").json["name"] == "birds"


def test_the_similarity_below_which_an_index_refuses_is_set_and_restored(
    workbench: Callable[..., Ran], animals: Path
) -> None:
    workbench("ingest", str(animals))
    chosen = workbench("indexes", "update", "main", "--refuse-below", "0.4", "--json").json["nearness"]
    assert (chosen["near"], chosen["chosen"]) == (0.4, 1)
    assert not workbench("indexes", "update", "main", "--refuse-below", "model", "--json").json["nearness"]
    for wrong, says in (("much", "Invalid similarity 'much'"), ("1.5", "Invalid similarity 1.5")):
        ran = workbench("indexes", "update", "main", "--refuse-below", wrong)
        assert ran.code != 0 and says in ran.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("sources", "list", "--offset", "-2"), "Invalid number (OFFSET must not be negative); use another one."),
        (("documents", "list", "--limit", "-3"), "Invalid number (LIMIT must not be negative); use another one."),
        (("strategies", "reject", "9" * 20), "Invalid number (bigint out of range); use another one."),
        (("eval", "x" * 300), f"Cannot use {'x' * 300!r} (File name too long); correct the path or its permissions."),
        (
            ("rankers", "import", "x" * 300),
            f"Cannot use {'x' * 300!r} (File name too long); correct the path or its permissions.",
        ),
    ],
)
def test_a_wrong_number_or_path_is_a_sentence(workbench: Callable[..., Ran], words: tuple[str, ...], said: str) -> None:
    workbench("sources", "create", "Mine")
    ran = workbench(*words)
    assert (ran.code, ran.out, ran.err.strip()) == (2, "", said)

"""Existing tables searched in place: real tables in LangChain's and LlamaIndex's formats on real servers."""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path

import numpy as np
import psycopg
import pytest
from llama_index.core.schema import MetadataMode, TextNode
from llama_index.vector_stores.postgres import PGVectorStore
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from mcp_app.server import create_server
from tests.conftest import url_of
from tests.mcp_app.agent import Agent
from workbench import Scope, Workbench
from workbench.errors import Conflict, InvalidInput, NotFound, TableUnavailable
from workbench.models.hashing import HashEncoder
from workbench.retrieval.options import Ask
from workbench.services.attached import normalise_address
from workbench.settings import Settings
from workbench.storage.attached import AttachedStore
from workbench.storage.postgres import leave_server, start_embedded_server
from workbench.types import SearchResult

OWLS = "Owls hunt at night and hear a mouse below the snow from thirty metres away."
BEES = "Bees dance to show the other bees of the hive where the best flowers are today."
BATS = "Bats find a moth in the dark by the echo of their own very high calls each night."
TEXTS = {"owls.md": f"# Owls\n\n{OWLS}", "bees.md": f"# Bees\n\n{BEES}"}
QUESTION = "which animal hears a mouse below the snow"

Fill = Callable[..., str]


@pytest.fixture
def theirs(server_url: str) -> Iterator[str]:
    """Another database with pgvector."""
    name = "theirs_" + str(np.random.default_rng().integers(10**12))
    with psycopg.connect(server_url, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    url = url_of(server_url, name)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE EXTENSION vector")
    yield url
    with psycopg.connect(server_url, autocommit=True) as connection:
        connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


@pytest.fixture
def animals(wb: Workbench, folder: Callable[..., Path]) -> Workbench:
    """Two documents that contain rows of the table."""
    wb.ingest(folder(TEXTS), source="Animals", on_progress=lambda _: None)
    return wb


def vector(text: str) -> str:
    return "[" + ",".join(map(str, HashEncoder().encode([text]).vectors[0].tolist())) + "]"


def run(url: str, *statements: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement)  # pyright: ignore[reportArgumentType, reportCallIssue]


LANGCHAIN = """
CREATE TABLE langchain_pg_collection (uuid uuid PRIMARY KEY DEFAULT gen_random_uuid(), name varchar NOT NULL UNIQUE,
    cmetadata json);
CREATE TABLE langchain_pg_embedding (id varchar PRIMARY KEY, collection_id uuid REFERENCES langchain_pg_collection,
    embedding vector, document varchar, cmetadata jsonb);
INSERT INTO langchain_pg_collection (name) VALUES ('animals')
"""


def add(url: str, key: str, text: str | None, metadata: dict[str, str], collection: str = "animals") -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "INSERT INTO langchain_pg_embedding "
            "SELECT %s, uuid, %s, %s, %s FROM langchain_pg_collection WHERE name = %s",
            (key, vector(text or ""), text, json.dumps(metadata), collection),
        )


@pytest.fixture
def langchain(theirs: str) -> str:
    """A LangChain table: a row that names its document, one that contains its text, and one without a document."""
    run(theirs, LANGCHAIN)
    add(theirs, "a", OWLS, {"source": "/srv/docs/owls.md"})
    add(theirs, "b", BEES, {})
    add(theirs, "c", BATS, {"title": "Bats at night"})
    return theirs


def test_a_langchain_table_is_searched_by_four_strategies(animals: Workbench, langchain: str) -> None:
    index = animals.indexes.attach("theirs", langchain, "langchain_pg_embedding", model="hash")

    assert (index.status, index.passages_count, index.documents_count) == ("ready", 3, 3)
    owls = next(one for one in animals.documents.list(limit=10) if one.title == "Owls")
    for strategy in ("vector", "keyword", "hybrid", "rerank"):
        result = animals.search(QUESTION, f"{strategy}@theirs", 3)
        first = result.results[0]
        assert (first.text, first.document_id, result.degraded) == (OWLS, owls.id, ()), strategy
    span = TEXTS["owls.md"].index(OWLS)
    assert (first.start, first.end) == (span, span + len(OWLS))
    assert animals.search("echo of bats", "vector@theirs", 1).results[0].document_title == "Bats at night"
    assert len(animals.search(QUESTION, "vector@theirs", 3, Scope(sources=("Animals",))).results) == 2
    assert {one.title for one in animals.documents.list(limit=10)} == {"Owls", "Bees"}, "rows are no documents of ours"


def test_scores_are_the_cosines_of_the_table(animals: Workbench, langchain: str) -> None:
    animals.indexes.attach("theirs", langchain, "langchain_pg_embedding", model="hash")
    model = HashEncoder()
    question = model.encode_query(QUESTION).vector
    expected = sorted((float(question @ row) for row in model.encode([OWLS, BEES, BATS]).vectors), reverse=True)

    found = [passage.similarity for passage in animals.search(QUESTION, "vector@theirs", 3)]

    assert found == pytest.approx(expected, abs=1e-5)
    best = animals.search(QUESTION, "hybrid@theirs", 1).results[0]
    assert best.similarity == pytest.approx(expected[0], abs=1e-5)
    explained = animals.explaining.explain(QUESTION, Ask("rerank@theirs"), passage_id=best.passage_id)
    assert (explained.rank, explained.legs["vector"].rank, explained.legs["keyword"].rank) == (1, 1, 1)
    assert explained.legs["vector"].score == pytest.approx(expected[0], abs=1e-5)


def test_strategies_that_need_our_vectors_report_it(animals: Workbench, langchain: str) -> None:
    animals.indexes.attach("theirs", langchain, "langchain_pg_embedding", model="hash")

    for strategy in ("mmr", "feedback", "llamaindex-hybrid"):
        with pytest.raises(InvalidInput, match="cannot search 'theirs', which reads a table"):
            animals.search(QUESTION, f"{strategy}@theirs")
    with pytest.raises(InvalidInput, match="cannot search 'theirs'"):
        animals.promotions.promote("mmr@theirs")
    with pytest.raises(Conflict, match="reads a table in place"):
        animals.indexes.set_default("theirs")
    with pytest.raises(Conflict, match="documents cannot be added to it"):
        animals.corpus.open_writer(animals.indexes.get("theirs"))


def test_nothing_is_written_there(animals: Workbench, langchain: str) -> None:
    run(langchain, "CREATE ROLE reader_of_tables LOGIN" if not role_exists(langchain) else "SELECT 1")
    run(langchain, "GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader_of_tables")
    before = read_counters(langchain)
    reader = make_conninfo(langchain, user="reader_of_tables")

    animals.indexes.attach("theirs", reader, "langchain_pg_embedding", model="hash")
    for strategy in ("vector", "keyword", "hybrid", "rerank"):
        animals.search(QUESTION, f"{strategy}@theirs")
    animals.indexes.sync("theirs")
    animals.indexes.attach("owned", langchain, "langchain_pg_embedding", model="hash")
    store = animals.corpus.store(animals.indexes.get("owned"))
    assert isinstance(store, AttachedStore)

    with pytest.raises(TableUnavailable, match="read-only transaction"), store.table.open() as connection:
        connection.execute("DELETE FROM langchain_pg_embedding")
    assert read_counters(langchain) == before
    assert animals.indexes.get("theirs").passages_count == 3


def role_exists(url: str) -> bool:
    with psycopg.connect(url) as connection:
        return connection.execute("SELECT 1 FROM pg_roles WHERE rolname = 'reader_of_tables'").fetchone() is not None


def read_counters(url: str) -> tuple[object, ...]:
    with psycopg.connect(url) as connection:
        connection.execute("SELECT pg_stat_force_next_flush()")
        rows = connection.execute(
            "SELECT relname, n_tup_ins, n_tup_upd, n_tup_del, n_live_tup FROM pg_stat_user_tables ORDER BY relname"
        ).fetchall()
        hashed = connection.execute("SELECT md5(string_agg(t::text, ',' ORDER BY id)) FROM langchain_pg_embedding t")
        return (*rows, hashed.fetchone())


def test_a_sync_finds_new_changed_and_deleted_rows(animals: Workbench, langchain: str) -> None:
    animals.indexes.attach("theirs", langchain, "langchain_pg_embedding", model="hash")
    new = "Ants carry leaves that weigh fifty times as much as they do along paths of scent."
    add(langchain, "d", new, {})
    run(langchain, "DELETE FROM langchain_pg_embedding WHERE id = 'a'")
    changed = "Bats sleep upside down in caves from November until the end of March every year."
    with psycopg.connect(langchain, autocommit=True) as connection:
        connection.execute(
            "UPDATE langchain_pg_embedding SET document = %s, embedding = %s WHERE id = 'c'", (changed, vector(changed))
        )

    before = animals.search("ants carry leaves", "hybrid@theirs")
    assert any("its table has changed since the last sync" in note for note in before.degraded)
    assert new not in [passage.text for passage in before]

    assert animals.indexes.sync("theirs").passages_count == 3
    for strategy in ("keyword", "vector", "rerank"):
        assert animals.search("ants carry leaves", f"{strategy}@theirs").results[0].text == new
        assert animals.search("caves in November", f"{strategy}@theirs").results[0].text == changed
        assert OWLS not in [passage.text for passage in animals.search("owls hunt a mouse", f"{strategy}@theirs")]
    assert not animals.search("ants carry leaves", "hybrid@theirs").degraded


def test_a_table_that_another_model_embedded_again_is_reported(animals: Workbench, langchain: str) -> None:
    animals.indexes.attach("theirs", langchain, "langchain_pg_embedding", model="hash")
    rng = np.random.default_rng(0)
    with psycopg.connect(langchain, autocommit=True) as connection:
        for key in "abc":
            values = "[" + ",".join(map(str, rng.normal(size=512))) + "]"
            connection.execute("UPDATE langchain_pg_embedding SET embedding = %s WHERE id = %s", (values, key))
        connection.execute("SELECT pg_stat_force_next_flush()")
    found = animals.search(QUESTION, "vector@theirs", 3)
    assert any("has changed" in note for note in found.degraded), found.degraded
    with pytest.raises(InvalidInput, match="do not come from the model 'hash'"):
        animals.indexes.sync("theirs")


def test_a_table_that_was_emptied_or_has_vectors_of_another_length_is_synced_or_refused(
    animals: Workbench, langchain: str
) -> None:
    animals.indexes.attach("theirs", langchain, "langchain_pg_embedding", model="hash")
    run(langchain, "UPDATE langchain_pg_embedding SET embedding = '[1,0,0]'")
    with pytest.raises(InvalidInput, match="had 512 dimensions and now have 3; attach it again"):
        animals.indexes.sync("theirs")
    run(langchain, "DELETE FROM langchain_pg_embedding")
    assert animals.indexes.sync("theirs").passages_count == 0


def test_a_name_that_needs_quotes_is_found(animals: Workbench, theirs: str) -> None:
    name = '"My Schema"."Odd ""Table"""'
    run(theirs, 'CREATE SCHEMA "My Schema"', f"CREATE TABLE {name} (id int PRIMARY KEY, text text, embedding vector)")
    run(theirs, f"INSERT INTO {name} VALUES (1, '{OWLS}', '{vector(OWLS)}')")
    assert animals.indexes.attach("quoted", theirs, name, model="hash").passages_count == 1


def test_rows_become_parts_of_documents_that_come_later(
    wb: Workbench, langchain: str, folder: Callable[..., Path]
) -> None:
    index = wb.indexes.attach("theirs", langchain, "langchain_pg_embedding", model="hash")
    assert index.attachment is not None and index.attachment["matched"] == 0
    wb.ingest(folder(TEXTS), source="Animals", on_progress=lambda _: None)

    index = wb.indexes.build("theirs")

    assert index.attachment is not None and index.attachment["matched"] == 2
    assert wb.search(QUESTION, "rerank@theirs", 1).results[0].document_title == "Owls"
    assert index.passages_count == 3


def test_what_is_wrong_with_a_table_is_one_sentence(animals: Workbench, theirs: str) -> None:
    run(
        theirs,
        "CREATE TABLE items (key integer, body text, note text, place vector(512), other vector(3))",
        "CREATE SCHEMA closed; CREATE TABLE closed.items2 (id int PRIMARY KEY, text text, v vector(512))",
    )
    attach = animals.indexes.attach
    columns = {"id": "key", "text": "body", "vector": "place"}
    with pytest.raises(NotFound, match="has no table or view of this name"):
        attach("one", theirs, "nothing", model="hash")
    with pytest.raises(InvalidInput, match=r"Which column of .* has the id\? Name it"):
        attach("one", theirs, "items", model="hash")
    with pytest.raises(InvalidInput, match="has no column 'chunk' for the text; it has 'key', 'body'"):
        attach("one", theirs, "items", {**columns, "text": "chunk"}, model="hash")
    with pytest.raises(InvalidInput, match="has the type text; only vector and halfvec can be searched"):
        attach("one", theirs, "items", {**columns, "vector": "body"}, model="hash")
    with pytest.raises(InvalidInput, match="Invalid distance 'far': use one of 'cosine', 'l2', 'ip'"):
        attach("one", theirs, "items", columns, model="hash", distance="far")
    with pytest.raises(InvalidInput, match=r"No row of .* is selected; fill the table, or correct the filter"):
        attach("one", theirs, "items", columns, model="hash")
    run(theirs, "INSERT INTO items VALUES (1, 'An owl', '', NULL, '[1,2,3]')")
    with pytest.raises(InvalidInput, match="have 3 dimensions, and those of the model 'hash' have 512; name the model"):
        attach("one", theirs, "items", {**columns, "vector": "other"}, model="hash")
    run(theirs, f"INSERT INTO items VALUES (2, '{OWLS}', '', '{vector('something else')}', NULL)")
    with pytest.raises(
        InvalidInput, match=r"do not come from the model 'hash': .* a mean cosine of -?0\.\d+ with them"
    ):
        attach("one", theirs, "items", columns, model="hash")
    run(theirs, "CREATE ROLE reader_of_tables LOGIN" if not role_exists(theirs) else "SELECT 1")
    with pytest.raises(InvalidInput, match=r"may not read closed\.items2; grant it SELECT"):
        attach("one", make_conninfo(theirs, user="reader_of_tables"), "closed.items2", model="hash")
    assert [index.name for index in animals.indexes.list()] == ["main"], "nothing is left of a failed attachment"


@pytest.mark.parametrize(("kind", "distance"), [("vector", "l2"), ("halfvec", "ip"), ("vector", "cosine")])
def test_any_table_is_searched_by_the_operator_of_its_index(
    animals: Workbench, theirs: str, kind: str, distance: str
) -> None:
    rows = ", ".join(
        f"({number}, '{text}', '{vector(text)}', '{tenant}', 'https://example.org/{number}')"
        for number, (text, tenant) in enumerate(((OWLS, "a"), (BEES, "a"), (BATS, "b"), (OWLS + " Indeed.", "b")))
    )
    run(
        theirs,
        f'CREATE TABLE "My items" (n bigint, body text, v {kind}(512), tenant text, url text)',
        f'INSERT INTO "My items" VALUES {rows}',
        f"INSERT INTO \"My items\" VALUES (0, 'again', NULL, 'a', NULL), (7, NULL, '{vector('x')}', 'a', ''), "
        f"(1, '{BEES}', '{vector(BEES)}', 'a', 'https://example.org/1')",
        f'CREATE INDEX items_v ON "My items" USING hnsw (v {kind}_{distance}_ops)',
    )

    index = animals.indexes.attach("items", theirs, "My items", {"id": "n"}, model="hash", filter={"tenant": "a"})

    known = index.attachment
    assert known is not None
    assert (known["distance"], known["vector_index"], known["notes"]) == (distance, "items_v", [])
    assert known["left_out"] == [
        "1 row without a vector left out",
        "1 row without text left out",
        "1 row with the id of another row left out",
    ]
    found = animals.search(QUESTION, "vector@items", 10)
    assert [passage.text for passage in found] == [OWLS, BEES], "the other tenant's rows are left out"
    other = {"cosine": "l2", "l2": "cosine", "ip": "l2"}[distance]
    index = animals.indexes.attach("other", theirs, "My items", {"id": "n"}, model="hash", distance=other)
    assert index.attachment is not None
    assert f"has no vector index for the distance {other} (only items_v for {distance}), so every" in str(
        index.attachment["notes"]
    )


def test_a_llamaindex_table_is_recognised(animals: Workbench, theirs: str) -> None:
    place = conninfo_to_dict(theirs)
    store = PGVectorStore.from_params(
        connection_string="postgresql+psycopg://",
        async_connection_string="postgresql+psycopg://",
        table_name="notes",
        embed_dim=512,
        use_jsonb=True,
        create_engine_kwargs={"connect_args": place},
    )
    rows = ((OWLS, "owls.md"), (BATS, "x"))
    nodes = [TextNode(text=text, metadata={"file_path": f"/data/{name}"}) for text, name in rows]
    for node in nodes:
        embedded = node.get_content(metadata_mode=MetadataMode.EMBED)
        node.embedding = HashEncoder().encode([embedded]).vectors[0].tolist()
    store.add([*nodes])

    index = animals.indexes.attach("notes", theirs, "data_notes", model="hash")

    assert index.attachment is not None
    assert (index.attachment["format"], index.attachment["matched"], index.passages_count) == ("llamaindex", 1, 2)
    assert "cosine" not in str(index.attachment["notes"]), "the text with metadata was embedded"
    assert animals.search(QUESTION, "rerank@notes", 1).results[0].document_title == "Owls"


def test_a_server_that_is_away_leaves_the_words(animals: Workbench, shared_home: Path) -> None:
    folder = shared_home / "theirs" / "postgres"
    url = start_embedded_server(folder)
    run(url, "CREATE EXTENSION vector", LANGCHAIN)
    add(url, "a", OWLS, {"source": "owls.md"})
    animals.indexes.attach("theirs", url, "langchain_pg_embedding", model="hash")
    assert animals.search(QUESTION, "vector@theirs", 1).results[0].text == OWLS
    animals.corpus.open_elsewhere(url).close()
    leave_server(folder)

    compared = animals.compare(QUESTION, ("vector@theirs", "hybrid@theirs", "keyword@theirs", "rerank"))

    vectors, hybrid, keyword, own = compared.strategies.values()
    assert not vectors.results and vectors.degraded[-1].endswith(", so nothing is shown")
    assert str(folder) in vectors.degraded[-1] and "WORKBENCH_DATABASE_URL" not in vectors.degraded[-1]
    assert hybrid.results[0].text == OWLS and any("so only keyword search was used" in note for note in hybrid.degraded)
    assert keyword.results[0].text == OWLS and any("passages have no similarity" in note for note in keyword.degraded)
    assert own.results and not own.degraded
    with pytest.raises(TableUnavailable, match="the address of the attached table"):
        animals.indexes.sync("theirs")


def test_a_table_that_its_owner_dropped_is_named_with_advice(animals: Workbench, langchain: str) -> None:
    animals.indexes.attach("theirs", langchain, "langchain_pg_embedding", model="hash")
    with pytest.raises(Conflict, match="already an index with that name"):
        animals.indexes.attach("theirs", langchain, "langchain_pg_embedding", model="hash")
    run(langchain, "DROP TABLE langchain_pg_embedding")
    advice = r"was dropped.*langchain_pg_embedding.* does not exist\): restore it, or delete the index that reads it"

    compared = animals.compare(QUESTION, ("vector@theirs", "hybrid@theirs"))

    vectors, hybrid = compared.strategies.values()
    assert re.search(advice, vectors.degraded[-1]) and not vectors.results
    assert any(re.search(advice, note) for note in hybrid.degraded) and hybrid.results[0].text == OWLS
    with pytest.raises(TableUnavailable, match=advice):
        animals.indexes.sync("theirs")
    check = next(check for check in animals.health.doctor() if check.name == "vector search")
    assert not check.ok and re.search(f"theirs: .*{advice}", check.detail)
    shown = {index["name"]: index["vector_search"] for index in animals.health.status()["indexes"]}
    assert re.search(advice, shown.pop("theirs")) and set(shown.values()) == {"exact"}


def test_an_index_whose_table_has_no_address_since_an_import_is_named_in_the_status(
    animals: Workbench, langchain: str, make_settings: Callable[..., Settings]
) -> None:
    animals.indexes.attach("theirs", langchain, "langchain_pg_embedding", model="hash")
    run(animals.corpus.database.url, "UPDATE indexes SET attachment_url = NULL WHERE name = 'theirs'")

    with Workbench.open(settings=make_settings()) as imported:
        shown = {index["name"]: index["vector_search"] for index in imported.health.status()["indexes"]}

    assert "is not part of an export; delete the index and attach it again" in shown["theirs"]


def test_a_table_in_our_own_database_needs_no_address(animals: Workbench) -> None:
    url = animals.corpus.database.url
    run(url, LANGCHAIN)
    add(url, "a", OWLS, {"source": "owls.md"})

    animals.indexes.attach("ours", None, "langchain_pg_embedding", model="hash")

    assert animals.search(QUESTION, "rerank@ours", 1).results[0].text == OWLS


def test_a_row_of_its_own_is_found_although_there_are_conversations(
    animals: Workbench, langchain: str, folder: Callable[..., Path]
) -> None:
    animals.indexes.attach("theirs", langchain, "langchain_pg_embedding", model="hash")
    animals.workspaces.embed(folder({"plan/2025-01-02/001-idea/talk.md": "We plan a bridge."}))

    assert animals.search(BATS, "hybrid@theirs", 1).results[0].text == BATS
    assert animals.compare(BATS, ["keyword@theirs"]).strategies["keyword@theirs"].results[0].text == BATS


@pytest.mark.parametrize("has_talks", [False, True], ids=["plain", "conversations"])
def test_rows_of_their_own_obey_filters_and_are_counted_if_they_have_no_date(
    animals: Workbench, langchain: str, folder: Callable[..., Path], has_talks: bool
) -> None:
    animals.indexes.attach("theirs", langchain, "langchain_pg_embedding", model="hash")
    if has_talks:
        animals.workspaces.embed(folder({"plan/2025-01-02/001-idea/talk.md": "We plan a bridge."}))

    for scope in (Scope(languages=("en",)), Scope(document_types=("text",))):
        assert BATS in [passage.text for passage in animals.search(BATS, "vector@theirs", 3, scope)], scope
    assert not animals.search(BATS, "vector@theirs", 3, Scope(languages=("de",))).results
    dated = Scope(since=date(2020, 1, 1))
    found = animals.search(BATS, "vector@theirs", 3, dated)
    assert BATS not in [passage.text for passage in found]
    assert _read_undated(found) == 1, "the documents of the other rows have their files' dates"
    assert _read_undated(animals.search(BATS, "vector", 3, dated)) == 0, "the main index does not have the row"


def _read_undated(found: SearchResult) -> int:
    notes = [note for note in found.notes if "no date" in note]
    return int(notes[0].split()[0]) if notes else 0


def test_the_password_is_neither_shown_nor_exported(animals: Workbench, langchain: str, tmp_path: Path) -> None:
    url = make_conninfo(langchain, password="correct-horse")
    index = animals.indexes.attach("theirs", url, "langchain_pg_embedding", model="hash")
    assert "correct-horse" not in json.dumps(index.to_dict())
    animals.backups.write(tmp_path / "all.zip")
    with zipfile.ZipFile(tmp_path / "all.zip") as archive:
        assert not [name for name in archive.namelist() if b"correct-horse" in archive.read(name)]
    animals.indexes.delete("theirs")
    rows = animals.corpus.database.rows("SELECT title FROM sources WHERE starts_with(title, 'Table ')")  # pyright: ignore[reportArgumentType]
    assert not rows
    assert normalise_address(" postgresql+psycopg://u:p@h/d ") == "postgresql://u:p@h/d"


def test_a_table_is_compared_with_our_index_promoted_and_asked_by_an_agent(animals: Workbench, langchain: str) -> None:
    animals.indexes.attach("theirs", langchain, "langchain_pg_embedding", model="hash")
    pairs = [(QUESTION, "Owls"), ("where do bees find flowers", "Bees"), ("who hunts at night", "Owls")]
    animals.test_sets.from_pairs("animals", pairs)  # pyright: ignore[reportAttributeAccessIssue]

    result = animals.evaluate("animals", ["rerank", "rerank@theirs", "vector@theirs"], metrics=["ndcg@10"])  # pyright: ignore[reportAttributeAccessIssue]

    assert set(result.strategies) == {"rerank", "rerank@theirs", "vector@theirs"}
    assert result.strategies["rerank@theirs"].means["ndcg@10"] > 0.8
    paired = result.compare("rerank", "rerank@theirs")
    assert paired.wins + paired.losses + paired.ties == 3
    animals.promotions.promote("rerank@theirs")
    agent = Agent(create_server(animals, toolsets=["all"]))
    assert BATS in json.dumps(agent("search_knowledge_base", query="echo of bats in the dark"))

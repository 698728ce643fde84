"""An index on three real servers: it answers as one server does, also while documents come, change and go."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import psycopg
import pytest

from tests.storage.birds import NAMES, QUESTIONS, answers, fill
from tests.storage.shards import Server
from workbench import Workbench
from workbench.cli import main
from workbench.errors import Conflict, InvalidInput, StorageError
from workbench.retrieval.strategies import STRATEGIES
from workbench.settings import Settings
from workbench.storage.postings import among, postings_of_passages, postings_of_terms
from workbench.types import Scope


def test_every_strategy_answers_as_one_server_does(cluster: Workbench, wb: Workbench) -> None:
    fill(wb)
    fill(cluster)
    assert [index.buckets for index in cluster.indexes.list()] == [32]
    assert {shard.buckets for shard in cluster.shards.list()} == {16}
    for strategy in NAMES:
        for question in QUESTIONS:
            here, there = answers(wb, strategy, question), answers(cluster, strategy, question)
            assert len(here) == len(there) and sorted(here) == sorted(there), (strategy, question)
            assert [score for *_, score in here] == [score for *_, score in there]


def test_postings_are_looked_up_in_the_bucket_of_their_passage(cluster: Workbench) -> None:
    fill(cluster)
    with cluster.corpus.database.transaction() as connection:
        terms = [row["id"] for row in connection.execute("SELECT DISTINCT id FROM lexicon_main").fetchall()]
        ids = [row["id"] for row in connection.execute("SELECT id FROM data_main ORDER BY id").fetchall()]
        every = postings_of_terms(connection, "main", terms)
        for wanted in ([ids[0]], [ids[len(ids) // 2]], [ids[-1]], ids[::7], ids):
            brought = {term: sorted(among(of, np.array(wanted)).tolist()) for term, of in every.items()}
            looked_up = postings_of_passages(connection, "main", terms, wanted)
            assert {term: sorted(of.tolist()) for term, of in looked_up.items()} == {
                term: of for term, of in brought.items() if of
            }


def test_deleting_everything_leaves_nothing_on_any_shard(cluster: Workbench, fresh: list[Server]) -> None:
    fill(cluster)
    cluster.sources.delete(cluster.sources.list()[0].id)
    for server in fresh[1:3]:
        with psycopg.connect(server.url) as shard:
            counts = (
                "SELECT (SELECT count(*) FROM data_main), (SELECT count(*) FROM postings_main), "
                "(SELECT sum(df) FROM lexicon_main)"
            )
            assert shard.execute(counts).fetchone() == (0, 0, 0)
            assert shard.execute("SELECT sum(passages), sum(terms) FROM index_statistics").fetchone() == (0, 0)


def test_a_dropped_index_is_gone_from_the_shards(cluster: Workbench, fresh: list[Server]) -> None:
    fill(cluster)
    cluster.indexes.create("second", chunker="sentence")
    cluster.indexes.build("second")
    assert cluster.corpus.indexes.bytes_on_disk("second") > 100_000
    cluster.indexes.delete("second")
    for server in fresh[1:3]:
        with psycopg.connect(server.url) as shard:
            assert shard.execute("SELECT count(*) FROM pg_class WHERE relname ~ 'second'").fetchone() == (0,)
            assert shard.execute("SELECT count(*) FROM indexes WHERE name ~ 'second'").fetchone() == (0,)


def seen(cluster: Workbench, document: str) -> bool:
    """Tell whether passages of a document are shown; where not, a sentence says which shard may have them."""
    try:
        return bool(cluster.documents.passages(document))
    except StorageError as error:
        assert re.search(r"No passage of the document '\S+' can be seen: shard 2 .* cannot be reached", str(error))
        return False


def test_a_shard_that_is_down_is_said_and_whole_again_when_it_is_back(cluster: Workbench, fresh: list[Server]) -> None:
    fill(cluster)
    whole = {(name, question): answers(cluster, name, question) for name in NAMES for question in QUESTIONS}
    fresh[2].kill()
    for (name, question), before in whole.items():
        scope = Scope(sources=tuple(source.id for source in cluster.sources.list()))
        result = cluster.search(question, name, limit=50, scope=scope if STRATEGIES[name].needs_scope else None)
        assert any("shard 2" in note and "% of the passages were not seen" in note for note in result.degraded), name
        assert 0 < len(result) < len(before)
        assert {hit.text for hit in result} < {text for _, text, _ in before}
    assert [shard.is_reachable for shard in cluster.shards.list()] == [True, False]
    with pytest.raises(StorageError, match="Shard 2 of the cluster cannot be reached"):
        cluster.documents.create(text="Nobody keeps this.")
    unseen = [document.id for document in cluster.documents.list() if not seen(cluster, document.id)]
    assert 0 < len(unseen) < cluster.documents.count()
    fresh[2].start()
    cluster.corpus.outage.noticed()
    assert {key: answers(cluster, *key) for key in whole} == whole


def test_a_strict_search_fails_while_a_shard_is_down(
    cluster: Workbench, fresh: list[Server], make_settings: Callable[..., Settings]
) -> None:
    fill(cluster)
    with Workbench.open(settings=make_settings(database_url=fresh[0].url, strict_shards=True)) as strict:
        assert len(strict.search("heron"))
        fresh[1].kill()
        with pytest.raises(StorageError, match=r"shard 1 .* cannot be reached; start it"):
            strict.search("heron")


def test_what_a_broken_writing_left_is_cleared(cluster: Workbench, fresh: list[Server]) -> None:
    fill(cluster)
    before = answers(cluster, "keyword", "herons")
    with psycopg.connect(fresh[0].url) as connection:  # as if the coordinator had died after the shards' commits
        connection.execute(
            "INSERT INTO data_main (text, metadata_, node_id, embedding, document_id, source_id) "
            "SELECT text, metadata_, 'left', embedding, 'nobody', source_id FROM data_main LIMIT 1"
        )
    assert cluster.shards.check() == (1, 0)
    assert cluster.shards.check() == (0, 0)
    assert answers(cluster, "keyword", "herons") == before


def test_an_export_of_a_cluster_is_imported_into_one_server(cluster: Workbench, wb: Workbench, tmp_path: Path) -> None:
    fill(cluster)
    cluster.backups.write(tmp_path / "all.zip")
    wb.backups.read(tmp_path / "all.zip")
    assert [index.buckets for index in wb.indexes.list()] == [0]
    for strategy in NAMES:
        here, there = answers(wb, strategy, QUESTIONS[1]), answers(cluster, strategy, QUESTIONS[1])
        assert sorted(here) == sorted(there), strategy


def test_what_cannot_be_a_shard_is_refused(cluster: Workbench, fresh: list[Server], wb: Workbench) -> None:
    with pytest.raises(Conflict, match="is part of this cluster already"):
        cluster.shards.add(fresh[1].url)
    with pytest.raises(Conflict, match="is part of this cluster already"):
        cluster.shards.add(fresh[0].url)
    with pytest.raises(InvalidInput, match="lies on shards; use the strategy hybrid"):
        cluster.search("herons", "llamaindex-hybrid")
    with pytest.raises(StorageError, match="has no postgres_fdw"):
        wb.shards.add(fresh[1].url)
    with psycopg.connect(fresh[0].url, autocommit=True) as connection:
        connection.execute("CREATE DATABASE other TEMPLATE template0 LC_CTYPE 'C'")
    with pytest.raises(Conflict, match="words would differ"):
        cluster.shards.add(fresh[0].url.replace("/postgres?", "/other?"))


def test_the_command_adds_and_lists_shards(
    fresh: list[Server], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("WORKBENCH_HOME", str(tmp_path))
    monkeypatch.setenv("WORKBENCH_DATABASE_URL", fresh[0].url)
    assert main(["cluster", "list"]) == 0
    assert "No shards: every index lies in this database." in capsys.readouterr().out
    assert main(["cluster", "add", fresh[1].url]) == 0
    assert "is shard 1. Indexes made from now on lie on 1 shard." in capsys.readouterr().out
    assert main(["cluster", "check"]) == 0
    assert main(["cluster", "list"]) == 0
    assert "yes" in capsys.readouterr().out

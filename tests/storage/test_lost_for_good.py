"""A shard that is lost for good is let go of, and what lay there is indexed again."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.storage.birds import QUESTIONS, Answer, answers, fill
from tests.storage.shards import Server
from tests.storage.test_server_states import commands
from workbench import Workbench
from workbench.errors import Conflict, StorageError

__all__ = ["commands"]


def answered(wb: Workbench) -> list[Answer]:
    """Return what the strategies answer that look at no ties, whose order is that of the embedding."""
    names = ("vector", "keyword", "hybrid")
    return [sorted(answers(wb, name, question)) for name in names for question in QUESTIONS]


def test_what_lay_on_a_lost_shard_is_embedded_again(cluster: Workbench, fresh: list[Server]) -> None:
    fill(cluster)
    whole, indexed = answered(cluster), cluster.indexes.list()[0].documents_count
    with pytest.raises(Conflict, match="answers, so it is not lost"):
        cluster.shards.remove("2", lost=True)
    fresh[2].kill()
    removed = cluster.shards.remove("2", lost=True)
    lacking = removed.lacking["main"]
    assert 0 < lacking < indexed and f"{lacking} documents of main lay there" in removed.sentence
    assert [(shard.number, shard.buckets) for shard in cluster.shards.list()] == [(1, 32)]
    left = cluster.search("herons", "keyword", limit=50)
    assert len(left) and left.degraded == ()
    built = cluster.indexes.build("main")
    assert built.documents_count == indexed
    assert answered(cluster) == whole


def test_the_only_shard_cannot_be_let_go_of(cluster: Workbench, fresh: list[Server]) -> None:
    cluster.shards.remove("2")
    fill(cluster)
    fresh[1].kill()
    with pytest.raises(Conflict, match="is the only shard"):
        cluster.shards.remove("1", lost=True)


def test_nothing_changes_while_another_shard_is_away_too(cluster: Workbench, fresh: list[Server]) -> None:
    fill(cluster)
    fresh[1].kill()
    fresh[2].kill()
    with pytest.raises(StorageError):
        cluster.shards.remove("2", lost=True)
    assert [shard.number for shard in cluster.shards.list()] == [1, 2]


def test_the_command_says_what_is_to_be_indexed_again(
    cluster: Workbench, fresh: list[Server], commands: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    fill(cluster)
    fresh[2].kill()
    assert commands("cluster", "remove", "2", "--lost") == 0
    assert "run 'workbench indexes build main' to embed these again" in " ".join(capsys.readouterr().out.split())

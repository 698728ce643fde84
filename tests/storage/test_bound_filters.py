"""LlamaIndex's metadata filters: a value can never become SQL."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from llama_index.core.schema import TextNode
from llama_index.core.vector_stores.types import (
    FilterCondition,
    FilterOperator,
    MetadataFilter,
    MetadataFilters,
    VectorStoreQuery,
    VectorStoreQueryMode,
)

from workbench import Workbench
from workbench.storage.store import PassageStore

STRANGE = 'O\'Brien "100%" %s :value \\ 🐈'
ATTACKS = (
    "' OR '1'='1",
    "x' OR '1'='1' --",
    "'; DROP TABLE documents; --",
    "\x00' OR '1'='1",
    "%",
    "%(source_id)s",
    ":value",
    "\\' OR 1=1 --",
    "nobody",
)


@pytest.fixture
def store(wb: Workbench, folder: Callable[..., Path]) -> PassageStore:
    """A store with two documents and a node whose author has a strange name."""
    wb.ingest(folder({"cats.md": "# Cats\n\nCats purr.", "dogs.md": "# Dogs\n\nDogs bark."}), source="Animals")
    store = wb.corpus.store(wb.corpus.index())
    document = wb.documents.list()[0]
    node = TextNode(
        text="A note.",
        metadata={"document_id": document.id, "source_id": document.source_id, "author": STRANGE, "year": 2021},
        embedding=wb.corpus.encoder().encode_query("note").vector.tolist(),
    )
    store.for_llama_index.add([node])
    return store


def found(wb: Workbench, store: PassageStore, *filters: MetadataFilter, mode: str = "default") -> set[str]:
    """Return the texts that a LlamaIndex query with these filters finds."""
    query = VectorStoreQuery(
        query_embedding=wb.corpus.encoder().encode_query("cats dogs note").vector.tolist(),
        query_str="cats dogs note",
        similarity_top_k=10,
        sparse_top_k=10,
        mode=VectorStoreQueryMode(mode),
        filters=MetadataFilters(filters=list(filters), condition=FilterCondition.AND),
    )
    return {node.get_content() for node in store.for_llama_index.query(query).nodes or []}


@pytest.mark.parametrize("mode", ["default", "hybrid", "sparse"])
@pytest.mark.parametrize("attack", ATTACKS)
def test_a_hostile_value_finds_nothing(wb: Workbench, store: PassageStore, attack: str, mode: str) -> None:
    assert found(wb, store, MetadataFilter(key="source_id", value=attack), mode=mode) == set()


@pytest.mark.parametrize(
    "operator", [FilterOperator.IN, FilterOperator.ANY, FilterOperator.CONTAINS, FilterOperator.GT]
)
@pytest.mark.parametrize("attack", ATTACKS[:4])
def test_so_does_it_with_other_operators(
    wb: Workbench, store: PassageStore, attack: str, operator: FilterOperator
) -> None:
    value: Any = [attack] if operator in (FilterOperator.IN, FilterOperator.ANY) else attack
    assert found(wb, store, MetadataFilter(key="nothing", value=value, operator=operator)) == set()


def test_a_hostile_key_finds_nothing(wb: Workbench, store: PassageStore) -> None:
    assert found(wb, store, MetadataFilter(key="source_id' IS NOT NULL OR '1'='1", value="x")) == set()


def test_a_strange_but_honest_value_finds_its_own(wb: Workbench, store: PassageStore) -> None:
    assert found(wb, store, MetadataFilter(key="author", value=STRANGE)) == {"A note."}
    part = MetadataFilter(key="author", value="100%", operator=FilterOperator.TEXT_MATCH)
    assert found(wb, store, part) == {"A note."}
    several = MetadataFilter(key="author", value=["x", STRANGE], operator=FilterOperator.IN)
    assert found(wb, store, several) == {"A note."}


def test_numbers_compare_as_numbers_and_rows_without_them_do_not_fail(wb: Workbench, store: PassageStore) -> None:
    assert found(wb, store, MetadataFilter(key="year", value=2020, operator=FilterOperator.GT)) == {"A note."}
    assert found(wb, store, MetadataFilter(key="year", value=2021, operator=FilterOperator.GT)) == set()
    assert found(wb, store, MetadataFilter(key="author", value=1, operator=FilterOperator.GTE)) == set()


def test_the_right_source_still_finds_everything(wb: Workbench, store: PassageStore) -> None:
    source = wb.sources.get("Animals")
    assert len(found(wb, store, MetadataFilter(key="source_id", value=source.id))) == 3


def test_nothing_was_dropped_by_trying(wb: Workbench, store: PassageStore) -> None:
    for attack in ATTACKS:
        found(wb, store, MetadataFilter(key=attack, value=attack))
    assert wb.documents.count() == 2

"""Our parts in LlamaIndex, LangChain and Haystack: retrievers, node parsers and the vector store."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

import pytest

os.environ["HAYSTACK_TELEMETRY_ENABLED"] = "False"  # read when Haystack is imported

from haystack import Pipeline
from haystack.components.builders import PromptBuilder
from langchain_classic.retrievers import EnsembleRetriever
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnablePassthrough
from llama_index.core import Document, VectorStoreIndex
from llama_index.core.ingestion import IngestionPipeline
from llama_index.core.llms import MockLLM
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.response_synthesizers import ResponseMode, get_response_synthesizer
from llama_index.core.retrievers import QueryFusionRetriever
from llama_index.core.schema import MetadataMode
from llama_index.core.vector_stores import MetadataFilter, MetadataFilters

from workbench import Scope, Workbench
from workbench.errors import InvalidInput, ScopeError

DOCS = {
    "tea.md": (
        "# Tea\n\n## Green\n\nGreen tea is steamed.\n\n## Black\n\nBlack tea is oxidised.\n\n"
        "## Green\n\nGreen tea is steamed."
    ),
    "coffee.md": "# Coffee\n\nCoffee beans are roasted in a drum.",
    "milk.md": "# Milk\n\nMilk is heated before it is sold.",
}
QUESTION = "how are coffee beans roasted?"


@pytest.fixture
def drinks(wb: Workbench, folder: Callable[..., Path]) -> Workbench:
    wb.ingest(folder(DOCS), source="Drinks")
    return wb


@pytest.mark.parametrize("strategy", ["keyword", "vector", "hybrid", "rerank"])
def test_a_retriever_returns_the_passages_of_the_search_in_every_framework(drinks: Workbench, strategy: str) -> None:
    expected = drinks.search(QUESTION, strategy, limit=3)
    ids, scores = [hit.passage_id for hit in expected], [hit.score for hit in expected]
    nodes = drinks.retriever(strategy, limit=3).retrieve(QUESTION)
    assert ([node.node_id for node in nodes], [node.score for node in nodes]) == (ids, scores)
    documents = drinks.langchain_retriever(strategy, limit=3).invoke(QUESTION)
    assert ([one.id for one in documents], [one.metadata["score"] for one in documents]) == (ids, scores)
    found = drinks.haystack_retriever(strategy, limit=3).run(query=QUESTION)["documents"]
    assert ([one.id for one in found], [one.score for one in found]) == (ids, scores)
    for text, metadata, hit in zip([one.content for one in found], [one.meta for one in found], expected, strict=True):
        assert (text, metadata["title"], metadata["path"]) == (hit.text, hit.document_title, hit.path)
        assert (metadata["document_id"], metadata["start"], metadata["end"]) == (hit.document_id, hit.start, hit.end)


def test_retrievers_can_be_awaited(drinks: Workbench) -> None:
    async def ask() -> tuple[str, str]:
        [node] = await drinks.retriever("keyword", limit=1).aretrieve(QUESTION)
        [document] = await drinks.langchain_retriever("keyword", limit=1).ainvoke(QUESTION)
        return node.node_id, str(document.id)

    first, second = asyncio.run(ask())
    assert first == second == drinks.search(QUESTION, "keyword", limit=1)[0].passage_id


def test_options_are_checked_when_the_retriever_is_made(drinks: Workbench) -> None:
    for make in (drinks.retriever, drinks.langchain_retriever, drinks.haystack_retriever):
        with pytest.raises(InvalidInput, match="'best'"):
            make("best")
        with pytest.raises(ScopeError):
            make("keyword", scope=Scope(sources=("missing",)))


def test_a_scope_holds_in_the_other_framework(drinks: Workbench, folder: Callable[..., Path]) -> None:
    drinks.ingest(folder({"more.md": "# More coffee\n\nCoffee beans are roasted at home."}, name="more"), source="More")
    found = drinks.langchain_retriever("keyword", scope=Scope(sources=("More",))).invoke(QUESTION)
    assert [one.metadata["title"] for one in found] == ["More coffee"]


def test_a_fusion_of_ours_in_llama_index_comes_back_as_a_strategy(drinks: Workbench) -> None:
    fusion = QueryFusionRetriever(
        [drinks.retriever("keyword"), drinks.retriever("vector")],
        llm=MockLLM(),
        num_queries=1,
        similarity_top_k=3,
        mode="reciprocal_rerank",  # pyright: ignore[reportArgumentType]
        use_async=False,
    )
    drinks.strategies.add("fusion", fusion)
    try:
        result = drinks.search(QUESTION, "fusion", limit=3)
        assert result[0].document_title == "Coffee" and not [note for note in result.degraded if "matched" in note]
    finally:
        drinks.strategies.remove("fusion")


def test_an_ensemble_of_ours_in_langchain_comes_back_as_a_strategy(drinks: Workbench) -> None:
    ensemble = EnsembleRetriever(
        retrievers=[drinks.langchain_retriever("keyword"), drinks.langchain_retriever("vector")], weights=[0.6, 0.4]
    )
    drinks.strategies.add("ensemble", ensemble)
    try:
        result = drinks.search(QUESTION, "ensemble", limit=3)
        assert result[0].document_title == "Coffee" and not [note for note in result.degraded if "matched" in note]
    finally:
        drinks.strategies.remove("ensemble")


def test_a_langchain_chain_reads_our_passages(drinks: Workbench) -> None:
    prompt = ChatPromptTemplate.from_template("{context}\n\n{question}")
    chain = {"context": drinks.langchain_retriever("keyword", limit=1), "question": RunnablePassthrough()} | prompt
    assert "roasted in a drum" in chain.invoke(QUESTION).to_string()


def test_a_haystack_pipeline_reads_our_passages(drinks: Workbench) -> None:
    pipeline = Pipeline()
    pipeline.add_component("retriever", drinks.haystack_retriever("keyword"))
    template = "{% for one in documents %}{{ one.content }} {% endfor %}"
    pipeline.add_component("prompt", PromptBuilder(template=template, required_variables=["documents"]))
    pipeline.connect("retriever.documents", "prompt.documents")
    prompt = pipeline.run({"retriever": {"query": QUESTION, "top_k": 1}})["prompt"]["prompt"]
    assert "roasted in a drum" in prompt and "Milk" not in prompt


def test_a_query_engine_answers_from_our_retriever(drinks: Workbench) -> None:
    synthesizer = get_response_synthesizer(llm=MockLLM(), response_mode=ResponseMode.COMPACT)
    engine = RetrieverQueryEngine(drinks.retriever("keyword", limit=1), response_synthesizer=synthesizer)
    assert "roasted in a drum" in str(engine.query(QUESTION))


def test_a_chunker_cuts_in_a_pipeline_of_llama_index(drinks: Workbench) -> None:
    parser = drinks.node_parser("heading")
    text = DOCS["tea.md"]
    nodes = IngestionPipeline(transformations=[parser]).run(documents=[Document(text=text, metadata={"title": "Tea"})])
    assert [text[node.start_char_idx : node.end_char_idx] for node in nodes] == [
        node.get_content(MetadataMode.NONE) for node in nodes
    ]
    assert [node.get_content(MetadataMode.NONE).splitlines()[-1] for node in nodes] == [
        "Green tea is steamed.", "Black tea is oxidised.", "Green tea is steamed.",
    ]  # fmt: skip
    assert nodes[2].start_char_idx > nodes[1].start_char_idx  # its text also occurs before
    stored = drinks.documents.passages(next(one.id for one in drinks.documents.list() if one.title == "Tea"))
    ours = drinks.node_parser().get_nodes_from_documents([Document(text=text, metadata={"title": "Tea"})])
    assert [node.get_content(MetadataMode.NONE) for node in ours] == [passage.text for passage in stored]
    with pytest.raises(InvalidInput, match="Unknown chunker 'scissors'"):
        drinks.node_parser("scissors")
    with pytest.raises(InvalidInput, match="size"):
        drinks.node_parser("heading", {"size": 2})


def test_the_store_serves_a_vector_store_index(drinks: Workbench) -> None:
    index = VectorStoreIndex.from_vector_store(drinks.vector_store(), embed_model=drinks.embed_model())
    nodes = index.as_retriever(similarity_top_k=2).retrieve(QUESTION)
    expected = drinks.search(QUESTION, "vector", limit=2)
    assert [node.node_id for node in nodes] == [hit.passage_id for hit in expected]
    tea = next(one.id for one in drinks.documents.list() if one.title == "Tea")
    only = MetadataFilters(filters=[MetadataFilter(key="document_id", value=tea)])
    assert {node.metadata["document_id"] for node in index.as_retriever(filters=only).retrieve(QUESTION)} == {tea}

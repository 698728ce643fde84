"""Strategies of a user's own: real LlamaIndex and LangChain retrievers, functions and endpoints."""

from __future__ import annotations

import itertools
import json
import threading
import time
import uuid
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pytest
from haystack import Document as HaystackDocument
from langchain_community.retrievers import BM25Retriever
from langchain_core.documents import Document
from langchain_core.runnables import RunnableLambda
from llama_index.core.postprocessor import SimilarityPostprocessor
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

from workbench import Scope, Workbench
from workbench.errors import ConfigurationError, Conflict, InvalidInput
from workbench.retrieval.own import read_hit
from workbench.retrieval.retrievers.foreign import is_same_file, measure_overlap, scale_scores
from workbench.retrieval.strategies import BUILT_IN_STRATEGIES, STRATEGIES
from workbench.types import SearchResult

TEXTS = {
    "owls.md": "# Owls\n\nOwls hunt at night and hear a mouse below the snow from thirty metres away.",
    "bees.md": "# Bees\n\nBees dance to show the other bees of the hive where the best flowers are.",
    "bats.md": "# Bats\n\nBats find a moth in the dark by the echo of their own very high calls.",
}


@pytest.fixture
def animals(wb: Workbench, folder: Callable[..., Path]) -> Iterator[Workbench]:
    """Three documents in two sources, and no own strategies before or after."""
    wb.ingest(folder({name: TEXTS[name] for name in ("owls.md", "bees.md")}), source="Day and night", on_progress=quiet)
    wb.ingest(folder({"bats.md": TEXTS["bats.md"]}, name="more"), source="Secret", on_progress=quiet)
    yield wb
    for name in [name for name in STRATEGIES if name not in BUILT_IN_STRATEGIES]:
        STRATEGIES.remove(name)


def quiet(_: object) -> None:
    """Show no progress."""


class Fixed(BaseRetriever):
    """A LlamaIndex retriever over nodes in a fixed order."""

    def __init__(self, nodes: Sequence[NodeWithScore]) -> None:
        self._nodes = list(nodes)
        super().__init__()

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return self._nodes


def node(text: str, score: float, **metadata: str) -> NodeWithScore:
    return NodeWithScore(node=TextNode(text=text, metadata=metadata), score=score)


def titles(wb: Workbench, strategy: str, scope: Scope | None = None) -> list[str]:
    return [hit.document_title for hit in wb.search("who hunts in the dark?", strategy, 3, scope)]


def retriever_notes(result: SearchResult) -> list[str]:
    return [note for note in result.degraded if note.startswith("retriever")]


def test_a_llama_index_retriever_is_matched_by_path_and_by_text(animals: Workbench) -> None:
    found = Fixed([node("A summary", 0.9, file_path="/elsewhere/docs/bees.md"), node(TEXTS["owls.md"][8:], 0.5)])
    animals.strategies.add("fixed", found)
    result = animals.search("who hunts at night?", "fixed", 2)
    assert [(hit.document_title, hit.score) for hit in result] == [("Bees", 0.9), ("Owls", 0.5)]
    assert all(hit.passage_id.startswith("psg_") for hit in result)
    assert "retriever: 1 hit matched to a document but to none of its passages, and shown by the most similar one" in (
        result.degraded
    )
    assert result[0].attribution["own"].rank == 1 and result[0].attribution["own"].contribution == 0.9


def test_postprocessors_of_llama_index_come_after_any_retriever(animals: Workbench) -> None:
    rows = [("", TEXTS["owls.md"], 0.9), ("", TEXTS["bees.md"], 0.2)]
    cut = SimilarityPostprocessor(similarity_cutoff=0.5)
    animals.strategies.add("cut", lambda question, limit: rows, postprocessors=[cut])
    assert titles(animals, "cut") == ["Owls"]


def test_a_langchain_retriever_is_compared_with_the_built_in_ones(animals: Workbench) -> None:
    documents = [Document(page_content=text, metadata={"source": name}) for name, text in TEXTS.items()]
    animals.strategies.add("langchain", BM25Retriever.from_documents(documents, k=3))
    compared = animals.compare("how do bats find a moth", ["keyword", "langchain"], 3)
    assert compared.strategies["langchain"][0].passage_id == compared.strategies["keyword"][0].passage_id
    assert set(compared.agreement["jaccard"]) == {"keyword|langchain"}


def by_keyword_only(*, question: str, k: int) -> list[object]:
    return [("", TEXTS["owls.md"], 1.0)] * (question == "who hunts in the dark?" and k == 3)


def by_name_of_limit(query: str, index: str = "main", top_k: int = 10) -> list[object]:
    return [("", TEXTS["owls.md"], 1.0)] * ((index, top_k) == ("main", 3))


def positional(query: str, k: int, /) -> list[object]:
    return [("", TEXTS["owls.md"], 1.0)] * (k == 3)


async def one_by_one(query: str, limit: int) -> AsyncIterator[object]:
    yield {"id": uuid.uuid4(), "text": TEXTS["owls.md"], "score": np.float32(0.5)}


@pytest.mark.parametrize(
    "retriever",
    [
        lambda question, limit: [(17, TEXTS["owls.md"], Decimal("0.5"))],
        lambda question, limit: [(np.int64(17), TEXTS["owls.md"], np.float32(0.5))],
        lambda question, limit: [(uuid.uuid4(), TEXTS["owls.md"])],
        lambda question, limit: [(TEXTS["owls.md"], np.float32(0.5))],
        lambda question, limit: [TEXTS["owls.md"]],
        lambda question, limit: pd.DataFrame({"id": [3], "text": [TEXTS["owls.md"]], "score": [0.5]}),
        RunnableLambda(lambda question: {"context": [Document(page_content=TEXTS["owls.md"])], "answer": "Owls."}),
        lambda question, limit: {"documents": [HaystackDocument(content=TEXTS["owls.md"], meta={"text": "x"})]},
        lambda question, limit: [SimpleNamespace(id=17, payload={"text": TEXTS["owls.md"]}, score=0.5)],
        lambda question, limit: [{"id": "x", "metadata": {"source": "docs/owls.md"}}],
        by_keyword_only,
        by_name_of_limit,
        positional,
        one_by_one,
    ],
)
def test_hits_of_databases_and_libraries_are_read_in_their_own_types(animals: Workbench, retriever: Any) -> None:
    animals.strategies.add("typed", retriever)
    result = animals.search("who hunts in the dark?", "typed", 3)
    assert [hit.document_title for hit in result] == ["Owls"]
    assert retriever_notes(result) == ["retriever: it returned 1 hit, fewer than the 3 requested"]


def test_a_query_engine_of_the_workbench_gives_what_its_strategy_gives(animals: Workbench) -> None:
    animals.strategies.add("engine", animals.query_engine("hybrid", 3))
    expected = [(hit.passage_id, round(hit.score, 6)) for hit in animals.search("dance of bees", "hybrid", 3)]
    assert [(hit.passage_id, round(hit.score, 6)) for hit in animals.search("dance of bees", "engine", 3)] == expected


def test_what_is_outside_the_scope_is_dropped_and_not_named(animals: Workbench) -> None:
    bats = next(document for document in animals.documents.list() if document.title == "Bats")
    passage = animals.documents.passages(bats.id)[0]
    by_text = [{"text": TEXTS["bats.md"][8:], "score": 2}, {"text": TEXTS["owls.md"], "score": 1}]
    named = [{"document_id": bats.id, "score": 4}, {"path": "bats.md", "text": "echo", "score": 3}]
    hits: list[Any] = [(passage.node_id, "x", 5.0), *named, *by_text]
    animals.strategies.add("leaky", lambda question, limit: hits)
    inside = animals.search("bats", "leaky", 5, Scope(sources=("Day and night",)))
    assert [hit.document_title for hit in inside] == ["Owls"]
    assert retriever_notes(inside) == ["retriever: only its hits from documents in the scope are shown"]
    shown = json.dumps(inside.to_dict()).lower()
    assert "moth" not in shown and "echo" not in shown and bats.id not in shown
    assert titles(animals, "leaky") == ["Bats", "Owls"]  # the four name one passage


def test_a_hit_that_matches_nothing_is_shown_with_its_own_text_and_counted(animals: Workbench) -> None:
    stranger = {"text": "Moles dig.", "url": "https://moles.example/a", "title": "Moles", "score": 2}
    animals.strategies.add("strange", lambda question, limit: [stranger, {"text": TEXTS["owls.md"], "score": 1}])
    result = animals.search("who digs?", "strange", 2)
    assert [(hit.document_title, hit.score) for hit in result] == [("Moles", 1.0), ("Owls", 0.5)]
    assert result[0].text == "Moles dig."
    assert result[0].metadata["unmatched"] is True and result[0].url == "https://moles.example/a"
    assert "retriever: 1 hit matched to no stored document and shown as returned" in result.degraded
    _, explained = animals.explaining.explain_hits("who digs?", _ask("strange"))
    assert [one.document_title for one in explained] == ["Owls"]


def test_a_hit_that_matches_nothing_is_shown_only_without_a_scope(animals: Workbench) -> None:
    """It may come from anywhere, so a scope drops it without a count; sources of articles are no scope."""
    hits = [{"text": "Moles dig.", "title": "Moles", "score": 2}, {"text": TEXTS["owls.md"], "score": 1}]
    animals.strategies.add("strange", lambda question, limit: hits)
    inside = animals.search("who digs?", "strange", 3, Scope(sources=("Day and night",)))
    assert [hit.document_title for hit in inside] == ["Owls"]
    assert retriever_notes(inside) == ["retriever: only its hits from documents in the scope are shown"]
    animals.sources.create("My articles", source_type="articles")
    assert [hit.document_title for hit in animals.search("who digs?", "strange", 3)] == ["Moles", "Owls"]


def _ask(strategy: str) -> Any:
    from workbench.retrieval.options import Ask

    return Ask(strategy, 5)


def test_each_fault_is_reported_and_the_other_columns_are_there(animals: Workbench) -> None:
    def fail(question: str, limit: int) -> list[object]:
        raise ValueError("no such table")

    def sleep(question: str, limit: int) -> None:
        time.sleep(3)

    owls, bees = TEXTS["owls.md"], TEXTS["bees.md"]
    animals.strategies.add("fails", fail)
    animals.strategies.add("sleeps", sleep, seconds=0.2)
    animals.strategies.add("nothing", lambda question, limit: None)
    animals.strategies.add("odd", lambda question, limit: [("", owls, 1.0), ("", owls, 0.5), ("", bees, 2.0), 7.5])
    began = time.perf_counter()
    compared = animals.compare("owls", ["fails", "sleeps", "nothing", "odd", "keyword"], 2).strategies
    assert time.perf_counter() - began < 2.5
    assert compared["fails"].degraded == ("retriever: it failed with ValueError: no such table, so nothing is shown",)
    assert compared["sleeps"].degraded == ("retriever: it did not answer within 0.2 s, so nothing is shown",)
    assert "returned a NoneType, not a list of hits" in compared["nothing"].degraded[0]
    assert [hit.document_title for hit in compared["odd"]] == ["Owls", "Bees"]
    assert [hit.score for hit in compared["odd"]] == [1.0, 0.5]
    assert set(compared["odd"].degraded) == {
        "retriever: its scores do not decrease with rank, so its order is kept and passages are scored by rank",
        "retriever: 1 hit could not be read (the first: it is a float)",
        "retriever: it returned 4 hits instead of the 2 requested",
        "retriever: 1 hit left out: already listed",
    }
    assert compared["keyword"][0].document_title == "Owls"


class Unspeakable(Exception):
    """An exception that cannot be described."""

    def __str__(self) -> str:
        raise RuntimeError("str failed")


class Hidden:
    """A hit whose text cannot be read."""

    @property
    def text(self) -> str:
        raise KeyError("no connection")


def test_no_exception_of_a_retriever_ends_a_comparison(animals: Workbench) -> None:
    def fail(question: str, limit: int) -> list[object]:
        raise Unspeakable

    def leave(question: str, limit: int) -> list[object]:
        raise SystemExit(3)

    animals.strategies.add("unspeakable", fail)
    animals.strategies.add("leaves", leave)
    hits = [("", TEXTS["owls.md"], 0.9), Hidden(), None]
    animals.strategies.add("odd", lambda question, limit: hits)
    animals.strategies.add("odd-after", lambda question, limit: hits, postprocessors=[SimilarityPostprocessor()])
    compared = animals.compare("owls", ["unspeakable", "leaves", "odd", "odd-after", "keyword"], 2).strategies
    assert compared["unspeakable"].degraded == ("retriever: it failed with Unspeakable, so nothing is shown",)
    assert compared["leaves"].degraded == ("retriever: it failed with SystemExit: 3, so nothing is shown",)
    for name in ("odd", "odd-after"):
        assert [hit.document_title for hit in compared[name]] == ["Owls"]
        assert any(
            note.startswith("retriever: 2 hits could not be read (the first: Key") for note in compared[name].degraded
        )
    assert compared["keyword"][0].document_title == "Owls"


def test_of_many_hits_only_the_first_are_matched(animals: Workbench) -> None:
    texts = list(TEXTS.values())
    animals.strategies.add("endless", lambda question, limit: itertools.cycle(texts))
    animals.strategies.add("many", lambda question, limit: [f"No such text {n}" for n in range(900)])
    compared = animals.compare("owls", ["endless", "many"], 2).strategies
    assert len(compared["endless"]) == 2
    assert compared["endless"].degraded == ("retriever: it returned over 1,000 hits instead of the 2 requested",)
    assert "retriever: 2 hits matched to no stored document and shown as returned" in compared["many"].degraded


class ByText:
    """A retriever that has the methods of LlamaIndex's, but takes texts."""

    def retrieve(self, question: str) -> list[str]:
        return [text for text in TEXTS.values() if question.lower() in text.lower()]


class ByQuery:
    """An engine whose query returns hits."""

    def query(self, question: str) -> list[str]:
        return ByText().retrieve(question)


def by_filter(question: str, filters: Mapping[str, str] | None = None) -> list[str]:
    assert filters is None
    return ByText().retrieve(question)


def by_namespace(question: str, namespace: str = "all", top_n: int = 5) -> list[str]:
    assert (namespace, top_n) == ("all", 2)
    return ByText().retrieve(question)


def by_number(k: int, question: str) -> list[str]:
    return ByText().retrieve(question)[:k]


@pytest.mark.parametrize("given", [ByText(), ByQuery(), by_filter, by_namespace, by_number])
def test_objects_and_functions_of_other_shapes_are_asked(animals: Workbench, given: object) -> None:
    animals.strategies.add("shaped", given)
    found = animals.search("owls", "shaped", limit=2)
    assert found.degraded == () or "fewer than" in found.degraded[0]
    assert found[0].document_title == "Owls"


class Endpoint(BaseHTTPRequestHandler):
    """A retriever behind HTTP on loopback, as docs/reference/strategy-endpoint.json describes it."""

    asked: ClassVar[list[tuple[str | None, dict[str, Any]]]] = []

    def do_POST(self) -> None:
        """Answer, redirect or fail by path."""
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.asked.append((self.headers["Authorization"], body))
        status = {"/moved": 302, "/broken": 500}.get(self.path, 200)
        self.send_response(status)
        if status == 302:
            self.send_header("Location", "http://127.0.0.1:9/elsewhere")
        self.end_headers()
        self.wfile.write(json.dumps({"hits": [{"path": "bees.md", "text": "Bees dance", "score": 3}]}).encode())

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@pytest.fixture
def endpoint() -> Iterator[str]:
    """The URL of a real server on loopback."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Endpoint)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


def test_an_http_endpoint_is_asked_as_documented(
    animals: Workbench, make_settings: Callable[..., Any], endpoint: str
) -> None:
    headers = json.dumps({f"{endpoint}/find": {"Authorization": "Bearer s3cret"}})
    Endpoint.asked.clear()
    with Workbench.open(settings=make_settings(strategy_headers=headers)) as own:
        own.strategies.add("web", f"{endpoint}/find")
        own.strategies.add("moved", f"{endpoint}/moved")
        own.strategies.add("broken", f"{endpoint}/broken")
        result = own.search("who dances?", "web", 1)
        assert [hit.document_title for hit in result] == ["Bees"]
        assert Endpoint.asked == [
            ("Bearer s3cret", {"question": "who dances?", "limit": 1, "parameters": {}}),
        ]
        assert "status 302" in own.search("x", "moved", 1).degraded[0]
        assert "status 500" in own.search("x", "broken", 1).degraded[0]
        assert Endpoint.asked[-1][0] is None  # the header is for another path


def test_the_documented_shape_is_the_one_that_is_sent(endpoint: str) -> None:
    spec = json.loads(Path("docs/reference/strategy-endpoint.json").read_text(encoding="utf-8"))
    schemas = spec["components"]["schemas"]
    assert set(schemas["Question"]["properties"]) == {"question", "limit", "parameters"}
    hit = {name: "1" if name == "score" else f"a {name}" for name in schemas["Hit"]["properties"]}
    read = read_hit(hit | {"url": "https://a.example/"})
    assert (read.url, read.path, read.text, read.title, read.score) == (
        "https://a.example/", "a path", "a text", "a title", 1.0,
    )  # fmt: skip
    assert read.ids == ("a id", "a document_id")


def test_a_strategy_with_parameters_is_set_like_a_built_in_one(animals: Workbench) -> None:
    from workbench.types import Parameter

    def repeat(question: str, limit: int, which: str) -> list[dict[str, str]]:
        return [{"text": TEXTS[which]}]

    which = Parameter("which", "choice", "owls.md", "Which text.", choices=tuple(TEXTS))
    animals.strategies.add("chosen", repeat, parameters=[which])
    assert titles(animals, "chosen") == ["Owls"]
    assert [hit.document_title for hit in animals.search("x", "chosen", parameters={"which": "bats.md"})] == ["Bats"]
    with pytest.raises(InvalidInput, match=r"use one of 'owls\.md', 'bees\.md'"):
        animals.search("x", "chosen", parameters={"which": "cats.md"})


def test_names_and_objects_that_cannot_be_strategies_are_refused(animals: Workbench) -> None:
    with pytest.raises(Conflict, match="'rerank' is built in"):
        animals.strategies.add("rerank", print)
    with pytest.raises(InvalidInput, match="Invalid strategy name 'No Good'"):
        animals.strategies.add("No Good", print)
    with pytest.raises(InvalidInput, match="Invalid retriever, an int: pass a LlamaIndex retriever"):
        animals.strategies.add("number", 5)
    with pytest.raises(InvalidInput, match="it is a class; pass an instance"):
        animals.strategies.add("kind", Fixed)
    animals.strategies.add("mine", lambda question: [])
    with pytest.raises(Conflict, match="pass replace=True"):
        animals.strategies.add("mine", lambda question: [])
    assert "mine" in [strategy.name for strategy in animals.strategies.list()]
    animals.strategies.remove("mine")
    assert "mine" not in STRATEGIES


def test_a_promoted_strategy_serves_and_another_process_reports_what_it_lacks(animals: Workbench) -> None:
    animals.strategies.add("mine", lambda question, limit: [{"text": TEXTS["bees.md"]}])
    animals.promotions.promote("mine")
    assert animals.search("owls").strategy == "mine"
    animals.strategies.remove("mine")  # as in a process that has not added it
    with pytest.raises(ConfigurationError, match="The strategy 'mine' is not registered in this process; declare it"):
        animals.search("owls")


def test_a_file_declares_strategies_that_are_read_when_they_are_needed(
    animals: Workbench, make_settings: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "declared_owls.py").write_text(
        f"def make(question, limit, k):\n    return [{{'text': {TEXTS['owls.md']!r}}}] * k\n", encoding="utf-8"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    config = tmp_path / "workbench.toml"
    config.write_text(
        '[strategies.owls]\nuse = "declared_owls:make"\ntitle = "Owls first"\n'
        '[strategies.owls.parameters.k]\nkind = "int"\ndefault = 2\nlow = 1\nhigh = 5\n'
        '[strategies.gone]\nuse = "no_such_module:x"\n',
        encoding="utf-8",
    )
    with Workbench.open(settings=make_settings(config_file=config)) as own:
        assert own.search("owls", "keyword").strategy == "keyword"
        assert "owls" not in STRATEGIES._rows  # nothing was read for a built-in strategy
        assert titles(own, "owls") == ["Owls"]
        assert own.strategies.get("owls").title == "Owls first"
        assert "loading no_such_module:x failed (ModuleNotFoundError" in own.search("x", "gone").degraded[0]


def test_a_broken_file_is_named(tmp_path: Path) -> None:
    from workbench.services.strategies import read_config

    broken = tmp_path / "workbench.toml"
    for text, problem in (
        ("[strategies.x", "is unreadable"),
        ("[strategies.x]\nuse = 'a:b'\nurl = 'http://a'", "either use or url"),
        ("[strategies.x]\nurl = 'http://a'\ncolour = 1", "colour = 1 is not an option"),
    ):
        broken.write_text(text, encoding="utf-8")
        with pytest.raises(ConfigurationError, match=problem):
            read_config(broken)
    assert read_config(tmp_path / "none.toml") == {}


@pytest.mark.parametrize(
    ("given", "expected", "fault"),
    [
        ([0.9, 0.5, 0.5], [0.9, 0.5, 0.5], ""),
        ([20.0, 10.0, 5.0], [1.0, 0.5, 0.25], ""),
        ([1.0, 0.0, -1.0], [1.0, 0.5, 0.0], ""),
        ([None, None], [1.0, 0.5], ""),
        ([1.0, 3.0], [1.0, 0.5], "its scores do not decrease with rank"),
        ([3.0, None], [1.0, 0.5], "1 hit had no score"),
        ([], [], ""),
    ],
)
def test_scores_are_scaled_or_replaced_by_ranks(given: list[float | None], expected: list[float], fault: str) -> None:
    assert scale_scores(given) == (expected, fault)


def test_texts_match_if_equal_contained_or_continued() -> None:
    sentence = "Owls hunt at night and hear a mouse below the snow from thirty metres away."
    assert measure_overlap(f"A\n\n{sentence}", f"A {sentence}") == len(sentence) + 3
    assert measure_overlap(f"Title. {sentence} More.", sentence) == len(sentence)
    assert measure_overlap(f"First. {sentence}", f"{sentence} Then something else.") == len(sentence)
    assert measure_overlap("Owls hunt at night and by day", "Owls hunt at night") == 0  # a phrase, not a passage
    assert measure_overlap("", "") == 0


def test_paths_are_the_same_file_if_one_ends_with_the_other() -> None:
    assert is_same_file("docs/a.md", "/home/me/docs/a.md") and is_same_file("C:\\x\\a.md", "a.md")
    assert not is_same_file("docs/a.md", "/home/me/other/a.md") and not is_same_file("", "a.md")

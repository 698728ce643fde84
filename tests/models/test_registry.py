"""Model names in settings: known ones load without reading files, others are rejected with the valid ones."""

from __future__ import annotations

import json
import re
import sys
import tomllib
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from types import SimpleNamespace

import numpy as np
import pytest

from workbench.errors import ConfigurationError, ModelError, list_choices
from workbench.models.hashing import HashEncoder
from workbench.models.registry import BUILT_IN, MODELS, NAME_FORMS, EmbeddingModel, load_encoder
from workbench.settings import Settings

SEEN = SimpleNamespace(inputs=[])


class Endpoint(BaseHTTPRequestHandler):
    """An OpenAI-compatible endpoint on this machine that embeds by hashing; the model "broken" omits one vector."""

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        SEEN.inputs.extend(asked["input"])
        vectors = HashEncoder().encode(asked["input"]).vectors * 3
        rows = [{"object": "embedding", "index": i, "embedding": row.tolist()} for i, row in enumerate(vectors)]
        if asked["model"] == "broken":
            rows = rows[:-1]
        body = json.dumps({"object": "list", "data": rows, "model": asked["model"], "usage": {}}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Endpoint)
    thread = Thread(target=server.serve_forever)
    thread.start()
    monkeypatch.setenv("OPENAI_API_BASE", f"http://127.0.0.1:{server.server_port}/v1")
    monkeypatch.setenv("OPENAI_API_KEY", "a key")
    yield
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.mark.parametrize("name", BUILT_IN)
def test_built_in_models_load_by_name_and_read_nothing_yet(name: str, tmp_path: Path) -> None:
    encoder = load_encoder(name, tmp_path / "models")
    assert encoder.name == name, f"Give the encoder of {name!r} that name: it is the setting that loads it again."
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["", "minilm2", "openai:", "nowhere:x", "a/b/c", "/", "💡", "../../etc"])
def test_an_unknown_name_is_answered_with_the_valid_ones(name: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(list_choices([*BUILT_IN, *NAME_FORMS], 20))):
        load_encoder(name, tmp_path)


@pytest.mark.parametrize(
    ("name", "module", "install"),
    [
        ("BAAI/bge-small-en-v1.5", "huggingface", "'rag-workbench[huggingface]'"),
        ("fastembed:BAAI/bge-small-en-v1.5", "fastembed", "llama-index-embeddings-fastembed"),
    ],
)
def test_a_missing_package_is_named_with_what_to_install(
    name: str, module: str, install: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, f"llama_index.embeddings.{module}", None)  # as if it were not installed
    with pytest.raises(ConfigurationError, match=f"'{name}' needs .* pip install {re.escape(install)}"):
        load_encoder(name, tmp_path)


@pytest.fixture
def own_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A user's module with real LlamaIndex embeddings, which call the endpoint."""
    (tmp_path / "my_models.py").write_text(
        "from llama_index.embeddings.openai import OpenAIEmbedding\n"
        "def make(): return OpenAIEmbedding(model_name='my-model', max_retries=0)\n"
        "def broken(): return OpenAIEmbedding(model_name='broken', max_retries=0)\n"
        "def fails(): return {}['key']\n"
        "count = 3\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))


@pytest.mark.slow  # imports the framework and its client
@pytest.mark.usefixtures("endpoint", "own_module")
def test_an_embedding_of_llamaindex_is_loaded_by_its_dotted_path(tmp_path: Path) -> None:
    encoder = load_encoder("python:my_models.make?tokens=none", tmp_path)
    counts: list[int] = []
    texts = ["apple pear", "", *(f"text {number}" for number in range(40))]
    encoded = encoder.encode(texts, on_batch=counts.append)
    np.testing.assert_allclose(
        encoded.vectors[[0, 2]], HashEncoder().encode(["apple pear", "text 0"]).vectors, atol=1e-6
    )
    assert (encoded.vectors.shape, encoded.token_bits, counts) == ((42, 512), None, [32, 10])
    assert (encoder.dimensions, encoder.has_token_vectors) == (512, False)
    assert encoder.encode_query("apple").token_axes is None
    assert "" not in SEEN.inputs
    with pytest.raises(ModelError, match=r"'python:my_models\.broken' did not return one vector for each text"):
        load_encoder("python:my_models.broken", tmp_path).encode(["one", "two"])


@pytest.mark.usefixtures("own_module")
@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("python:my_models.absent", "was not loaded .AttributeError"),
        ("python:no_such.thing", "was not loaded .ModuleNotFoundError"),
        ("python:my_models.fails", "was not loaded .KeyError: .*; use python:PACKAGE"),
        ("python:nothing", "was not loaded"),
        ("python:my_models.count", "is a int; it must be a LlamaIndex BaseEmbedding"),
    ],
)
def test_an_attribute_that_is_no_model_is_refused(name: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=message):
        load_encoder(name, tmp_path)


def test_an_endpoint_that_does_not_answer_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"'endpoint:gone.* at http://127.0.0.1:9/v1 is unreachable"):
        load_encoder("endpoint:gone?url=http://127.0.0.1:9/v1&retries=0", tmp_path).encode_query("anyone?")


@pytest.mark.parametrize("row", MODELS, ids=lambda row: row.name)
def test_every_built_in_model_reports_all_that_the_house_asks(row: EmbeddingModel, tmp_path: Path) -> None:
    encoder = load_encoder(row.name, tmp_path)
    texts = (
        (row.title, "title", "the app's list of models shows it"),
        (
            0 < row.nearness.far < row.nearness.near < 1,
            "near and far",
            "without them no question is ever refused; measure both",
        ),
        (row.languages is None or all(len(code) == 2 for code in row.languages), "languages", "two letters each"),
        (encoder.languages == row.languages, "languages", "the encoder says other ones"),
        (encoder.has_token_vectors == row.has_token_vectors, "has_token_vectors", "the encoder says otherwise"),
        (encoder.max_tokens > 0 and encoder.dimensions > 0, "max_tokens and dimensions", "the encoder lacks them"),
    )
    for value, field, why in texts:
        assert value, f"The row of {row.name!r} in workbench/models/registry.py needs {field}: {why}."


def test_every_built_in_model_is_named_where_the_setting_is_described() -> None:
    described = Settings.model_fields["embedding_model"].description or ""
    for row in MODELS:
        assert f"'{row.name}'" in described, f"workbench/settings.py does not name the embedding model {row.name!r}."


def test_every_extra_of_a_model_is_declared() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))
    for row in MODELS:
        declared = project["project"]["optional-dependencies"]
        assert not row.extra or row.extra in declared, f"pyproject.toml has no extra {row.extra!r} for {row.name!r}."

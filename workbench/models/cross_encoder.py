"""Cross-encoders: a local folder with an ONNX graph, or any model of sentence-transformers."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from threading import Lock
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np

from workbench.errors import ConfigurationError, ModelError
from workbench.models.encoder import check_scores

RERANK_FAMILIES = ("cohere", "jina", "voyage", "endpoint", "tei")  # as in "cohere:rerank-v3.5"
MAX_TOKENS = 512  # question and passage together, the length that published cross-encoders were trained on
BATCH_SIZE = 16


class CrossEncoder(Protocol):
    """A model that scores passages for a question; higher is better, in the model's own unit."""

    @property
    def name(self) -> str:
        """The setting that loads this model."""
        ...

    def scores(self, query: str, texts: Sequence[str]) -> list[float]:
        """Return one score for each text. Raises ModelError if the model failed."""
        ...


class PairModel(Protocol):
    """The part of sentence-transformers' interface that is used here."""

    def predict(self, pairs: Sequence[tuple[str, str]]) -> Sequence[float]:
        """Return one score for each pair of question and text."""
        ...


def load_cross_encoder(
    name: str, threads: int = 0, variables: Mapping[str, str] = MappingProxyType({}), *, any_url: bool = True
) -> CrossEncoder:
    """Return a reranker; nothing is loaded or sent before the first question.

    Args:
        name: The setting WORKBENCH_RERANKER or the parameter ``reranker`` of a run: a folder with an ONNX graph, a
            Hugging Face id, or a provider's model such as "cohere:rerank-v3.5".
        threads: Threads of a local model; 0 means one per core.
        variables: Environment variables, for the keys and URLs of providers.
        any_url: Whether passages may be sent to a URL that is not among the variables.

    Raises:
        ConfigurationError: The folder does not exist, the package that the model needs is not installed, or a provider
            needs a key or a URL, or the URL is not allowed.
    """
    from workbench.models.model_names import RERANKER_OPTIONS, parse_model_name
    from workbench.models.onnx_folder import find_graph

    folder = Path(name).expanduser()
    if name.partition(":")[0] in RERANK_FAMILIES and (parsed := parse_model_name(name, RERANKER_OPTIONS)) is not None:
        from workbench.models.endpoints import EndpointReranker

        return EndpointReranker(parsed, variables, any_url=any_url)
    graph = find_graph(folder) if folder.is_dir() else None
    if graph is not None and (folder / "tokenizer.json").is_file():
        return OnnxCrossEncoder(name, graph, folder / "tokenizer.json", threads)
    if not folder.is_dir() and (folder.is_absolute() or name.startswith((".", "~"))):
        raise ConfigurationError(f"Folder not found: {name}. Correct WORKBENCH_RERANKER.")
    try:
        package = importlib.import_module("sentence_transformers")
    except ImportError as error:
        raise ConfigurationError(
            f"The reranker {name!r} needs a package that is not installed; run: pip install "
            "'rag-workbench[huggingface]', or set WORKBENCH_RERANKER to a folder with model.onnx and tokenizer.json."
        ) from error
    return FrameworkCrossEncoder(name, lambda: package.CrossEncoder(name))


class OnnxCrossEncoder:
    """A sequence classifier with one output, on ONNX Runtime."""

    def __init__(self, name: str, graph: Path, tokenizer: Path, threads: int = 0) -> None:
        self.name = name
        self._graph, self._tokenizer_file, self._threads = graph, tokenizer, threads
        self._lock = Lock()
        self._loaded: tuple[Any, Any] | None = None

    def scores(self, query: str, texts: Sequence[str]) -> list[float]:
        """Return the model's output for each text."""
        try:
            session, tokenizer = self._open()
            wanted = {item.name for item in session.get_inputs()}
            scores: list[float] = []
            for start in range(0, len(texts), BATCH_SIZE):
                pairs = [(query, text) for text in texts[start : start + BATCH_SIZE]]
                encodings = tokenizer.encode_batch(pairs)
                feeds = {
                    "input_ids": np.array([e.ids for e in encodings], dtype=np.int64),
                    "attention_mask": np.array([e.attention_mask for e in encodings], dtype=np.int64),
                    "token_type_ids": np.array([e.type_ids for e in encodings], dtype=np.int64),
                }
                (logits, *_) = session.run(None, {key: value for key, value in feeds.items() if key in wanted})
                scores += np.asarray(logits, dtype=np.float64).reshape(len(pairs), -1)[:, -1].tolist()
        except Exception as error:  # the libraries' errors have no common class
            raise ModelError(f"The reranker {self.name!r} failed ({error}); check WORKBENCH_RERANKER.") from error
        return check_scores(self.name, scores, len(texts))

    def _open(self) -> tuple[Any, Any]:
        with self._lock:
            if self._loaded is None:
                from tokenizers import Tokenizer

                from workbench.models.bert.session import open_session

                tokenizer = Tokenizer.from_file(str(self._tokenizer_file))
                tokenizer.enable_truncation(MAX_TOKENS)
                tokenizer.enable_padding()
                self._loaded = open_session(self._graph, self._threads), tokenizer
            return self._loaded


class FrameworkCrossEncoder:
    """A model of sentence-transformers, loaded at first use."""

    def __init__(self, name: str, create: Callable[[], PairModel]) -> None:
        """Set ``create``, which loads the model."""
        self.name = name
        self._create = create
        self._model: PairModel | None = None
        self._lock = Lock()

    def scores(self, query: str, texts: Sequence[str]) -> list[float]:
        """Return the model's output for each text."""
        try:
            with self._lock:
                model = self._model = self._model or self._create()
            scores = [float(score) for score in model.predict([(query, text) for text in texts])]
        except Exception as error:  # the package and its models raise errors of their own
            raise ModelError(f"The reranker {self.name!r} failed ({error}); check WORKBENCH_RERANKER.") from error
        return check_scores(self.name, scores, len(texts))

"""An embedding model in a folder: an ONNX graph and its tokenizer, as written by sentence-transformers or fastembed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workbench.errors import ConfigurationError, ModelError
from workbench.models.encoder import EncodedQuery, EncodedTexts, FloatArray, OnBatch, PlainEncoder, normalise_rows
from workbench.models.model_names import BATCH, MAX_TOKENS, ModelName
from workbench.types import Span

GRAPHS = ("model.onnx", "onnx/model.onnx", "model_optimized.onnx")
POOLING = "1_Pooling/config.json"  # of sentence-transformers: how token vectors become one


def find_graph(folder: Path) -> Path | None:
    """Return the graph in a folder: one of the usual names, else its only ONNX file; None if there is none."""
    usual = next((folder / name for name in GRAPHS if (folder / name).is_file()), None)
    found = sorted(folder.glob("*.onnx"))
    return usual or (found[0] if len(found) == 1 else None)


class OnnxEncoder(PlainEncoder):
    """A model on ONNX Runtime; nothing is loaded before the first text is encoded. Thread-safe."""

    def __init__(self, model: ModelName, threads: int = 0) -> None:
        """Set the folder. Raises ConfigurationError if it has no graph or no tokenizer.json."""
        self._folder = Path(model.model).expanduser()
        graph = find_graph(self._folder)
        if graph is None or not (self._folder / "tokenizer.json").is_file():
            raise ConfigurationError(
                f"The embedding model '{model.text}' needs a folder with model.onnx and tokenizer.json."
            )
        self.name, self._graph, self._threads = model.text, graph, threads
        self.max_tokens = int(model.read_number(MAX_TOKENS))
        self.batch_size = int(model.read_number(BATCH)) or 16
        self._prefixes = model.prefixes
        self._lock = Lock()

    def encode(self, texts: Sequence[str], *, on_batch: OnBatch | None = None) -> EncodedTexts:
        """Encode passages, batching those of about the same length."""
        order = sorted(range(len(texts)), key=lambda place: len(texts[place]))
        encoded = super().encode([texts[place] for place in order], on_batch=on_batch)
        return EncodedTexts(encoded.vectors[np.argsort(order)])

    def encode_batch(self, texts: Sequence[str]) -> FloatArray:
        return self._vectors([self._prefixes[1] + text for text in texts])

    def encode_query(self, text: str) -> EncodedQuery:
        return EncodedQuery(self._vectors([self._prefixes[0] + text])[0])

    def token_spans(self, text: str) -> list[Span]:
        """Return the (start, end) characters of every token of the model."""
        _, tokenizer = self._runtime
        return [span for span in tokenizer.encode(text, add_special_tokens=False).offsets if span[0] < span[1]]

    def _vectors(self, texts: list[str]) -> FloatArray:
        """Return vectors of length 1, of shape (texts, dimensions)."""
        try:
            with self._lock:
                session, tokenizer = self._runtime
            encodings = [encoding.ids[: self.max_tokens] for encoding in tokenizer.encode_batch(texts)]
            width = max(map(len, encodings))
            ids = np.array([row + [0] * (width - len(row)) for row in encodings], dtype=np.int64)
            mask = np.array([[1] * len(row) + [0] * (width - len(row)) for row in encodings], dtype=np.int64)
            feeds = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
            wanted = {item.name for item in session.get_inputs()}
            (output, *_) = session.run(None, {key: value for key, value in feeds.items() if key in wanted})
        except Exception as error:  # the libraries' errors have no common class
            raise ModelError(f"The embedding model '{self.name}' failed ({error}); check its folder.") from error
        return normalise_rows(self._pool(np.asarray(output, dtype=np.float32), mask))

    def _pool(self, output: FloatArray, mask: NDArray[np.int64]) -> FloatArray:
        """Return one vector for each text: the graph's own, or the pooled vectors of its tokens."""
        if output.ndim == 2:
            return output
        if self._pool_config.get("pooling_mode_cls_token"):
            return output[:, 0]
        if self._pool_config.get("pooling_mode_lasttoken"):
            return output[np.arange(len(output)), mask.sum(axis=1) - 1]
        weights = mask[:, :, None].astype(np.float32)
        return (output * weights).sum(axis=1) / weights.sum(axis=1)

    @cached_property
    def _pool_config(self) -> dict[str, Any]:
        file = self._folder / POOLING
        return json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}

    @cached_property
    def _runtime(self) -> tuple[Any, Any]:
        from tokenizers import Tokenizer

        from workbench.models.bert.session import open_session

        tokenizer = Tokenizer.from_file(str(self._folder / "tokenizer.json"))
        tokenizer.no_padding()
        tokenizer.no_truncation()
        return open_session(self._graph, self._threads), tokenizer

"""all-MiniLM-L6-v2 on ONNX Runtime: passage vectors, and one-bit token vectors for late interaction."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

import numpy as np

from workbench.errors import ModelError
from workbench.models.encoder import Encoded, EncodedQuery, FloatArray, OnBatch, Span
from workbench.models.export import DIMENSIONS, build_graph_file, checked_bytes, ensure_graph, packaged_file
from workbench.models.interruptible import run_interruptibly
from workbench.models.token_axes import load_token_axes

if TYPE_CHECKING:
    from onnxruntime import InferenceSession
    from tokenizers import Tokenizer

TOKENIZER_SHA256 = "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"  # equals the published file's
CLS, SEP = 101, 102  # ids of the tokens before and after every text
MODEL_TOKENS = 256  # the length the model was trained and published for
BATCH_TOKENS = 2048  # measured: 200 to 6600 are within a tenth of each other, and large ones the faster
LONE_SURROGATE = re.compile("[\ud800-\udfff]")  # half a character: not text, and refused by the tokenizer


@dataclass(frozen=True, slots=True)
class Batch:
    """Texts that go through the model together: their places in the input, their vectors, their tokens' vectors."""

    places: Sequence[int]
    vectors: FloatArray
    token_vectors: list[FloatArray]  # a text's (tokens, 384), without the special ones


class MiniLMEncoder:
    """The built-in model; weights and tokenizer are read, and the graph is built, when the first text is encoded."""

    name = "minilm"
    dimensions = DIMENSIONS
    max_tokens = MODEL_TOKENS - 2
    has_token_vectors = True

    def __init__(self, models_dir: Path, threads: int = 0) -> None:
        """``models_dir`` keeps the built graph; ``threads`` 0 means one per core."""
        self._models_dir = models_dir
        self._threads = threads
        self._lock = Lock()

    def encode(self, texts: Sequence[str], *, on_batch: OnBatch | None = None) -> Encoded:
        """Encode passages, those of like length together; results are in the order of ``texts``."""
        vectors = np.zeros((len(texts), DIMENSIONS), dtype=np.float32)
        bits = [b""] * len(texts)
        axes = load_token_axes()
        for batch in self.batches(texts, on_batch and (lambda: on_batch(0))):
            vectors[batch.places] = batch.vectors
            rows = axes.bits(np.concatenate(batch.token_vectors))  # at once: text by text takes ten times as long
            ends = np.cumsum([len(tokens) for tokens in batch.token_vectors])
            for place, part in zip(batch.places, np.split(rows, ends[:-1]), strict=True):
                bits[place] = part.tobytes()
            if on_batch is not None:
                on_batch(len(batch.places))
        return Encoded(vectors, bits)

    def encode_query(self, text: str) -> EncodedQuery:
        """Encode a query; its tokens keep float vectors on the axes whose bits the passages keep."""
        (batch,) = self.batches([text])
        spans = tuple(self.token_spans(text)[: self.max_tokens])
        return EncodedQuery(batch.vectors[0], load_token_axes().directions(batch.token_vectors[0]), spans)

    def token_spans(self, text: str) -> list[Span]:
        """Return the (start, end) characters of every token of the text, however long it is."""
        return self._tokenizer.encode(_whole_characters(text), add_special_tokens=False).offsets

    def batches(self, texts: Sequence[str], ask: Callable[[], None] | None = None) -> Iterator[Batch]:
        """Run the texts through the model, longest first: what needs most memory fails early, if at all.

        ``ask`` is called again and again while a batch takes long, and may raise to stop.
        """
        clean = [_whole_characters(text) for text in texts]
        encodings = self._tokenizer.encode_batch(clean, add_special_tokens=False) if texts else []
        ids = [[CLS, *encoding.ids[: self.max_tokens], SEP] for encoding in encodings]
        order = sorted(range(len(ids)), key=lambda place: -len(ids[place]))
        start = 0
        while start < len(order):
            longest = len(ids[order[start]])
            places = order[start : start + max(1, BATCH_TOKENS // longest)]
            start += len(places)
            vectors, hidden = self._run([ids[place] for place in places], longest, ask)
            tokens = [hidden[row, 1 : len(ids[place]) - 1] for row, place in enumerate(places)]
            yield Batch(places, vectors, tokens)

    def _run(
        self, ids: Sequence[Sequence[int]], longest: int, ask: Callable[[], None] | None
    ) -> tuple[FloatArray, FloatArray]:
        padded = np.zeros((len(ids), longest), dtype=np.int32)
        mask = np.zeros_like(padded)
        for row, tokens in enumerate(ids):
            padded[row, : len(tokens)] = tokens
            mask[row, : len(tokens)] = 1
        inputs = {"input_ids": padded, "attention_mask": mask}
        session = self._session
        vectors, hidden = session.run(None, inputs) if ask is None else run_interruptibly(session, inputs, ask)
        return vectors, hidden  # pyright: ignore[reportReturnType] - both outputs are dense float arrays

    @cached_property
    def _tokenizer(self) -> Tokenizer:
        from tokenizers import Tokenizer

        tokenizer = Tokenizer.from_buffer(checked_bytes(packaged_file("tokenizer.json"), TOKENIZER_SHA256))
        tokenizer.no_truncation()
        tokenizer.no_padding()
        return tokenizer

    @property
    def _session(self) -> InferenceSession:
        with self._lock:
            return self._created_session

    @cached_property
    def _created_session(self) -> InferenceSession:
        path = ensure_graph(self._models_dir)
        try:
            return _open_session(path, self._threads)
        except ModelError:  # a file that a full disk or a crash damaged: the weights are at hand, so build it anew
            build_graph_file(path, packaged_file("model.safetensors"))
            return _open_session(path, self._threads)


def _open_session(path: Path, threads: int) -> InferenceSession:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")  # leave the cores to the database between
    options.log_severity_level = 3  # errors only: it warns of missing graphics cards otherwise
    try:
        return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # its errors have no class in common
        raise ModelError(f"ONNX Runtime cannot open {path} ({error}); remove the file and try again.") from error


def _whole_characters(text: str) -> str:
    return LONE_SURROGATE.sub("\ufffd", text)

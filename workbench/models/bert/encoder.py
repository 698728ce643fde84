"""A BERT model on ONNX Runtime: passage vectors, and one-bit token vectors for late interaction."""

from __future__ import annotations

import os
import re
import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import accumulate, groupby, islice
from pathlib import Path
from threading import Lock, RLock
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import NDArray

from workbench.models.bert.graph import OnnxFile, Precision
from workbench.models.bert.session import PublishedWeights, choose_precision
from workbench.models.encoder import (
    MAX_SAMPLE_CHARS,
    EncodedQuery,
    EncodedTexts,
    FloatArray,
    OnBatch,
    normalise_rows,
    readable_share,
)
from workbench.types import Span

if TYPE_CHECKING:
    from onnxruntime import InferenceSession
    from onnxruntime.capi.onnxruntime_pybind11_state import RunOptions
    from tokenizers import Encoding, Tokenizer

# Tokenizing texts of any size in pieces, so that no call blocks the interpreter for more than a few milliseconds.
#
# The tokenizer blocks all other threads of the process while it handles a text, which takes 38 s for 7 MB. Pieces end
# before a space, so the tokens are the same as for the whole text. A piece without any space (unspaced scripts, a line
# of base64) ends anywhere, which may split one token in two.

MAX_PIECE_CHARS = 16_000  # characters: about ten milliseconds
LONE_SURROGATE = re.compile("[\ud800-\udfff]")  # not text, and rejected by the tokenizer
SPACE = re.compile(r"\s")


@dataclass(frozen=True, slots=True)
class Special:
    """Ids of special tokens: before and after every text, and for unknown pieces."""

    begin: int
    end: int
    unknown: int


class Tokens:
    """A model's tokenizer, read at first use. Thread-safe."""

    def __init__(self, read: Callable[[], Tokenizer], special: Special, *, letters_are_words: bool) -> None:
        """Configure the tokenizer; ``letters_are_words`` is as in ``readable_share``."""
        self.special = special
        self._read = read
        self._letters_are_words = letters_are_words
        self._lock = Lock()

    def ids(self, texts: Sequence[str], most: int, ask: Callable[[], None] | None = None) -> list[list[int]]:
        """Return the first ``most`` tokens of each text, without special tokens.

        ``ask`` is called often and may raise to cancel.
        """
        rows: list[list[int]] = []
        for group in _group_texts(texts):
            if ask is not None:
                ask()
            first = [next(_split_pieces(replace_surrogates(text))) for text in group]
            for text, piece, encoding in zip(group, first, self._encode(first), strict=True):
                enough = len(piece) == len(text) or len(encoding.ids) >= most
                rows.append(encoding.ids[:most] if enough else self._first(text, most))
        return rows

    def spans(self, text: str, most: int | None = None) -> list[Span]:
        """Return the (start, end) characters of the first ``most`` tokens of the text, or of all."""
        return list(islice(self._spans(text), most))

    def reads(self, text: str) -> float:
        """Return the share (0..1) of the text's letters and digits that the model distinguishes."""
        part = replace_surrogates(text[:MAX_SAMPLE_CHARS])
        (encoding,) = self._encode([part])
        in_vocabulary = (number != self.special.unknown for number in encoding.ids)
        return readable_share(
            part, zip(encoding.offsets, in_vocabulary, strict=True), letters_are_words=self._letters_are_words
        )

    def _spans(self, text: str) -> Iterator[Span]:
        start = 0
        for piece in _split_pieces(replace_surrogates(text)):
            (encoding,) = self._encode([piece])
            for first, last in encoding.offsets:
                yield start + first, start + last
            start += len(piece)

    def _first(self, text: str, most: int) -> list[int]:
        ids: list[int] = []
        for piece in _split_pieces(replace_surrogates(text)):
            ids += self._encode([piece])[0].ids
            if len(ids) >= most:
                break
        return ids[:most]

    def _encode(self, texts: Sequence[str]) -> list[Encoding]:
        return self._tokenizer.encode_batch(texts, add_special_tokens=False)

    @property
    def _tokenizer(self) -> Tokenizer:
        with self._lock:
            return self._tokenizer_cache

    @cached_property
    def _tokenizer_cache(self) -> Tokenizer:
        tokenizer = self._read()
        tokenizer.no_truncation()
        tokenizer.no_padding()
        return tokenizer


def replace_surrogates(text: str) -> str:
    """Return the text with every lone surrogate replaced; positions do not change."""
    return LONE_SURROGATE.sub("\ufffd", text)


def _split_pieces(text: str) -> Iterator[str]:
    """Yield the text in pieces of at most PIECE characters, split before a space if possible; "" is one piece."""
    start = 0
    while len(text) - start > MAX_PIECE_CHARS:
        end = start + MAX_PIECE_CHARS
        spaces = [match.start() for match in SPACE.finditer(text, start + MAX_PIECE_CHARS // 2, end)]
        end = spaces[-1] if spaces else end
        yield text[start:end]
        start = end
    yield text[start:]


def _group_texts(texts: Sequence[str]) -> Iterator[list[str]]:
    """Yield groups of neighbouring texts of at most PIECE characters in total, with at least one text each."""
    sizes = accumulate(min(len(text), MAX_PIECE_CHARS) for text in texts)
    group: list[str] = []
    begun = 0
    for text, size in zip(texts, sizes, strict=True):
        if group and size - begun > MAX_PIECE_CHARS:
            yield group
            group, begun = [], size - min(len(text), MAX_PIECE_CHARS)
        group.append(text)
    if group:
        yield group


# The forward pass

CANCEL_CHECK_INTERVAL_S = 0.1  # seconds between calls of a callback that may cancel
BATCH_TOKENS = 2048  # tokens per run, of texts of one length
# Vectors (texts, dimensions) and, for some models, token vectors (texts, tokens, dimensions)
Output = tuple[FloatArray, ...]


@dataclass(frozen=True, slots=True)
class ForwardPass:
    """A session and how to use it best: ``workers`` concurrent runs, with texts ``together`` in a run or one by one.

    In 8 bits each text runs alone with its own scales, so its vector does not depend on other texts.
    """

    session: InferenceSession
    workers: int
    together: bool

    def run(self, ids: Sequence[Sequence[int]], options: RunOptions | None = None) -> Output:
        """Return the model's output for texts of one length."""
        outputs = self.session.run(None, {"input_ids": np.array(ids, dtype=np.int32)}, options)
        return cast("Output", tuple(outputs))

    def batches(
        self, ids: Sequence[Sequence[int]], ask: Callable[[], None] | None = None
    ) -> Iterator[tuple[list[int], Output]]:
        """Yield indexes and outputs, longest texts first: they need the most memory, so any failure comes early.

        ``ask`` is called every 0.1 s and may raise to cancel; runs stop before their next operator.
        """
        import onnxruntime

        options = onnxruntime.RunOptions()
        with ThreadPoolExecutor(self.workers, thread_name_prefix="model") as pool:
            pending: deque[tuple[list[int], Future[Output]]] = deque()
            try:
                for places in self._parts(ids):
                    pending.append((places, pool.submit(self.run, [ids[place] for place in places], options)))
                    if len(pending) > 2 * self.workers:
                        yield _await_result(*pending.popleft(), ask)
                while pending:
                    yield _await_result(*pending.popleft(), ask)
            except BaseException:
                options.terminate = True
                pool.shutdown(wait=False, cancel_futures=True)
                raise

    def _parts(self, ids: Sequence[Sequence[int]]) -> Iterator[list[int]]:
        order = sorted(range(len(ids)), key=lambda place: -len(ids[place]))
        for length, group in groupby(order, key=lambda place: len(ids[place])):
            places = list(group)
            size = max(1, BATCH_TOKENS // length) if self.together else 1
            yield from (places[start : start + size] for start in range(0, len(places), size))


def _await_result(
    places: list[int], future: Future[Output], ask: Callable[[], None] | None
) -> tuple[list[int], Output]:
    while ask is not None and not wait([future], timeout=CANCEL_CHECK_INTERVAL_S).done:
        ask()
    return places, future.result()


def count_usable_cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


class ForwardPasses:
    """The forward passes of a model; graphs are built and opened at first use. Thread-safe.

    Queries are encoded in full precision, passages in 8 bits if that is faster on this machine.
    """

    def __init__(
        self, name: str, published: PublishedWeights, models_dir: Path, threads: int, precision: Precision | None
    ) -> None:
        """Configure the passes; see ``BertEncoder``. The choice of the precision is stored under ``name``."""
        self._name, self._published, self._models_dir = name, published, models_dir
        self._threads: int = threads or count_usable_cores()
        self._precision: Precision | None = precision
        self._lock = RLock()

    @property
    def queries(self) -> ForwardPass:
        with self._lock:
            return self._queries

    @property
    def passages(self) -> ForwardPass:
        with self._lock:
            return self._passages

    @cached_property
    def _queries(self) -> ForwardPass:
        session = self._published.open_session(self._models_dir, "float", self._threads)
        return ForwardPass(session, workers=1, together=True)

    @cached_property
    def _passages(self) -> ForwardPass:
        def open_session(precision: Precision) -> InferenceSession:
            return self._published.open_session(self._models_dir, precision, threads=1)

        chosen = self._precision or choose_precision(self._name, self._models_dir, open_session)
        return self._queries if chosen == "float" else ForwardPass(open_session("int8"), self._threads, together=False)


# Token vectors on 128 principal axes: float directions for a query, one bit per axis for a passage

AXES_FILE = Path(__file__).parent.with_name("token_axes.npz")


@dataclass(frozen=True, slots=True)
class TokenAxes:
    """Mean (dimensions,) and ``axes`` (128, dimensions) of a model's token vectors."""

    mean: FloatArray
    axes: FloatArray

    def project(self, tokens: FloatArray) -> FloatArray:
        """Return the centred coordinates, shape (tokens, 128)."""
        return np.subtract(tokens, self.mean) @ self.axes.T

    def bits(self, tokens: FloatArray) -> NDArray[np.uint8]:
        """Return the signs of the coordinates, shape (tokens, 16); a set bit is a coordinate above the mean."""
        return np.packbits(self.project(tokens) > 0, axis=1)

    def directions(self, tokens: FloatArray) -> FloatArray:
        """Return the coordinates scaled to length 1 for each token."""
        return normalise_rows(self.project(tokens))


@cache
def load_token_axes(path: Path = AXES_FILE) -> TokenAxes:
    with np.load(path) as arrays:
        return TokenAxes(arrays["mean"].astype(np.float32), arrays["axes"].astype(np.float32))


# One-bit token vectors through ONNX Runtime, since numpy's product wakes spinning threads


class BitProjection:
    """Projection onto a model's token axes, in a separate session on the calling thread."""

    def __init__(self, axes: TokenAxes) -> None:
        import onnxruntime

        graph = OnnxFile("token-axes")
        graph.add_constant("axes", axes.axes.T)
        graph.add_constant("middle", axes.axes @ axes.mean)
        graph.add_node("MatMul", ["tokens", "axes"], ["product"])
        graph.add_node("Sub", ["product", "middle"], ["coordinates"])
        graph.add_input("tokens", "float32", ["tokens", axes.axes.shape[1]])
        graph.add_output("coordinates", "float32", ["tokens", len(axes.axes)])
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        self._session = onnxruntime.InferenceSession(graph.to_bytes(), options, providers=["CPUExecutionProvider"])

    def bits(self, tokens: FloatArray) -> bytes:
        """Return 16 bytes for each row of ``tokens`` (tokens, dimensions), as ``TokenAxes.bits`` does."""
        (coordinates,) = self._session.run(None, {"tokens": tokens})
        return np.packbits(cast("FloatArray", coordinates) > 0, axis=1).tobytes()


@cache
def load_projection(path: Path) -> BitProjection:
    """Return the projection onto the axes in a file."""
    return BitProjection(load_token_axes(path))


@dataclass(frozen=True, slots=True)
class BertModel:
    """A published model: its weights, tokenizer and token axes, and the format of its texts."""

    name: str
    dimensions: int
    model_tokens: int  # maximum length, including special tokens
    languages: frozenset[str] | None
    published: PublishedWeights
    tokens: Tokens
    axes_file: Path
    query_prefix: str = ""  # its tokens count in the vector, but not in late interaction
    passage_prefix: str = ""  # the same


@dataclass(frozen=True, slots=True)
class Batch:
    """Texts that went through the model together."""

    places: Sequence[int]  # indexes in the input
    vectors: FloatArray
    token_vectors: list[FloatArray]  # (tokens, dimensions) for each text, without special tokens


class BertEncoder:
    """A built-in model; weights and tokenizer are read, and graphs built, when the first text is encoded.

    Queries are encoded in full precision, passages in 8 bits if that is faster on this machine
    (``workbench.models.bert.session``). Both kinds of vectors may be in one index.
    """

    has_token_vectors = True

    def __init__(self, model: BertModel, models_dir: Path, threads: int = 0, passages: Precision | None = None) -> None:
        """Configure the model.

        Args:
            models_dir: Folder of the graphs.
            threads: Threads of a session; 0 means one per core.
            passages: Precision for passages; by default a trial chooses it.
        """
        self.name = model.name
        self.dimensions = model.dimensions
        self.languages: frozenset[str] | None = model.languages
        self._model = model
        self._passes = ForwardPasses(model.name, model.published, models_dir, threads, passages)

    @property
    def max_tokens(self) -> int:
        """Tokens of a text that are read, without the longer prefix and special tokens."""
        return self._room

    @cached_property
    def _room(self) -> int:
        prefixes = (self._model.query_prefix, self._model.passage_prefix)
        return self._model.model_tokens - 2 - max(len(self._prefix(prefix)) for prefix in prefixes)

    def encode(self, texts: Sequence[str], *, on_batch: OnBatch | None = None) -> EncodedTexts:
        """Encode passages; results are in the order of ``texts``."""
        vectors = np.zeros((len(texts), self.dimensions), dtype=np.float32)
        bits = [b""] * len(texts)
        projection = load_projection(self._model.axes_file)
        for batch in self.batches(texts, on_batch and (lambda: on_batch(0))):
            vectors[batch.places] = batch.vectors
            for place, tokens in zip(batch.places, batch.token_vectors, strict=True):
                bits[place] = projection.bits(tokens)
            if on_batch is not None:
                on_batch(len(batch.places))
        return EncodedTexts(vectors, bits)

    def encode_query(self, text: str) -> EncodedQuery:
        """Encode a query; its tokens keep float coordinates on the axes for which passages keep bits."""
        prefix = self._prefix(self._model.query_prefix)
        (ids,) = self._model.tokens.ids([text], self.max_tokens)
        vectors, hidden = self._passes.queries.run([self._add_markers(prefix, ids)])
        spans = tuple(self._model.tokens.spans(text, self.max_tokens))
        axes = load_token_axes(self._model.axes_file)
        return EncodedQuery(vectors[0], axes.directions(hidden[0, 1 + len(prefix) : -1]), spans)

    def token_spans(self, text: str) -> list[Span]:
        """Return the (start, end) characters of every token of the text, whatever its length."""
        return self._model.tokens.spans(text)

    def reads(self, text: str) -> float:
        """Return the share of letters and digits in pieces that the vocabulary distinguishes."""
        return self._model.tokens.reads(text)

    def batches(self, texts: Sequence[str], ask: Callable[[], None] | None = None) -> Iterator[Batch]:
        """Run passages through the model, longest first; ``ask`` is called often and may raise to cancel."""
        if not texts:
            return
        prefix = self._prefix(self._model.passage_prefix)
        ids = [self._add_markers(prefix, row) for row in self._model.tokens.ids(texts, self.max_tokens, ask)]
        for places, (vectors, hidden) in self._passes.passages.batches(ids, ask):
            yield Batch(places, vectors, [tokens[1 + len(prefix) : -1] for tokens in hidden])

    def _add_markers(self, prefix: Sequence[int], ids: Sequence[int]) -> list[int]:
        special = self._model.tokens.special
        return [special.begin, *prefix, *ids, special.end]

    def _prefix(self, text: str) -> list[int]:
        return self._model.tokens.ids([text], self._model.model_tokens)[0] if text else []

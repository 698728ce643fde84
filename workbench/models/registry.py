"""The table of embedding models: a name from the settings becomes an encoder, and every built-in model has one row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from workbench.errors import ConfigurationError, choices
from workbench.models.encoder import Encoder
from workbench.models.model_languages import ENGLISH, XLM_ROBERTA


@dataclass(frozen=True, slots=True)
class EmbeddingModel:
    """A model that comes with the workbench or with one of its extras, and all that the house has to know of it.

    ``near`` and ``far`` are the cosines of passages, ``near_sentence`` that of a sentence, 0..1, that tell evidence
    (``workbench.retrieval.evidence``).
    ``languages`` are ISO 639-1 codes; None: any. ``extra`` names the extra that brings the weights; empty: they come
    with the workbench. Screens do not offer a model ``for_tests``.
    """

    name: str
    title: str
    load: Callable[[Path, int], Encoder]
    near: float
    far: float
    near_sentence: float
    languages: frozenset[str] | None
    has_token_vectors: bool
    extra: str = ""
    for_tests: bool = False


def _minilm(models_dir: Path, threads: int) -> Encoder:
    from workbench.models.minilm import MiniLMEncoder

    return MiniLMEncoder(models_dir, threads=threads)


def _multilingual(models_dir: Path, threads: int) -> Encoder:
    from workbench.models.multilingual import MultilingualEncoder

    return MultilingualEncoder(models_dir, threads=threads)


def _hash(models_dir: Path, threads: int) -> Encoder:
    from workbench.models.hashing import HashEncoder

    return HashEncoder()


# Cosines of minilm, measured on 60 questions each: of questions asked to their own corpus (anthropic_docs, xquad_en)
# 100 % and 98 % were answered, of questions from another corpus 0 to 5 %. The best cosines' 5th percentile was .41 for
# the first kind, the 95th percentile .29 to .39 for the second.
# Of multilingual, on XQuAD in English, German, Chinese and Arabic (297 questions each, anthropic_docs beside them): own
# corpus 5th percentile .82 to .87, another corpus 95th percentile .79 to .83, median .76 to .81. A question in another
# language than the corpus lies between (median .79 to .82), so it is often told that nothing close was found.
# Of the sentences of the first six passages (297 of xquad_en's questions; the other corpus is the sample), the best
# cosine with a question from another corpus is below .472 and .846 in 99.5 of a hundred; the median of the corpus's own
# is .67 and .88.
# "hash" only counts common words, so its numbers are set by hand.
MODELS = (
    EmbeddingModel(
        name="minilm",
        title="all-MiniLM-L6-v2, English",
        load=_minilm,
        near=0.40,
        far=0.20,
        near_sentence=0.48,
        languages=ENGLISH,
        has_token_vectors=True,
    ),
    EmbeddingModel(
        name="multilingual",
        title="multilingual-e5-small, a hundred languages",
        load=_multilingual,
        near=0.83,
        far=0.76,
        near_sentence=0.85,
        languages=XLM_ROBERTA,
        has_token_vectors=True,
        extra="multilingual",
    ),
    EmbeddingModel(
        name="hash",
        title="hashed words, for tests",
        load=_hash,
        for_tests=True,
        near=0.30,
        far=0.10,
        near_sentence=0.60,
        languages=None,
        has_token_vectors=True,
    ),
)
BUILT_IN: dict[str, EmbeddingModel] = {model.name: model for model in MODELS}
FORMS = ("openai:MODEL", "ollama:MODEL", "OWNER/MODEL")  # names that load a model through an optional package


def load_encoder(name: str, models_dir: Path, threads: int = 0) -> Encoder:
    """Return the model that ``name`` stands for; ``threads`` 0 means one per core.

    Nothing is read or built before the first text is encoded.

    Raises:
        ConfigurationError: the name is not valid, or the package it needs is not installed.
    """
    if name in BUILT_IN:
        return BUILT_IN[name].load(Path(models_dir), threads)
    from workbench.models.framework_encoder import FRAMEWORK_MODELS, load_framework_encoder

    family, separator, model = name.partition(":")
    if separator and model and family in FRAMEWORK_MODELS:
        return load_framework_encoder(name, family, model)
    if not separator and name.count("/") == 1 and all(name.split("/")):
        return load_framework_encoder(name, "huggingface", name)
    valid = choices([*BUILT_IN, *FORMS])
    raise ConfigurationError(f"There is no embedding model '{name}'; set WORKBENCH_EMBEDDING_MODEL to one of {valid}.")

"""The table of embedding models: a name from the settings becomes an encoder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from workbench.errors import ConfigurationError, choices
from workbench.models.encoder import Encoder


def _minilm(models_dir: Path, threads: int) -> Encoder:
    from workbench.models.minilm import MiniLMEncoder

    return MiniLMEncoder(models_dir, threads=threads)


def _hash(models_dir: Path, threads: int) -> Encoder:
    from workbench.models.hashing import HashEncoder

    return HashEncoder()


BUILT_IN: dict[str, Callable[[Path, int], Encoder]] = {"minilm": _minilm, "hash": _hash}
FORMS = ("openai:MODEL", "ollama:MODEL", "OWNER/MODEL")  # names that load a model through an optional package


def load_encoder(name: str, models_dir: Path, threads: int = 0) -> Encoder:
    """Return the model that ``name`` stands for; ``threads`` 0 means one per core.

    Nothing is read or built before the first text is encoded.

    Raises:
        ConfigurationError: the name is not valid, or the package it needs is not installed.
    """
    if name in BUILT_IN:
        return BUILT_IN[name](Path(models_dir), threads)
    from workbench.models.framework import FRAMEWORK_MODELS, load_framework_encoder

    family, separator, model = name.partition(":")
    if separator and model and family in FRAMEWORK_MODELS:
        return load_framework_encoder(name, family, model)
    if not separator and name.count("/") == 1 and all(name.split("/")):
        return load_framework_encoder(name, "huggingface", name)
    valid = choices([*BUILT_IN, *FORMS])
    raise ConfigurationError(f"There is no embedding model '{name}'; set WORKBENCH_EMBEDDING_MODEL to one of {valid}.")

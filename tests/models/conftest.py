"""The real model, opened once for all tests in this folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.models.numpy_bert import NumpyBert
from workbench.models.minilm import MiniLMEncoder


@pytest.fixture(scope="session")
def models_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for built graphs."""
    return tmp_path_factory.mktemp("models")


@pytest.fixture(scope="session")
def minilm(models_dir: Path) -> MiniLMEncoder:
    """The built-in model in full precision, also for passages."""
    return MiniLMEncoder(models_dir, passages="float")


@pytest.fixture(scope="session")
def minilm_int8(models_dir: Path) -> MiniLMEncoder:
    """The built-in model with passages in 8 bits, on two threads."""
    return MiniLMEncoder(models_dir, threads=2, passages="int8")


@pytest.fixture(scope="session")
def numpy_bert() -> NumpyBert:
    """The same weights without any model library."""
    return NumpyBert()

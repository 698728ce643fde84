"""The weights of a BERT encoder as values, whatever file they come from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from workbench.models.encoder import FloatArray

BLOCK = 32  # weights that share one scale in a table of four-bit numbers


@dataclass(frozen=True, slots=True)
class Dense:
    """A linear layer: ``matrix`` (inputs, outputs) and ``bias`` (outputs,)."""

    matrix: FloatArray
    bias: FloatArray


@dataclass(frozen=True, slots=True)
class Norm:
    """A layer normalisation: ``gain`` and ``bias``, each (dimensions,)."""

    gain: FloatArray
    bias: FloatArray


@dataclass(frozen=True, slots=True)
class Layer:
    """One transformer layer: attention, then the two-layer perceptron, each added to its input and normalised."""

    query: Dense
    key: Dense
    value: Dense
    context: Dense
    context_norm: Norm
    inner: Dense
    outer: Dense
    outer_norm: Norm


@dataclass(frozen=True, slots=True)
class PackedTable:
    """A table of four-bit numbers (rows, columns): (number - 8) times the scale of its block of 32 columns.

    ``numbers`` is (rows, columns / 2), the even column in the low half of each byte; ``scales`` (rows, columns / 32).
    """

    numbers: NDArray[np.uint8]
    scales: FloatArray


@dataclass(frozen=True, slots=True)
class BertWeights:
    """A whole encoder; ``positions`` (tokens, dimensions) hold the vector of the one segment too."""

    words: FloatArray | PackedTable
    positions: FloatArray
    norm: Norm
    layers: tuple[Layer, ...]
    heads: int

    @property
    def dimensions(self) -> int:
        """Length of a token's vector."""
        return int(self.positions.shape[1])

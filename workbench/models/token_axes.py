"""Token vectors projected onto 128 principal axes: float directions for a query, one bit per axis for a passage."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from workbench.models.encoder import FloatArray, normalise_rows

AXES_FILE = Path(__file__).with_name("token_axes.npz")


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

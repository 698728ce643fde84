"""Token vectors projected onto 128 principal axes: float directions for a query, one bit per axis for a passage."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from workbench.models.encoder import TOKEN_AXES, FloatArray, normalise_rows

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


def fit_token_axes(tokens: FloatArray) -> TokenAxes:
    """Fit mean and principal axes to token vectors of shape (tokens, dimensions).

    The axes are the eigenvectors of the covariance with the largest eigenvalues (Pearson 1901), strongest first. The
    largest component of each axis is made positive, so that refitting gives the same bits.

    Measured nDCG@10 by MaxSim alone over passages of 200 tokens (100 questions on documentation; 150 claims on 1500
    abstracts): full floats .744 and .865, bits on these axes .735 and .859. Whitening the query's coordinates, rotating
    the axes or keeping the mean changed both by less than .02, in different directions.
    """
    mean = tokens.mean(axis=0, dtype=np.float64)
    covariance = np.cov(tokens.astype(np.float64), rowvar=False)
    _, vectors = np.linalg.eigh(covariance)
    axes = vectors.T[::-1][:TOKEN_AXES]
    strongest = np.abs(axes).argmax(axis=1)
    axes *= np.sign(axes[np.arange(len(axes)), strongest])[:, None]
    return TokenAxes(mean.astype(np.float32), axes.astype(np.float32))


def save_token_axes(fitted: TokenAxes, path: Path = AXES_FILE) -> None:
    """Write the axes as float16, about 100 kB; this rarely changes a bit."""
    halves: dict[str, NDArray[np.float16]] = {"mean": fitted.mean.astype("f2"), "axes": fitted.axes.astype("f2")}
    np.savez_compressed(path, allow_pickle=False, **halves)


@cache
def load_token_axes(path: Path = AXES_FILE) -> TokenAxes:
    """Return the axes in the package."""
    with np.load(path) as arrays:
        return TokenAxes(arrays["mean"].astype(np.float32), arrays["axes"].astype(np.float32))

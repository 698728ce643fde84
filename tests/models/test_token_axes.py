"""The token axes are principal axes, and the stored ones are those that were fitted."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.fit_axes import fit_axes, fit_token_axes, save_token_axes
from workbench.models.bert.encoder import TokenAxes, load_token_axes
from workbench.models.minilm import MiniLMEncoder


def test_the_first_axes_are_those_along_which_tokens_differ_most() -> None:
    draws = np.random.default_rng(3).normal(size=(4000, 130)).astype(np.float32)
    spread = np.ones(130, dtype=np.float32)
    spread[7], spread[2] = 50, 20
    fitted = fit_token_axes(draws * spread + 5)
    np.testing.assert_allclose(fitted.mean[[0, 1]], 5, atol=0.1)
    assert (np.abs(fitted.axes[0]).argmax(), np.abs(fitted.axes[1]).argmax()) == (7, 2)
    np.testing.assert_allclose(fitted.axes @ fitted.axes.T, np.eye(128), atol=1e-4)


def test_a_bit_is_set_where_the_coordinate_is_above_the_mean() -> None:
    axes = TokenAxes(mean=np.full(128, 0.5, dtype=np.float32), axes=np.eye(128, dtype=np.float32))
    token = np.zeros((1, 128), dtype=np.float32)
    token[0, [0, 7, 127]] = 1
    assert axes.bits(token).tobytes() == bytes([0b10000001, *([0] * 14), 0b00000001])
    np.testing.assert_allclose(axes.directions(token)[0, :2], np.array([0.5, -0.5]) / np.sqrt(128 * 0.25))


def test_the_packaged_axes_are_orthogonal_directions_of_the_model() -> None:
    packaged = load_token_axes()
    assert packaged.axes.shape == (128, 384)
    np.testing.assert_allclose(packaged.axes @ packaged.axes.T, np.eye(128), atol=5e-3)


@pytest.mark.slow
def test_fitting_a_folder_again_writes_the_same_bits(tmp_path: Path, minilm: MiniLMEncoder) -> None:
    words = [f"word{number} about topic {number % 17}," for number in range(150)]
    (tmp_path / "article.md").write_text(" ".join(words))
    assert fit_axes(minilm, tmp_path, tmp_path / "one.npz") == fit_axes(minilm, tmp_path, tmp_path / "two.npz") > 384
    one, two = load_token_axes(tmp_path / "one.npz"), load_token_axes(tmp_path / "two.npz")
    tokens = next(iter(minilm.batches(["a few tokens to compare"]))).token_vectors[0]
    np.testing.assert_array_equal(one.bits(tokens), two.bits(tokens))
    assert (one.bits(tokens) != load_token_axes().bits(tokens)).any()


def test_axes_survive_being_stored_as_half_floats(tmp_path: Path) -> None:
    packaged = load_token_axes()
    save_token_axes(packaged, tmp_path / "axes.npz")
    np.testing.assert_array_equal(load_token_axes(tmp_path / "axes.npz").axes, packaged.axes)
    assert (tmp_path / "axes.npz").stat().st_size < 110_000

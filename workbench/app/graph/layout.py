"""The layout of the citation graph: the same picture for the same links, whole in any frame.

ECharts' own force layout begins at random places and knows no frame, so that it cuts dots off at the edges.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

STEPS = 160
GRAVITY = np.array([0.8, 1.2])  # alone it would spread the dots evenly over an ellipse that is wider than high
PULL = 0.8  # the more, the nearer stand documents of one cluster, and the farther clusters from each other
GOLDEN = np.pi * (3 - np.sqrt(5))


@lru_cache(maxsize=16)
def places(count: int, links: tuple[tuple[int, int], ...]) -> tuple[tuple[float, float], ...]:
    """Return a place for each of ``count`` dots; ``links`` are pairs of their numbers.

    Fruchterman and Reingold (1991), begun on a spiral: dots push each other away by 1/d, links pull by d squared, the
    less the more links their dots have, and gravity by d; no step is longer than a length that shrinks to nothing.
    """
    turn = np.arange(count) * GOLDEN
    at = np.sqrt(np.arange(count) + 0.5)[:, None] * np.stack([np.cos(turn), np.sin(turn)], axis=1)
    ends = np.array(links, dtype=int).reshape(-1, 2)
    degree = np.bincount(ends.ravel(), minlength=count)
    weight = PULL / np.minimum(degree[ends[:, 0]], degree[ends[:, 1]])[:, None]
    for step in range(STEPS):
        square = (at**2).sum(axis=1)
        near = 1 / np.maximum(square[:, None] + square[None, :] - 2 * at @ at.T, 0.01)
        push = at * near.sum(axis=1, keepdims=True) - near @ at
        along = at[ends[:, 1]] - at[ends[:, 0]]
        pull = weight * along * np.linalg.norm(along, axis=1, keepdims=True)
        force = push - GRAVITY * at
        np.add.at(force, ends[:, 0], pull)
        np.add.at(force, ends[:, 1], -pull)
        length = np.maximum(np.linalg.norm(force, axis=1, keepdims=True), 1e-9)
        longest = 0.12 * np.sqrt(count) * (1 - step / STEPS)
        at = at + force / length * np.minimum(length, longest)
    return tuple((round(float(x), 3), round(float(y), 3)) for x, y in at)

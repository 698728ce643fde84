"""Labels next to the points of a chart that overlap neither each other nor a point."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.patheffects import withStroke
from matplotlib.transforms import Bbox

# candidate positions: offset from the point in typographic points, horizontal and vertical alignment
PLACES = (
    ((6, 0), "left", "center"),
    ((-6, 0), "right", "center"),
    ((0, 6), "center", "bottom"),
    ((0, -6), "center", "top"),
    ((5, 5), "left", "bottom"),
    ((5, -5), "left", "top"),
    ((-5, 5), "right", "bottom"),
    ((-5, -5), "right", "top"),
)
DOT = 5  # pixels to keep free around a point


def write_labels(axes: Any, points: Any, names: Sequence[str], bold: Sequence[int] = ()) -> None:
    """Write each name at the first free position in ``PLACES``.

    Args:
        axes: Axes to draw on.
        points: Data coordinates, shape (names, 2).
        names: Labels.
        bold: Indices of labels in bold.
    """
    axes.figure.draw_without_rendering()  # computes the layout, so that texts have a size
    taken = [Bbox.from_bounds(x - DOT, y - DOT, 2 * DOT, 2 * DOT) for x, y in axes.transData.transform(points)]
    for number, (name, point) in enumerate(zip(names, points, strict=True)):
        others = taken[:number] + taken[number + 1 :]
        label = axes.annotate(name, point, (0, 0), textcoords="offset points", fontsize=7.5)
        label.set_path_effects([withStroke(linewidth=2.5, foreground="white")])  # readable over a line
        label.set_weight("bold" if number in bold else "normal")
        for offset, across, upright in PLACES:
            label.set(position=offset, ha=across, va=upright)
            box = label.get_window_extent()
            if not any(box.overlaps(other) for other in others) and axes.figure.bbox.containsx(box.x1):
                break
        taken.append(box)

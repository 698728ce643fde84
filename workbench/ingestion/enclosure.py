"""Staying inside a folder: an agent may search nothing that a link brings in from elsewhere."""

from __future__ import annotations

from pathlib import Path


def lies_inside(path: Path, folder: Path) -> bool:
    """Tell whether a path, with every link followed, lies below ``folder``, which is resolved already."""
    try:
        return path.resolve().is_relative_to(folder)
    except (OSError, RuntimeError):  # a link that leads in a circle
        return False

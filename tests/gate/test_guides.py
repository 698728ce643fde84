"""The guides for contributors are held to the tree."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
DESIGN = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")
GUIDE = (ROOT / "docs" / "contributing.md").read_text(encoding="utf-8")


def test_the_picture_of_the_rooms_shows_every_room_of_the_layers() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    [layers] = [
        row["layers"] for row in settings["tool"]["importlinter"]["contracts"] if row.get("containers") == ["workbench"]
    ]
    rooms = {room for layer in layers for room in re.findall(r"\w+", layer)}
    picture = DESIGN.split("## Rooms")[1].split("```")[1]
    shown = set(re.findall(r"\w+", picture))
    assert rooms - shown == set(), "draw them into docs/design.md"


def test_every_file_that_the_guides_name_is_there() -> None:
    named = re.findall(r"`((?:workbench|mcp_app|evals|tests|docs)/[\w./]+)`", GUIDE + DESIGN)
    assert len(named) > 15
    missing = [name for name in named if "NAME" not in name and not (ROOT / name).exists()]
    assert missing == []


def test_contributing_at_the_top_points_to_the_guide() -> None:
    assert "docs/contributing.md" in (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")

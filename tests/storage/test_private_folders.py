"""As root, private folders that the embedded server would have to open are rejected, and no mode changes."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from workbench.errors import ConfigurationError
from workbench.storage import postgres


def modes(folder: Path) -> dict[Path, int]:
    """Return the permissions of a folder and of all its parents."""
    return {place: stat.S_IMODE(place.stat().st_mode) for place in (folder, *folder.parents)}


def test_a_private_parent_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    private = tmp_path / "private"
    private.mkdir(mode=0o700)
    before = modes(private)
    refuse = postgres.start_embedded_server if os.geteuid() == 0 else postgres._reject_private_parents
    with pytest.raises(ConfigurationError, match="is closed to other users"):
        refuse(private / "home" / "postgres")
    assert modes(private) == before
    assert list(private.iterdir()) == []


def test_an_open_folder_is_accepted(test_home: Path) -> None:
    before = modes(test_home)
    postgres._reject_private_parents(test_home / "another" / "postgres")
    assert modes(test_home) == before

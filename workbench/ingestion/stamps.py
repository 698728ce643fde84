"""File stamps, which reveal changes without reading files, and links that lead out of a folder."""

from __future__ import annotations

import os
from pathlib import Path


def is_inside(path: Path, folder: Path) -> bool:
    """Return whether a path, after following every link, is below ``folder``, which must already be resolved."""
    try:
        return path.resolve().is_relative_to(folder)
    except (OSError, RuntimeError):  # a circular link
        return False


Stamp = tuple[int, int, int, int]  # inode, size, mtime and ctime
Stamps = dict[str, Stamp]  # by path below the folder


def stamp_files(folder: Path) -> Stamps:
    """Return the stamp of every file below a resolved folder, without hidden entries and links that lead out of it."""
    stamps: Stamps = {}
    waiting = [(str(folder), "")]
    while waiting:
        place, prefix = waiting.pop()
        try:
            entries = os.scandir(place)
        except OSError:
            continue
        with entries:
            for entry in entries:
                name = entry.name
                if name.startswith("."):
                    continue
                try:
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append((entry.path, f"{prefix}{name}/"))
                        continue
                    if entry.is_symlink() and not is_inside(Path(entry.path), folder):
                        continue
                    status = entry.stat()
                except OSError:  # deleted after it was listed
                    continue
                stamps[prefix + name] = (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
    return stamps

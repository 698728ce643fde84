"""The state of a folder's files as the file system tells it, which shows what has changed without reading anything."""

from __future__ import annotations

import os
from pathlib import Path

from workbench.ingestion.enclosure import lies_inside

Stamp = tuple[int, int, int, int]  # device's file number, size, time of change of content and of entry
Stamps = dict[str, Stamp]  # by path below the folder


def stamps_of(folder: Path) -> Stamps:
    """Return what the file system says of every file below a resolved folder.

    Hidden files and folders do not count, nor do links that lead out of it.
    """
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
                    if entry.is_symlink() and not lies_inside(Path(entry.path), folder):
                        continue
                    status = entry.stat()
                except OSError:  # gone between the listing and now
                    continue
                stamps[prefix + name] = (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
    return stamps

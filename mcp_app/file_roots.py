"""Files that tools may read: those inside the allowed folders, after resolving links and dots."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from mcp_app.arguments import Refused


class FileRoots:
    """The allowed folders, separated by ':' (';' on Windows); relative paths are looked up in each, in order.

    By default the working directory, unless that is the root of the file system, where some clients start servers.
    """

    def __init__(self, roots: str = "") -> None:
        folders = [Path(part).expanduser() for part in roots.split(os.pathsep) if part.strip()]
        default = [] if Path.cwd() == Path(Path.cwd().anchor) else [Path.cwd()]
        self.roots = tuple(root.resolve() for root in folders or default)

    def file(self, path_text: str) -> Path:
        """Return a file inside the allowed folders.

        Raises:
            Refused: The file does not exist, is hidden, or is outside the allowed folders.
        """
        path = self._resolve(path_text, "file_path")
        if path.is_dir():
            raise Refused(f"Invalid file_path: {path_text} is a folder", "Give the path of one file")
        if not path.is_file():
            raise Refused(f"File not found: {path_text}", f"The allowed folders are {self._list_roots()}")
        return path

    def folder(self, path_text: str, argument: str) -> Path:
        """Return a folder inside the allowed folders.

        Raises:
            Refused: The folder does not exist, is hidden, or is outside the allowed folders.
        """
        path = self._resolve(path_text, argument)
        if not path.is_dir():
            raise Refused(f"Path not found: {path_text}", f"The allowed folders are {self._list_roots()}")
        return path

    def _resolve(self, path_text: str, argument: str) -> Path:
        if "\x00" in path_text or "://" in path_text or path_text.lower().startswith("file:"):
            raise Refused(f"Invalid {argument}: {path_text!r} is not a path", "Give a plain path, not a URL")
        states: set[str] = set()  # of the path in each root that contains it
        for root in self.roots:
            with suppress(OSError, RuntimeError, ValueError):  # the name is too long, or links form a cycle
                path = (root / path_text).resolve()  # resolves links, so that the file checked is the file read
                if path.is_relative_to(root):
                    hidden = any(part.startswith(".") for part in path.relative_to(root).parts)
                    if path.exists() and not hidden:
                        return path
                    states.add("hidden" if path.exists() else "outside" if hidden else "missing")
        if "hidden" in states:  # such as .env and .git, which may hold secrets
            raise Refused(
                f"Not allowed: {path_text} is hidden (a name starts with a dot)", "Use a file that is not hidden"
            )
        if "missing" in states:
            raise Refused(f"File not found: {path_text}", f"The allowed folders are {self._list_roots()}")
        raise Refused(
            f"Not allowed: {path_text} is outside the allowed folders",
            f"Use a file in {self._list_roots()}, or add its folder to WORKBENCH_FILE_ROOTS",
        )

    def _list_roots(self) -> str:
        return ", ".join(str(root) for root in self.roots) or "none yet (set WORKBENCH_FILE_ROOTS)"

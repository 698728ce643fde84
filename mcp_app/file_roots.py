"""The files that an agent may have read: those inside the allowed folders, wherever links and dots lead."""

from __future__ import annotations

import os
from pathlib import Path

from mcp_app.arguments import Refused


class FileRoots:
    """The allowed folders; relative paths are looked up in each, in order."""

    def __init__(self, roots: str = "") -> None:
        """Take ``roots``, folders separated by ':' (';' on Windows); empty means the working directory.

        Some clients start their servers in the root of the file system; that alone never opens the whole machine.
        """
        folders = [Path(part).expanduser() for part in roots.split(os.pathsep) if part.strip()]
        default = [] if Path.cwd() == Path(Path.cwd().anchor) else [Path.cwd()]
        self.roots = tuple(root.resolve() for root in folders or default)

    def file(self, path_text: str, argument: str = "file_path") -> Path:
        """Return a readable file inside the allowed folders. Raises Refused."""
        path = self._inside(path_text, argument)
        if path.is_dir():
            raise Refused(f"Invalid {argument}: {path_text} is a folder", "Give the path of one file")
        if not path.is_file():
            raise Refused(f"File not found: {path_text}", f"The allowed folders are {self._spoken()}")
        return path

    def folder(self, path_text: str, argument: str) -> Path:
        """Return an existing folder inside the allowed folders. Raises Refused."""
        path = self._inside(path_text, argument)
        if not path.is_dir():
            raise Refused(f"Path not found: {path_text}", f"The allowed folders are {self._spoken()}")
        return path

    def _inside(self, path_text: str, argument: str) -> Path:
        if "\x00" in path_text or "://" in path_text or path_text.lower().startswith("file:"):
            raise Refused(f"Invalid {argument}: {path_text!r} is not a path", "Give a plain path, not a URL")
        hidden = False
        for root in self.roots:
            try:
                path = (root / path_text).resolve()  # follows links, so that the checked file is the one that is read
                if path.is_relative_to(root) and path.exists():
                    if not _hidden(path, root):
                        return path
                    hidden = True
            except (OSError, RuntimeError, ValueError):  # a name that is too long, links in a circle
                continue
        if hidden:
            raise Refused(
                f"Not allowed: {path_text} is hidden (a name begins with a dot)", "Use a file that is not hidden"
            )
        if any(self._could_be(root, path_text) for root in self.roots):
            raise Refused(f"File not found: {path_text}", f"The allowed folders are {self._spoken()}")
        raise Refused(
            f"Not allowed: {path_text} lies outside the allowed folders",
            f"Use a file in {self._spoken()}, or have WORKBENCH_FILE_ROOTS name its folder",
        )

    def _could_be(self, root: Path, path_text: str) -> bool:
        try:
            path = (root / path_text).resolve()
            return path.is_relative_to(root) and not path.exists() and not _hidden(path, root)
        except (OSError, RuntimeError, ValueError):
            return False

    def _spoken(self) -> str:
        return ", ".join(str(root) for root in self.roots) or "none yet (set WORKBENCH_FILE_ROOTS)"


def _hidden(path: Path, root: Path) -> bool:
    """Tell whether a path goes through a hidden file or folder (.env, .git): those hold secrets, not knowledge."""
    return any(part.startswith(".") for part in path.relative_to(root).parts)

"""Build the bundle for desktop clients: ``python mcpb_build.py FOLDER``, or ``make mcpb``.

A bundle (https://github.com/modelcontextprotocol/mcpb, manifest 0.4) is a zip of a manifest and a server. Ours has the
type ``uv``: the client's uv creates an environment with the wheel in the bundle and its dependencies, and starts the
server.
"""

from __future__ import annotations

import json
import sys
import tempfile
import zipfile
from pathlib import Path

from hatchling.build import build_wheel

from mcp_app.tools import DEFAULT_TOOLS
from workbench import __version__

ENTRY_TIME = (2020, 2, 2, 0, 0, 0)  # hatchling's timestamp for files in a wheel
SERVER_SOURCE = '''"""The server of the bundle: the workbench's tools over stdio."""

import sys

from workbench.cli import main

sys.argv = ["workbench", "mcp", "--client", "claude-desktop"]
main()
'''


def make_manifest() -> dict[str, object]:
    """Return the manifest: the server's command, its settings and tools."""
    folder = {
        "type": "directory",
        "title": "Folder with documents",
        "description": "Agents may read files in this folder into the workbench.",
        "required": False,
        "default": "${HOME}/Documents",
    }
    return {
        "manifest_version": "0.4",
        "name": "rag-workbench",
        "display_name": "RAG Workbench",
        "version": __version__,
        "description": "Search and keep one corpus of documents, offline.",
        "author": {"name": "The RAG Workbench authors"},
        "license": "Apache-2.0",
        "keywords": ["search", "documents", "retrieval", "postgres"],
        "server": {
            "type": "uv",
            "entry_point": "server.py",
            "mcp_config": {
                "command": "uv",
                "args": ["run", "--directory", "${__dirname}", "server.py"],
                "env": {"WORKBENCH_FILE_ROOTS": "${user_config.folder}"},
            },
        },
        "user_config": {"folder": folder},
        "tools": [{"name": tool.name, "description": tool.title} for tool in DEFAULT_TOOLS],
        "compatibility": {
            "platforms": ["darwin", "linux", "win32"],
            "runtimes": {"python": ">=3.11,<3.14"},
        },
    }


def make_pyproject(wheel: str) -> str:
    """Return the pyproject.toml of the bundle, which requires the wheel next to it."""
    return (
        f'[project]\nname = "rag-workbench-bundle"\nversion = "{__version__}"\nrequires-python = ">=3.11,<3.14"\n'
        f'dependencies = ["rag-workbench"]\n\n[tool.uv]\npackage = false\n\n'
        f'[tool.uv.sources]\nrag-workbench = {{ path = "{wheel}" }}\n'
    )


def build_bundle(folder: Path) -> Path:
    """Build the bundle into a folder and return it."""
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / f"rag-workbench-{__version__}.mcpb"
    with tempfile.TemporaryDirectory() as scratch, zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as bundle:
        wheel = build_wheel(scratch)
        bundle.writestr(_make_entry("manifest.json"), json.dumps(make_manifest(), indent=2) + "\n")
        bundle.writestr(_make_entry("pyproject.toml"), make_pyproject(wheel))
        bundle.writestr(_make_entry("server.py"), SERVER_SOURCE)
        bundle.writestr(_make_entry(wheel, zipfile.ZIP_STORED), (Path(scratch) / wheel).read_bytes())
    return target


def _make_entry(name: str, compression: int = zipfile.ZIP_DEFLATED) -> zipfile.ZipInfo:
    """Return a file's zip entry with a fixed timestamp, so that builds are reproducible."""
    entry = zipfile.ZipInfo(name, ENTRY_TIME)
    entry.compress_type, entry.external_attr = compression, 0o644 << 16
    return entry


if __name__ == "__main__":
    print(build_bundle(Path(sys.argv[1])))

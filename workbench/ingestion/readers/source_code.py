"""The reader of source code, which is taken as it stands; its suffix tells its language."""

from __future__ import annotations

from pathlib import PurePath

from workbench.ingestion.decoding import decode
from workbench.ingestion.raw import Draft

LANGUAGES = {
    ".bash": "shell", ".c": "c", ".cc": "c++", ".cfg": "ini", ".clj": "clojure", ".cpp": "c++", ".cs": "c#",
    ".css": "css", ".dart": "dart", ".ex": "elixir", ".exs": "elixir", ".go": "go", ".h": "c", ".hpp": "c++",
    ".hs": "haskell", ".ini": "ini", ".java": "java", ".jl": "julia", ".js": "javascript", ".jsx": "javascript",
    ".kt": "kotlin", ".lua": "lua", ".m": "objective-c", ".mjs": "javascript", ".php": "php", ".pl": "perl",
    ".proto": "protobuf", ".ps1": "powershell", ".py": "python", ".pyi": "python", ".r": "r", ".rb": "ruby",
    ".rs": "rust", ".scala": "scala", ".scss": "css", ".sh": "shell", ".sql": "sql", ".svelte": "svelte",
    ".swift": "swift", ".tf": "terraform", ".toml": "toml", ".ts": "typescript", ".tsx": "typescript", ".vue": "vue",
    ".xml": "xml", ".yaml": "yaml", ".yml": "yaml", ".zig": "zig",
}  # fmt: skip


def read_code(data: bytes, name: str) -> Draft:
    """Return the source; the title is the whole file name, suffix included."""
    path = PurePath(name)
    return Draft(decode(data, name), path.name, {"language_name": LANGUAGES[path.suffix.lower()]})

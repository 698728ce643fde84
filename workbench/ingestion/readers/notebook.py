"""The reader of Jupyter notebooks: prose and code cells in order, with outputs that are text."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from workbench.errors import UnreadableDocument
from workbench.ingestion.decoding import decode
from workbench.ingestion.raw import Draft
from workbench.ingestion.readers.markdown import first_heading
from workbench.types.json import JsonValue

OUTPUT_CHARACTERS = 2_000  # of a cell's output; logs and dumps drown the text


def read_notebook(data: bytes, name: str) -> Draft:
    """Return Markdown cells as they are and code cells as fences; pictures, HTML and tracebacks are left out."""
    try:
        notebook = json.loads(decode(data, name))
    except json.JSONDecodeError as error:
        raise UnreadableDocument(
            f"'{name}' is no valid notebook (line {error.lineno}: {error.msg}). Save it anew."
        ) from error
    if not isinstance(notebook, dict):
        raise UnreadableDocument(f"'{name}' is no notebook: it has no cells. Check where it came from.")
    metadata = notebook.get("metadata") or {}
    language = str((metadata.get("language_info") or {}).get("name") or "python")
    parts = [part for cell in _cells(notebook) for part in _cell(cell, language)]
    text = "\n\n".join(parts)
    return Draft(text, str(metadata.get("title") or "") or first_heading(text), {"language_name": language})


def _cells(notebook: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the cells of format 4, or of the older formats with worksheets."""
    sheets = notebook.get("worksheets") or [notebook]
    for sheet in sheets:
        yield from sheet.get("cells") or []


def _cell(cell: dict[str, Any], language: str) -> Iterator[str]:
    source = _joined(cell.get("source", cell.get("input", ""))).strip("\n")
    if cell.get("cell_type") != "code":
        if source.strip():
            yield source
        return
    if source.strip():
        yield _fence(source, language)
    for output in cell.get("outputs") or []:
        text = _output_text(output).strip("\n")
        if text.strip():
            yield _fence(text[:OUTPUT_CHARACTERS], "text")


def _output_text(output: dict[str, Any]) -> str:
    if output.get("output_type") == "stream":
        return _joined(output.get("text", ""))
    data = output.get("data") or {}
    return _joined(data.get("text/markdown") or ("" if "text/html" in data else data.get("text/plain") or ""))


def _joined(source: JsonValue) -> str:
    return "".join(map(str, source)) if isinstance(source, list) else str(source or "")


def _fence(text: str, language: str) -> str:
    mark = "```"
    while mark in text:
        mark += "`"
    return f"{mark}{language}\n{text}\n{mark}"

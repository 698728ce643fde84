"""A Jupyter notebook as a file: an introduction and cells of code, without outputs."""

from __future__ import annotations

import json
from collections.abc import Sequence

from workbench.types import JsonObject


def notebook_json(introduction: str, sources: Sequence[str]) -> str:
    """Return the JSON of a notebook (nbformat 4.5): the introduction as Markdown, then each source as a cell."""
    cells = [_cell("markdown", 0, introduction)]
    cells += [_cell("code", number, source) for number, source in enumerate(sources, start=1)]
    notebook = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(notebook, ensure_ascii=False, indent=1)


def _cell(kind: str, number: int, source: str) -> JsonObject:
    cell: JsonObject = {"id": f"cell{number}", "cell_type": kind, "metadata": {}, "source": source}
    return cell | ({"execution_count": None, "outputs": []} if kind == "code" else {})

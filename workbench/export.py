"""Export of a comparison: Markdown for reading, JSON for programs, a notebook that repeats it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import PurePath

from workbench.display import heading_text
from workbench.errors import InvalidInput, list_choices
from workbench.types import Comparison, JsonObject, ParameterValue, Passage, Scope

# Jupyter notebooks without outputs


def notebook_json(introduction: str, sources: Sequence[str]) -> str:
    """Return the JSON of a notebook (nbformat 4.5): the introduction as Markdown, then a code cell per source text."""
    cells = [_cell("markdown", 0, introduction)]
    cells += [_cell("code", number, source) for number, source in enumerate(sources, start=1)]
    notebook = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(notebook, ensure_ascii=False, indent=1)


def _cell(kind: str, number: int, source: str) -> JsonObject:
    cell: JsonObject = {"id": f"cell{number}", "cell_type": kind, "metadata": {}, "source": source}
    return cell | ({"execution_count": None, "outputs": []} if kind == "code" else {})


MARKDOWN_SPECIAL = re.compile(r"([\\`*_\[\]<>#|])")  # characters with a meaning in Markdown

_ASK = """from workbench import Scope, Workbench

wb = Workbench.open()
comparison = wb.compare(
    {query!r},
    strategies={strategies!r},
    limit={limit!r},
    scope={scope},
    index={index!r},
    parameters={parameters!r},
    history={history!r},
)
comparison"""


@dataclass(frozen=True, slots=True)
class CompareArguments:
    """The arguments of ``Workbench.compare`` except the question, so that a notebook can repeat it."""

    strategies: tuple[str, ...]
    limit: int
    scope: Scope
    index: str | None
    parameters: Mapping[str, Mapping[str, ParameterValue]]
    history: Sequence[str] = ()


def comparison_markdown(comparison: Comparison, asked: CompareArguments) -> str:
    """Return the rankings one after another, each passage quoted under its title."""
    parts = [f"# {_escape_markdown(comparison.query)}", *(f"> {_escape_markdown(note)}" for note in comparison.notes)]
    for name in comparison.strategies:
        result = comparison.strategies[name]
        parts.append(f"## {_escape_markdown(name)}\n\n{len(result)} passages of the index "
                     f"{_escape_markdown(result.index)}, "
                     f"{result.timings_ms.get('total', 0):.0f} ms{_settings(asked, name)}")  # fmt: skip
        parts += [_passage(passage) for passage in result]
    pairs = comparison.agreement.get("rbo", {})
    if pairs:
        rows = [f"| {_escape_markdown(pair.replace('|', ' and '))} | {value:.2f} |" for pair, value in pairs.items()]
        parts.append("\n".join(["## Agreement", "", "| Strategies | Same order (RBO) |", "|---|---|", *rows]))
    return "\n\n".join(parts) + "\n"


def comparison_json(comparison: Comparison, asked: CompareArguments) -> str:
    """Return the comparison as ``workbench compare --json`` prints it."""
    return json.dumps(comparison.to_dict(), ensure_ascii=False, indent=2) + "\n"


def comparison_notebook(comparison: Comparison, asked: CompareArguments) -> str:
    """Return a notebook that repeats the comparison, with its table and plot."""
    parameters = {name: dict(values) for name, values in asked.parameters.items()}
    ask = _ASK.format(
        query=comparison.query,
        strategies=list(asked.strategies),
        limit=asked.limit,
        scope=_scope(asked.scope),
        index=asked.index,
        parameters=parameters,
        history=list(asked.history),
    )
    introduction = f"# {_escape_markdown(comparison.query)}\n\n{len(asked.strategies)} strategies side by side."
    return notebook_json(introduction, [ask, "comparison.to_pandas()", "comparison.plot()", "wb.close()"])


# by file suffix: title, media type, writer
EXPORT_FORMATS: Mapping[str, tuple[str, str, Callable[[Comparison, CompareArguments], str]]] = {
    ".md": ("Markdown", "text/markdown", comparison_markdown),
    ".json": ("JSON", "application/json", comparison_json),
    ".ipynb": ("Notebook", "application/x-ipynb+json", comparison_notebook),
}


def export_comparison(comparison: Comparison, asked: CompareArguments, name: str) -> str:
    """Return the comparison in the format of a file's suffix. Raises InvalidInput if the suffix is unknown."""
    ending = PurePath(name).suffix.lower()
    if ending not in EXPORT_FORMATS:
        raise InvalidInput(
            f"Invalid file name {name!r} for a comparison: expected a suffix in {list_choices(EXPORT_FORMATS)}."
        )
    return EXPORT_FORMATS[ending][2](comparison, asked)


def _passage(passage: Passage) -> str:
    place = " · ".join(part for part in (heading_text(passage), passage.path or passage.url or "") if part)
    quote = "\n".join(f"> {_escape_markdown(line)}" for line in passage.text.splitlines() if line.strip())
    where = f" *{_escape_markdown(place)}*" if place else ""
    return f"{passage.rank}. **{_escape_markdown(passage.document_title)}** ({passage.score:.3f}){where}\n\n{quote}"


def _settings(asked: CompareArguments, name: str) -> str:
    values = asked.parameters.get(name, asked.parameters.get(name.partition("@")[0], {}))
    return "".join(f", {parameter} {_escape_markdown(str(value))}" for parameter, value in values.items())


def _escape_markdown(text: str) -> str:
    """Escape a text for Markdown, so that nothing in it becomes markup, a link or an image."""
    return MARKDOWN_SPECIAL.sub(r"\\\1", " ".join(text.split()))


def _scope(scope: Scope) -> str:
    """Return the scope as Python code, with only the fields that are set."""
    empty = Scope()
    arguments = [
        f"{item.name}={getattr(scope, item.name)!r}"
        for item in fields(scope)
        if getattr(scope, item.name) != getattr(empty, item.name)
    ]
    return f"Scope({', '.join(arguments)})"

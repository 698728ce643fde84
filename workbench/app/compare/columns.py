"""The columns of a comparison: each answers or fails by itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from workbench.app.compare.likeness import Likes, likeness
from workbench.app.compare.same_text import place_key
from workbench.errors import WorkbenchError
from workbench.types import Comparison, ParameterValue, Scope

if TYPE_CHECKING:
    from workbench.workbench import Workbench


@dataclass(frozen=True, slots=True)
class Asking:
    """The scope, index and parameters of a comparison; a promotion makes them the default."""

    scope: Scope
    index: str | None
    parameters: Mapping[str, Mapping[str, ParameterValue]]


@dataclass(frozen=True, slots=True)
class ComparedHits:
    """A comparison with the words of its hits to underline, and the errors of the columns that failed, by name.

    ``headers`` are those of the tables that hits go on with, in Markdown, by the hits' places.
    """

    comparison: Comparison
    likes: Likes
    failures: Mapping[str, WorkbenchError] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)


def compare(workbench: Workbench, question: str, columns: Sequence[str], limit: int, asking: Asking) -> ComparedHits:
    """Ask the columns' strategies; one that fails leaves the others alone.

    Raises:
        WorkbenchError: the scope names what does not exist, or every column fails for the same reason.
    """
    workbench.requests.resolve(asking.scope)
    failures: dict[str, WorkbenchError] = {}
    try:
        comparison = _comparison(workbench, question, columns, limit, asking)
    except WorkbenchError as error:
        failures = _failures(workbench, question, columns, limit, asking)
        answering = [name for name in columns if name not in failures]
        if failures and not answering and len(columns) > 1 and len({str(error) for error in failures.values()}) == 1:
            raise error
        comparison = (
            _comparison(workbench, question, answering, limit, asking) if answering else Comparison(question, {}, {})
        )
    headers = _headers(workbench, comparison)
    return ComparedHits(comparison, likeness(workbench, comparison), failures, headers)


def _headers(workbench: Workbench, comparison: Comparison) -> dict[str, str]:
    """Return the headers of the tables that hits go on with, by the hits' places."""
    headers: dict[str, str] = {}
    for result in comparison.strategies.values():
        hits = [hit for hit in result if place_key(hit) not in headers and hit.metadata.get("table_header")]
        if hits:
            known = workbench.answers.table_headers(hits, result.index)
            headers |= {place_key(hit): known[hit.passage_id] for hit in hits if hit.passage_id in known}
    return headers


def _comparison(workbench: Workbench, question: str, columns: Sequence[str], limit: int, asking: Asking) -> Comparison:
    return workbench.compare(
        question,
        strategies=columns,
        limit=limit,
        scope=asking.scope,
        index=asking.index,
        parameters=asking.parameters,
    )


def _failures(
    workbench: Workbench, question: str, columns: Sequence[str], limit: int, asking: Asking
) -> dict[str, WorkbenchError]:
    """Ask each column alone, which only happens after all together failed; returns the errors by name."""
    errors: dict[str, WorkbenchError] = {}
    for name in columns:
        try:
            _comparison(workbench, question, [name], limit, asking)
        except WorkbenchError as error:
            errors[name] = error
    return errors

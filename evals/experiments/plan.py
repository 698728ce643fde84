"""The plan of an experiment: the cells of its matrix, what it was made on, and what came of each cell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, cast

from evals.experiments.strategy_run import StrategyRun
from evals.gateway import Row
from evals.measures.verdicts import Verdicts
from evals.test_set import OWN_CORPUS, MeasuredScope
from workbench.errors import InvalidInput
from workbench.retrieval.strategies import check_parameters
from workbench.types import JsonValue, ParameterValue, Value

MOST_CELLS = 500


@dataclass(frozen=True, slots=True)
class Cell(Value):
    """One place of the matrix; ``index`` names the index whose cutting and model are used, None the default one."""

    strategy: str
    parameters: Mapping[str, ParameterValue] = field(default_factory=dict)
    index: str | None = None

    @property
    def label(self) -> str:
        """The label that people see: the strategy, the index, the parameters that were set."""
        parts = [self.strategy, *([f"on {self.index}"] if self.index else [])]
        return " ".join([*parts, *(f"{name}={value}" for name, value in self.parameters.items())])


@dataclass(frozen=True, slots=True)
class Experiment(Value):
    """A stored experiment; ``status`` is running, done, stopped or failed."""

    id: str
    title: str
    test_set_id: str
    test_set_title: str
    test_set_version: int
    test_set_hash: str
    corpus_hash: str
    status: str
    message: str
    cells: tuple[Cell, ...]
    metrics: tuple[str, ...]
    limit_queries: int | None
    created_at: datetime | None = None
    scope: MeasuredScope | None = None  # of the user's own documents; None if the test set has a corpus of its own

    @property
    def over(self) -> str:
        """The documents that were measured, as people read it."""
        return OWN_CORPUS if self.scope is None else self.scope.text


@dataclass(frozen=True)
class CellResult:
    """The outcome of a cell: its run measured, or the reason why there is none; ``extra`` holds ragas' verdicts."""

    cell: Cell
    run_id: str
    status: str
    run: StrategyRun | None
    index_name: str
    index_bytes: int = 0
    error: str | None = None
    position: int = 0
    extra: Verdicts = field(default_factory=lambda: Verdicts())


def matrix(
    strategies: Sequence[str],
    indexes: Sequence[str | None] = (None,),
    parameters: Mapping[str, Sequence[Mapping[str, ParameterValue]]] | None = None,
) -> list[Cell]:
    """Return every strategy with each of its parameter sets (default: its defaults) on every index.

    Raises:
        InvalidInput: an unknown strategy or parameter, nothing at all, or more than 500 cells.
    """
    cells = [
        Cell(strategy, values, index)
        for index in indexes
        for strategy in strategies
        for values in (parameters or {}).get(strategy, ({},))
    ]
    for cell in cells:
        check_parameters(cell.strategy, cell.parameters)
    if not 1 <= len(cells) <= MOST_CELLS:
        raise InvalidInput(f"An experiment cannot have {len(cells)} runs; choose from 1 to {MOST_CELLS}.")
    return cells


def cells_from(told: JsonValue) -> list[Cell]:
    """Return the cells of a matrix from their plain form, a list of objects with the fields of ``Cell``."""
    return [Cell(**cell) for cell in cast("list[dict[str, Any]]", told)]


def experiment_from(row: Row) -> Experiment:
    """Return an experiment from its stored row."""
    plan = row["plan"]
    fields = {name: row[name] for name in Experiment.__dataclass_fields__ if name in row}
    return Experiment(
        **fields,
        cells=tuple(cells_from(plan["cells"])),
        metrics=tuple(plan["metrics"]),
        limit_queries=plan["limit_queries"],
        scope=None if row["test_set_source_id"] else MeasuredScope.from_stored(row["test_set_scope"]),
    )

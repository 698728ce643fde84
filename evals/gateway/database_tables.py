"""The tables that evaluation keeps in the workbench's database, and the rules for what is kept there."""

from __future__ import annotations

from workbench.services.checks import check_title
from workbench.storage.database import Row, new_id
from workbench.storage.experiments import ExperimentTables, NewRun, RunTables
from workbench.storage.job_parts import Part, PartsInHand
from workbench.storage.test_sets import TestSetTables
from workbench.types import JsonObject
from workbench.workbench import Workbench

__all__ = [
    "ExperimentTables",
    "NewRun",
    "Row",
    "RunTables",
    "TestSetTables",
    "check_title",
    "complete_part",
    "experiment_tables",
    "new_id",
    "run_tables",
    "tables_of_test_sets",
]


def tables_of_test_sets(wb: Workbench) -> TestSetTables:
    """Return the tables of test sets with their versions."""
    return TestSetTables(wb.corpus.database)


def run_tables(wb: Workbench) -> RunTables:
    """Return the tables of runs and their answers."""
    return RunTables(wb.corpus.database)


def complete_part(wb: Workbench, in_hand: PartsInHand, part: Part, result: JsonObject) -> None:
    """Note what came of a part of a job whose work is stored already. Raises PartLost where others have it in hand."""
    with wb.corpus.database.transaction() as connection:
        in_hand.done(connection, part, result)


def experiment_tables(wb: Workbench) -> ExperimentTables:
    """Return the tables of experiments."""
    return ExperimentTables(wb.corpus.database)

"""The features that the strategy ``learned`` weighs, of a question's candidates, and the orders of fixed strategies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from workbench.retrieval.options import Ask
from workbench.retrieval.ranker import FeatureSheet
from workbench.services.outages import once_more
from workbench.types import Ranker
from workbench.types.parameter import CLUSTER
from workbench.workbench import Workbench


@dataclass(frozen=True, slots=True)
class WeighedQuestion:
    """The features of a question's candidates; ``orders`` are their row numbers, best first, by fixed strategy."""

    sheet: FeatureSheet
    orders: dict[str, tuple[int, ...]]


def weighed_question(wb: Workbench, question: str, ask: Ask) -> WeighedQuestion | None:
    """Search as ``ask`` says, by the strategy ``learned``; None where nothing is found.

    Raises what a search raises.
    """
    return once_more(wb.corpus, lambda: _weighed(wb, question, ask))


def _weighed(wb: Workbench, question: str, ask: Ask) -> WeighedQuestion | None:
    request = wb.requests.of(replace(ask, strategy="learned"))
    from workbench.retrieval.name_matching import within_named
    from workbench.retrieval.pipeline import RETRIEVED, run

    request = within_named(request, question)
    request.trace.passed = {}
    run(question, request)
    if request.sheet is None:
        return None
    passed = request.trace.passed
    rows = {key: row for row, key in enumerate(request.sheet.ids)}
    orders = {"hybrid": _rows(rows, passed[RETRIEVED]), "rerank": _rows(rows, passed[CLUSTER])}
    return WeighedQuestion(request.sheet, orders)


def known_rankers(wb: Workbench) -> list[Ranker]:
    """Return the ranker that comes with the workbench, then all that were kept, by name."""
    return wb.rankers.list()


def _rows(rows: dict[int, int], ids: Sequence[int]) -> tuple[int, ...]:
    return tuple(rows[key] for key in ids if key in rows)

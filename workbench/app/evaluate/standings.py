"""The leaderboard of an experiment: every run with its interval, against the best, and what it costs."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

import streamlit as st

from evals.experiments.leaderboard import LeaderboardLine
from evals.learning.training import LEARNED, has_seen
from evals.measures.metrics import metric_title
from evals.measures.significance import LEVEL, sentence
from workbench.app.evaluate.charts import Spot
from workbench.app.evaluate.outcome import ExperimentOutcome, front_chart, run_title, settings_of
from workbench.app.shell.scope_bar import place_scope
from workbench.app.state import address
from workbench.app.widgets.looks import look, title_of
from workbench.app.widgets.notices import component
from workbench.app.widgets.promoting import (
    PromotionCandidate,
    Serving,
    beside_serving,
    places_of_measured,
    promote_dialog,
    serving_in,
)
from workbench.errors import ScopeError
from workbench.formatting import counted, size_text
from workbench.retrieval.parameters import RANKER, SHIPPED

if TYPE_CHECKING:
    from evals.experiments.runs import CellResult
    from workbench.workbench import Workbench

# --- The dialog that promotes a run, with the evidence of its experiment for and against it ---


def promote_run(wb: Workbench, outcome: ExperimentOutcome, cell: CellResult, serving: Serving | None) -> None:
    """Ask where a run's strategy is to serve from now on, saying what the evidence is."""
    value = cell.run.means[outcome.metric] if cell.run else 0.0
    note = f"{metric_title(outcome.metric)} {value:.3f} in {outcome.experiment.title}"
    candidate = PromotionCandidate(cell.cell.strategy, cell.cell.parameters, cell.cell.index, note)
    sentences = evidence(outcome, cell, serving) + _seen_before(wb, outcome, cell)
    promote_dialog(wb, candidate, places_of_measured(wb, outcome.experiment.scope, place_scope()), sentences)


def _seen_before(wb: Workbench, outcome: ExperimentOutcome, cell: CellResult) -> list[str]:
    """Say that a ranker was trained on the questions it was measured with, as HTML; nothing where it was not."""
    if cell.cell.strategy != LEARNED:
        return []
    name = str(cell.cell.parameters.get(RANKER.name, SHIPPED))
    known = [ranker for ranker in wb.rankers.list() if ranker.name == name]
    if not any(has_seen(ranker, outcome.experiment.test_set_title) for ranker in known):
        return []
    return [f"The ranker <b>{escape(name)}</b> was trained on these questions: on others it will reach less."]


def evidence(outcome: ExperimentOutcome, cell: CellResult, serving: Serving | None = None) -> list[str]:
    """Return the sentences about a run, as HTML; every text is escaped."""
    line = next(line for line in outcome.lines if line.run_id == cell.run_id)
    low, high = line.interval
    sentences = [
        f"<b>{escape(run_title(cell))}</b> reached {metric_title(outcome.metric)} {line.metrics[outcome.metric]:.3f} "
        f"(95 % {low:.3f} to {high:.3f}) on {escape(outcome.experiment.test_set_title)}, "
        f"over {escape(outcome.experiment.over)}."
    ]
    if line.against_best and line.against_best.significant:
        sentences.append("Another run did significantly better on these questions.")
    elif line.against_best and line.against_best.is_tie:
        sentences.append("It ties with the run listed first: both are equal on every question.")
    elif line.against_best and line.against_best.p < LEVEL:
        sentences.append(f"Against the run that leads it {sentence(line.against_best)}.")
    elif line.against_best:
        sentences.append("It does not lead, but these questions cannot tell it from the leader.")
    if serving is not None:
        sentences.append(beside_serving(outcome.measured, outcome.metric, cell.run_id, serving))
    return sentences


def standings(wb: Workbench, outcome: ExperimentOutcome) -> tuple[str, str] | None:
    """Show the leaderboard; returns the runs (A, B) that are compared question by question."""
    picks = picked(outcome)
    low, high, digits = scale(outcome.lines)
    serving = _serving(wb, outcome)
    result = component("evaluate/standings")(
        key="standings",
        data={
            "rows": [row_of(outcome, place, line, serving) for place, line in enumerate(outcome.lines)],
            "metric": metric_title(outcome.metric),
            "scale": [low, high],
            "digits": digits,
            "picks": list(picks),
        },
        on_promote_change=_nothing,
        on_pick_change=_nothing,
    )
    if result.pick:
        address.put(
            ab=[*picks[1:], result.pick] if result.pick not in picks else [p for p in picks if p != result.pick]
        )
        st.rerun()
    if result.promote and (cell := outcome.cell(result.promote)):
        promote_run(wb, outcome, cell, serving)
    return (picks[0], picks[1]) if len(picks) == 2 else None


def picked(outcome: ExperimentOutcome) -> list[str]:
    """Return the runs the address names for comparing; without any, the best and the one after it."""
    run_ids = [cell.run_id for cell in outcome.measured]
    chosen_ids = [run_id for run_id in address.get_all("ab") if run_id in run_ids]
    return chosen_ids[:2] if chosen_ids else run_ids[1::-1]


def _serving(wb: Workbench, outcome: ExperimentOutcome) -> Serving | None:
    """Return what serves the scope that was measured, or for a corpus of its own the scope chosen above; None if
    that scope has lost a part.
    """
    measured = outcome.experiment.scope
    try:
        return serving_in(wb, place_scope() if measured is None else measured.scope)
    except ScopeError:  # the page names the missing part
        return None


def row_of(outcome: ExperimentOutcome, place: int, line: LeaderboardLine, serving: Serving | None) -> dict[str, object]:
    """Return one run as the component draws it."""
    cell = next(cell for cell in outcome.cells if cell.run_id == line.run_id)
    appearance = look(cell.cell.strategy)
    done = line.status == "done"
    return {
        "id": line.run_id,
        "rank": line.rank if done else None,
        "leads": _leads(outcome) if place == 0 and done else "",
        "label": run_title(cell),
        "title": title_of(cell.cell.strategy),
        "settings": ", ".join(settings_of(cell)),
        "hue": appearance.hue,
        "shape": appearance.shape,
        "status": line.status,
        "serves": serving is not None and serving.is_run(cell.cell),
        "error": line.error,
        "value": line.metrics.get(outcome.metric) if done else None,
        "low": round(line.interval[0], 4),
        "high": round(line.interval[1], 4),
        "against": _against(line),
        "front": line.on_front,
        "p50": line.latency_ms.get("p50"),
        "p95": line.latency_ms.get("p95"),
        "size": size_text(line.index_bytes) if line.index_bytes else "–",
    }


def _leads(outcome: ExperimentOutcome) -> str:
    """Describe the first row: it leads alone, or ties with others."""
    tied = sum(line.rank == 1 for line in outcome.lines) - 1
    if not tied:
        return "leads" if len(outcome.measured) > 1 else ""
    return f"ties with {counted(tied, 'other')}"


def _against(line: LeaderboardLine) -> dict[str, str] | None:
    difference = line.against_best
    if difference is None:
        return None
    low, high = difference.interval
    why = (
        f"Difference {difference.difference:+.4f}, 95 % interval {low:+.4f} to {high:+.4f}; {difference.ties} "
        "questions equal; randomisation test, corrected by Holm's method for all runs compared with the best."
    )
    kind = "worse" if difference.significant else "equal" if difference.p >= LEVEL else "unsure"
    return {"sign": f"{difference.difference:+.3f}", "text": sentence(difference), "kind": kind, "why": why}


def scale(lines: Sequence[LeaderboardLine]) -> tuple[float, float, int]:
    """Return the ends of the scale that holds every interval, and the digits to write them with."""
    done = [line for line in lines if line.status == "done"]
    if not done:
        return 0.0, 1.0, 1
    low, high = min(line.interval[0] for line in done), max(line.interval[1] for line in done)
    if low == high == 1.0:
        low = 0.99  # a scale has two ends
    for step, digits in ((0.1, 1), (0.05, 2), (0.01, 2)):
        ends = (max(0.0, step * int(low / step)), min(1.0, step * (int(high / step) + 1)))
        if high - low > (ends[1] - ends[0]) * 0.5 or step == 0.01:
            return round(ends[0], 4), round(ends[1], 4), digits
    return 0.0, 1.0, 1


def against_latency(outcome: ExperimentOutcome) -> None:
    """Show quality against latency: what a better answer costs."""
    spots = [
        Spot(
            run_title(cell),
            cell.cell.strategy,
            line.latency_ms["p50"],
            line.metrics[outcome.metric],
            on_front=line.on_front,
        )
        for line, cell in zip(outcome.lines, outcome.measured, strict=False)
    ]
    front_chart(spots, "quality_latency")


def _nothing() -> None:
    """Do nothing: Streamlit wants a callback, and triggers are read from the result."""

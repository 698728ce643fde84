"""The leaderboard of an experiment: each run's score with its interval, difference to the best, and latency."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

import streamlit as st

from evals.experiments.leaderboard import LeaderboardLine
from evals.learning.training import LEARNED_STRATEGY, has_seen_test_set
from evals.measures.metrics import metric_title
from evals.measures.significance import SIGNIFICANCE_LEVEL, describe_difference
from workbench.app.evaluate.charts import ChartPoint
from workbench.app.evaluate.outcome import ExperimentOutcome, format_run_title, list_settings, show_quality_chart
from workbench.app.shell.scope_bar import read_lasting_scope
from workbench.app.state import address
from workbench.app.widgets.looks import get_look, strategy_title
from workbench.app.widgets.notices import load_component
from workbench.app.widgets.promoting import (
    LiveStrategy,
    PromotionCandidate,
    compare_with_live,
    list_measured_places,
    load_live_strategy,
    open_promotion,
)
from workbench.errors import ScopeError
from workbench.formatting import count_text, size_text
from workbench.retrieval.parameters import DEFAULT_RANKER, RANKER

if TYPE_CHECKING:
    from evals.experiments.runs import CellResult
    from workbench.workbench import Workbench

# Promotion of a run


def promote_run(wb: Workbench, outcome: ExperimentOutcome, cell: CellResult, serving: LiveStrategy | None) -> None:
    """Open the dialog that promotes a run's strategy, with the evidence of the experiment."""
    value = cell.run.means[outcome.metric] if cell.run else 0.0
    note = f"{metric_title(outcome.metric)} {value:.3f} in {outcome.experiment.title}"
    candidate = PromotionCandidate(cell.cell.strategy, cell.cell.parameters, cell.cell.index, note)
    sentences = list_evidence(outcome, cell, serving) + _warn_if_seen(wb, outcome, cell)
    open_promotion(wb, candidate, list_measured_places(wb, outcome.experiment.scope, read_lasting_scope()), sentences)


def _warn_if_seen(wb: Workbench, outcome: ExperimentOutcome, cell: CellResult) -> list[str]:
    """Return an HTML warning if the ranker was trained on the questions it was measured with."""
    if cell.cell.strategy != LEARNED_STRATEGY:
        return []
    name = str(cell.cell.parameters.get(RANKER.name, DEFAULT_RANKER))
    known = [ranker for ranker in wb.rankers.list() if ranker.name == name]
    if not any(has_seen_test_set(ranker, outcome.experiment.test_set_title) for ranker in known):
        return []
    return [f"The ranker <b>{escape(name)}</b> was trained on these questions, so it will score lower on others."]


def list_evidence(outcome: ExperimentOutcome, cell: CellResult, serving: LiveStrategy | None = None) -> list[str]:
    """Return the evidence about a run as escaped HTML sentences."""
    line = next(line for line in outcome.lines if line.run_id == cell.run_id)
    low, high = line.interval
    sentences = [
        f"<b>{escape(format_run_title(cell))}</b>: {metric_title(outcome.metric)} {line.metrics[outcome.metric]:.3f} "
        f"(95% CI {low:.3f} to {high:.3f}) on {escape(outcome.experiment.test_set_title)}, "
        f"corpus: {escape(outcome.experiment.over)}."
    ]
    if line.against_best and line.against_best.significant:
        sentences.append("Another run is significantly better on these questions.")
    elif line.against_best and line.against_best.is_tie:
        sentences.append("It ties with the first run: both score the same on every question.")
    elif line.against_best and line.against_best.p < SIGNIFICANCE_LEVEL:
        sentences.append(f"Compared with the best run, it {describe_difference(line.against_best)}.")
    elif line.against_best:
        sentences.append("It is not the best run, but the difference is not significant.")
    if serving is not None:
        sentences.append(compare_with_live(outcome.done_cells, outcome.metric, cell.run_id, serving))
    return sentences


def show_leaderboard(wb: Workbench, outcome: ExperimentOutcome) -> tuple[str, str] | None:
    """Show the leaderboard; return the two runs to compare, or None."""
    picks = read_picks(outcome)
    low, high, digits = choose_scale(outcome.lines)
    serving = _load_serving(wb, outcome)
    result = load_component("evaluate/standings")(
        key="standings",
        data={
            "rows": [make_run_row(outcome, place, line, serving) for place, line in enumerate(outcome.lines)],
            "metric": metric_title(outcome.metric),
            "scale": [low, high],
            "digits": digits,
            "picks": list(picks),
        },
        on_promote_change=_ignore_event,
        on_pick_change=_ignore_event,
    )
    if result.pick:
        address.put(
            ab=[*picks[1:], result.pick] if result.pick not in picks else [p for p in picks if p != result.pick]
        )
        st.rerun()
    if result.promote and (cell := outcome.cell(result.promote)):
        promote_run(wb, outcome, cell, serving)
    return (picks[0], picks[1]) if len(picks) == 2 else None


def read_picks(outcome: ExperimentOutcome) -> list[str]:
    """Return the runs of the URL to compare; by default the best and the second."""
    run_ids = [cell.run_id for cell in outcome.done_cells]
    chosen_ids = [run_id for run_id in address.get_all("ab") if run_id in run_ids]
    return chosen_ids[:2] if chosen_ids else run_ids[1::-1]


def _load_serving(wb: Workbench, outcome: ExperimentOutcome) -> LiveStrategy | None:
    """Return what is live in the measured scope, or in the current one for a corpus of its own.

    Returns None if a part of the scope was deleted.
    """
    measured = outcome.experiment.scope
    try:
        return load_live_strategy(wb, read_lasting_scope() if measured is None else measured.scope)
    except ScopeError:  # the page names the missing part
        return None


def make_run_row(
    outcome: ExperimentOutcome, place: int, line: LeaderboardLine, serving: LiveStrategy | None
) -> dict[str, object]:
    """Return the data of a run for the component."""
    cell = next(cell for cell in outcome.cells if cell.run_id == line.run_id)
    appearance = get_look(cell.cell.strategy)
    done = line.status == "done"
    return {
        "id": line.run_id,
        "rank": line.rank if done else None,
        "leads": _describe_leader(outcome) if place == 0 and done else "",
        "label": format_run_title(cell),
        "title": strategy_title(cell.cell.strategy),
        "settings": ", ".join(list_settings(cell)),
        "hue": appearance.hue,
        "shape": appearance.shape,
        "status": line.status,
        "serves": serving is not None and serving.is_run(cell.cell),
        "badge": serving.badge if serving else "",
        "error": line.error,
        "value": line.metrics.get(outcome.metric) if done else None,
        "low": round(line.interval[0], 4),
        "high": round(line.interval[1], 4),
        "against": _describe_difference(line),
        "front": line.on_front,
        "p50": line.latency_ms.get("p50"),
        "p95": line.latency_ms.get("p95"),
        "size": size_text(line.index_bytes) if line.index_bytes else "–",
    }


def _describe_leader(outcome: ExperimentOutcome) -> str:
    """Describe the first row: best, or tied with others."""
    tied = sum(line.rank == 1 for line in outcome.lines) - 1
    if not tied:
        return "best" if len(outcome.done_cells) > 1 else ""
    return f"tied with {count_text(tied, 'other')}"


def _describe_difference(line: LeaderboardLine) -> dict[str, str] | None:
    difference = line.against_best
    if difference is None:
        return None
    low, high = difference.interval
    why = (
        f"Difference {difference.difference:+.4f}, 95% CI {low:+.4f} to {high:+.4f}; {difference.ties} "
        "questions equal; randomisation test with Holm correction over all runs compared with the best."
    )
    kind = "worse" if difference.significant else "equal" if difference.p >= SIGNIFICANCE_LEVEL else "unsure"
    return {"sign": f"{difference.difference:+.3f}", "text": describe_difference(difference), "kind": kind, "why": why}


def choose_scale(lines: Sequence[LeaderboardLine]) -> tuple[float, float, int]:
    """Return the ends of a scale for all intervals, and the number of digits of its labels."""
    done = [line for line in lines if line.status == "done"]
    if not done:
        return 0.0, 1.0, 1
    low, high = min(line.interval[0] for line in done), max(line.interval[1] for line in done)
    if low == high == 1.0:
        low = 0.99  # the ends must differ
    for step, digits in ((0.1, 1), (0.05, 2), (0.01, 2)):
        ends = (max(0.0, step * int(low / step)), min(1.0, step * (int(high / step) + 1)))
        if high - low > (ends[1] - ends[0]) * 0.5 or step == 0.01:
            return round(ends[0], 4), round(ends[1], 4), digits
    return 0.0, 1.0, 1


def show_quality_against_latency(outcome: ExperimentOutcome) -> None:
    """Show quality against latency."""
    spots = [
        ChartPoint(
            format_run_title(cell),
            cell.cell.strategy,
            line.latency_ms["p50"],
            line.metrics[outcome.metric],
            on_front=line.on_front,
        )
        for line, cell in zip(outcome.lines, outcome.done_cells, strict=False)
    ]
    show_quality_chart(spots, "quality_latency")


def _ignore_event() -> None:
    """Do nothing: Streamlit requires a callback, and triggers are read from the result."""

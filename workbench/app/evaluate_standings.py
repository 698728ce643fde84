"""The leaderboard of an experiment: every run with its interval, against the best, and what it costs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import streamlit as st

from evals.leaderboard import Line
from workbench.app import address
from workbench.app.assets import component
from workbench.app.board_data import title_of
from workbench.app.evaluate_charts import Spot
from workbench.app.evaluate_front import front_chart
from workbench.app.evaluate_promote import promote
from workbench.app.evaluate_results import Found, metric_name, run_title, settings_of
from workbench.app.looks import look
from workbench.app.pages.system import size
from workbench.app.promoting import Serving, serving_in
from workbench.app.scope_bar import current_scope
from workbench.errors import ScopeError

if TYPE_CHECKING:
    from workbench.workbench import Workbench


def standings(workbench: Workbench, seen: Found) -> tuple[str, str] | None:
    """Show the leaderboard; returns the runs (A, B) that are compared question by question."""
    picks = picked(seen)
    low, high, digits = scale(seen.lines)
    serving = _serving(workbench)
    result = component("standings")(
        key="standings",
        data={
            "rows": [row_of(seen, place, line, serving) for place, line in enumerate(seen.lines)],
            "metric": metric_name(seen.metric),
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
    if result.promote and (cell := seen.cell(result.promote)):
        promote(workbench, seen, cell)
    return (picks[0], picks[1]) if len(picks) == 2 else None


def picked(seen: Found) -> list[str]:
    """Return the runs the address names for comparing; without any, the best and the one after it."""
    there = [cell.run_id for cell in seen.measured]
    named = [run_id for run_id in address.get_all("ab") if run_id in there]
    return named[:2] if named else there[1::-1]


def _serving(workbench: Workbench) -> Serving | None:
    """Return what serves the scope chosen above; None where there is no such scope."""
    try:
        return serving_in(workbench, current_scope())
    except ScopeError:  # the bar above says what is not there
        return None


def row_of(seen: Found, place: int, line: Line, serving: Serving | None) -> dict[str, Any]:
    """Return one run as the component draws it."""
    cell = next(cell for cell in seen.cells if cell.run_id == line.run_id)
    drawn = look(cell.cell.strategy)
    done = line.status == "done"
    return {
        "id": line.run_id,
        "rank": place + 1 if done else None,
        "label": run_title(cell),
        "title": title_of(cell.cell.strategy),
        "settings": ", ".join(settings_of(cell)),
        "hue": drawn.hue,
        "shape": drawn.shape,
        "status": line.status,
        "serves": serving is not None and serving.is_run(cell.cell),
        "error": line.error,
        "value": line.metrics.get(seen.metric) if done else None,
        "low": round(line.interval[0], 4),
        "high": round(line.interval[1], 4),
        "against": _against(line),
        "front": line.on_front,
        "p50": line.latency_ms.get("p50"),
        "p95": line.latency_ms.get("p95"),
        "size": size(line.index_bytes) if line.index_bytes else "–",
    }


def _against(line: Line) -> dict[str, str] | None:
    difference = line.against_best
    if difference is None:
        return None
    low, high = difference.interval
    why = (
        f"Difference {difference.difference:+.4f}, 95 % interval {low:+.4f} to {high:+.4f}; {difference.wins} "
        f"questions won, {difference.losses} lost, {difference.ties} equal; randomisation test with Holm's correction."
    )
    p = "p < .001" if difference.p_corrected < 0.001 else f"p = {difference.p_corrected:.3f}".replace("0.", ".")
    if difference.significant:
        return {"sign": f"{difference.difference:+.3f}", "text": f"worse, {p}", "kind": "worse", "why": why}
    return {"sign": f"{difference.difference:+.3f}", "text": f"not told apart, {p}", "kind": "equal", "why": why}


def scale(lines: Sequence[Line]) -> tuple[float, float, int]:
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


def against_latency(seen: Found) -> None:
    """Show quality against latency: what a better answer costs."""
    spots = [
        Spot(
            run_title(cell),
            cell.cell.strategy,
            line.latency_ms["p50"],
            line.metrics[seen.metric],
            on_front=line.on_front,
        )
        for line, cell in zip(seen.lines, seen.measured, strict=False)
    ]
    front_chart(spots, "quality_latency")


def _nothing() -> None:
    """Triggers are read from the result; Streamlit wants a callback."""

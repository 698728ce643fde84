"""The view of one experiment: progress, leaderboard, latency, and single questions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import streamlit as st

from evals.background import enqueue_experiment, find_job
from evals.experiments.catalogue import MAX_NOTE_CHARS, Experiments
from evals.experiments.leaderboard import (
    LeaderboardLine,
    describe_judged_outside,
    describe_leaderboard,
    describe_weaknesses,
    to_csv,
)
from evals.experiments.report import to_notebook
from evals.experiments.runs import Experiment, SavedView, read_run_text
from evals.gateway import describe_deleted
from evals.learning import training
from evals.measures.metrics import metric_title
from evals.measures.significance import SIGNIFICANCE_LEVEL, describe_difference, explain_difference
from workbench.app.evaluate.charts import ChartPoint, choose_ends
from workbench.app.evaluate.outcome import (
    ExperimentOutcome,
    format_run_title,
    list_settings,
    load_outcome,
    show_answers,
    show_note,
    show_parts,
    show_quality_chart,
    show_ragas,
)
from workbench.app.evaluate.questions import show_questions
from workbench.app.shell.scope_bar import read_lasting_scope
from workbench.app.shell.work import read_job_view, show_button, show_job
from workbench.app.state import address
from workbench.app.state.shared import choose_in_url, name_tab, note_change
from workbench.app.widgets.looks import (
    escape_markdown,
    format_measured,
    make_file_name,
    make_label_function,
    strategy_look,
)
from workbench.app.widgets.notices import mount, report_errors, run_change, show_confirmation
from workbench.app.widgets.promoting import (
    LiveStrategy,
    PromotionCandidate,
    compare_with_live,
    list_measured_places,
    load_live_strategy,
    open_promotion,
)
from workbench.errors import ScopeError
from workbench.formatting import count_text, format_dollars, size_text

if TYPE_CHECKING:
    from streamlit.runtime.uploaded_file_manager import UploadedFile

    from evals.experiments.runs import CellResult
    from workbench.storage.jobs import Job
    from workbench.workbench import Workbench

RUN_FILE_TYPES = ("trec", "run", "txt", "tsv", "csv", "gz")  # file extensions

# The leaderboard of an experiment

# Promotion of a run


def promote_run(wb: Workbench, outcome: ExperimentOutcome, cell: CellResult, serving: LiveStrategy | None) -> None:
    """Open the dialog that promotes a run's strategy, with evidence from the experiment."""
    line = next(line for line in outcome.lines if line.run_id == cell.run_id)
    low, high = line.interval
    title, value = metric_title(outcome.metric), line.metrics[outcome.metric]
    sentences = [f"<b>{escape(format_run_title(cell))}</b>: {title} {value:.3f} (95% CI {low:.3f} to {high:.3f})."]
    is_best_live = serving is not None and outcome.done_cells and serving.is_run(outcome.done_cells[0].cell)
    if line.against_best is not None and not is_best_live:  # else the next sentence compares with it
        sentences.append(f"Compared with the best run: {escape(describe_difference(line.against_best))}.")
    if serving is not None:
        sentences.append(compare_with_live(outcome.done_cells, outcome.metric, cell.run_id, serving))
    seen = training.find_trained_rankers(wb, outcome.experiment.test_set_title, [cell.run] if cell.run else [])
    sentences += map(escape, map(training.describe_seen_ranker, seen))
    note = f"{title} {value:.3f} in {outcome.experiment.title}"
    candidate = PromotionCandidate(cell.cell.strategy, cell.cell.parameters, cell.cell.index, note)
    places = list_measured_places(wb, outcome.experiment.scope, read_lasting_scope())
    open_promotion(wb, candidate, places, sentences, format_experiment_scope(outcome.experiment))


def format_experiment_scope(experiment: Experiment) -> str:
    """Return the test set of an experiment and its scope as badges."""
    return format_measured(f"{experiment.test_set_title}, version {experiment.test_set_version}", experiment.over)


class Cost(NamedTuple):
    """A column of the leaderboard on what a search takes; it is shown if a run has a value."""

    title: str
    about: str
    read: Callable[[LeaderboardLine], float | None]
    show: Callable[[float], str]

    def format(self, line: LeaderboardLine) -> str:
        """Return the value of a run as text."""
        value = self.read(line)
        return "–" if value is None else self.show(value)


COSTS = (
    Cost(
        "Tokens",
        "Tokens of the text that a search returns, on average",
        lambda line: line.usage.get("context_tokens"),
        "{:,.0f}".format,
    ),
    Cost("LLM calls", "Calls of the LLM per search", lambda line: line.usage.get("llm_calls"), "{:.1f}".format),
    Cost(
        "LLM tokens",
        "Tokens that the LLM reads and writes per search",
        lambda line: sum(line.usage.get(name, 0.0) for name in ("llm_input_tokens", "llm_output_tokens")),
        "{:,.0f}".format,
    ),
    Cost(
        "$ / 1,000",
        "Dollars per 1,000 searches, by the known prices",
        lambda line: None if line.dollars is None else line.dollars * 1000,
        format_dollars,
    ),
)
ALL_RUNS = "all"  # value of the tag in the URL without a filter


def show_leaderboard(wb: Workbench, outcome: ExperimentOutcome, view: SavedView, tag: str) -> Sequence[str]:
    """Show the leaderboard of the runs with a tag; return the ids of the runs that are picked, at most two."""
    picks = read_picks(outcome, view)
    serving = _load_serving(wb, outcome)
    shown = [line for line in outcome.lines if tag in ("", ALL_RUNS, *line.tags)]
    cutoff = outcome.metric.partition("@")[2]
    has_unjudged = any(line.unjudged is not None for line in shown)
    costs = [cost for cost in COSTS if any(cost.read(line) for line in shown)]
    data = {
        "rows": [make_run_row(outcome, line is outcome.lines[0], line, serving, costs) for line in shown],
        "costs": [[cost.title, cost.about] for cost in costs],
        "metric": metric_title(outcome.metric),
        "unjudged": f"Unjudged@{cutoff}" if has_unjudged else "",
        "scale": choose_ends([line.interval for line in outcome.lines if line.status == "done"]),
        "picks": list(picks),
    }
    result = mount("evaluate/standings", "standings", data, "promote", "pick")
    if result.pick:
        address.put(
            ab=[*picks[1:], result.pick] if result.pick not in picks else [p for p in picks if p != result.pick]
        )
        st.rerun()
    if result.promote and (cell := outcome.cell(result.promote)):
        promote_run(wb, outcome, cell, serving)
    return picks


def read_picks(outcome: ExperimentOutcome, view: SavedView) -> list[str]:
    """Return the runs to compare, as named in the URL; by default those of the saved view, else the best two."""
    ids = {cell.cell.label: cell.run_id for cell in outcome.done_cells}
    run_ids = list(ids.values())
    chosen_ids = [run_id for run_id in address.get_all("ab") if run_id in run_ids]
    return (chosen_ids or [ids[label] for label in view.runs if label in ids])[:2] or run_ids[1::-1]


def _load_serving(wb: Workbench, outcome: ExperimentOutcome) -> LiveStrategy | None:
    """Return what is live in the measured scope, or in the current scope if the experiment has its own corpus.

    Returns None if a part of the scope was deleted.
    """
    measured = outcome.experiment.scope
    try:
        return load_live_strategy(wb, read_lasting_scope() if measured is None else measured.scope)
    except ScopeError:  # the page names the missing part
        return None


def make_run_row(
    outcome: ExperimentOutcome,
    is_first: bool,
    line: LeaderboardLine,
    serving: LiveStrategy | None,
    costs: Sequence[Cost] = (),
) -> dict[str, object]:
    """Return the data of a run for the component."""
    cell = next(cell for cell in outcome.cells if cell.run_id == line.run_id)
    done = line.status == "done"
    spread = line.spread.get(outcome.metric)  # of the means over the repetitions of an LLM
    return {
        **strategy_look(cell.cell.strategy),
        "id": line.run_id,
        "rank": line.rank if done else None,
        "leads": _describe_leader(outcome) if is_first and done else "",
        "label": format_run_title(cell),
        "settings": " · ".join(
            filter(
                None,
                [
                    ", ".join(list_settings(cell)),
                    f"±{spread:.3f} over {outcome.experiment.repeats} repetitions" if spread is not None else "",
                    *map("#{}".format, line.tags),
                    line.note,
                ],
            )
        ),
        "status": "not finished" if line.status == "running" != outcome.experiment.status else line.status,
        "promotable": not cell.cell.file_hash,
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
        "costs": [cost.format(line) if done else "–" for cost in costs],
        "unjudged": "–" if line.unjudged is None else f"{line.unjudged:.0%}",
        "bounds": f"{line.bounds[0]:.3f} to {line.bounds[1]:.3f}" if line.bounds else "",
    }


def _describe_leader(outcome: ExperimentOutcome) -> str:
    """Describe the first row: best, not decided, or tied with others."""
    tied = sum(line.rank == 1 for line in outcome.lines) - 1
    if not tied:
        rivals = [line.against_best for line in outcome.lines if line.against_best is not None]
        return "" if not rivals else "best" if all(one.significant for one in rivals) else "not decided"
    return f"tied with {count_text(tied, 'other')}"


def _describe_difference(line: LeaderboardLine) -> dict[str, str] | None:
    difference = line.against_best
    if difference is None:
        return None
    low, high = difference.interval
    kind = "worse" if difference.significant else "equal" if difference.p >= SIGNIFICANCE_LEVEL else "unsure"
    sign = f"{difference.difference:+.3f}" + ("" if difference.is_tie else f" ({low:+.3f} to {high:+.3f})")
    return {"sign": sign, "text": explain_difference(difference), "kind": kind}


REFRESH_S = 1.0  # seconds between refreshes of a running experiment


def show_experiment(wb: Workbench, experiment_id: str) -> None:
    """Show one experiment, refreshed while it runs in any process."""
    experiment = Experiments(wb).get(experiment_id)
    job = find_job(wb, experiment.id)
    name_tab(part=experiment.title)
    st.button("Experiments", icon=":material/arrow_back:", type="tertiary", on_click=leave_view)
    with st.container(horizontal=True, vertical_alignment="center"):
        st.header(escape_markdown(experiment.title), anchor=False, width="stretch")
        _show_actions(wb, experiment, job)
    st.markdown(format_experiment_scope(experiment))
    st.caption(escape_markdown(_describe_plan(experiment)))
    if experiment.expectations:
        st.markdown(escape_markdown(" ".join(experiment.expectations)))
    show_note(experiment)
    if experiment.scope is not None and (lost := describe_deleted(wb, experiment.scope)):
        st.warning(
            escape_markdown(
                f"Deleted since this experiment ran: {lost} (scope: {experiment.scope.text}). The results are kept, "
                "but it cannot run again, and nothing can be promoted for this scope."
            )
        )
    if job is not None and not job.is_finished:
        st.fragment(_show_running, run_every=REFRESH_S)(wb, experiment.id, _count_finished_runs(wb, experiment.id))
    elif experiment.status != "done":
        st.warning(escape_markdown(experiment.message or (job.message if job else "Not run yet.")))
    _show_results(wb, experiment)


def _describe_plan(experiment: Experiment) -> str:
    limit = f"{experiment.limit_queries} of the questions · " if experiment.limit_queries else ""
    is_done = experiment.status == "done"  # else a notice has the message
    outcome = f"{experiment.status}{f': {experiment.message}' if is_done and experiment.message else '.'}"
    return f"{limit}{count_text(experiment.runs, 'run')} {outcome} Documents: version {experiment.corpus_hash[:8]}."


def _count_finished_runs(wb: Workbench, experiment_id: str) -> int:
    return sum(state.startswith("done") for state in Experiments(wb).state(experiment_id).values())


def _show_running(wb: Workbench, experiment_id: str, shown: int) -> None:
    """Show the progress; redraw the page when a run ends."""
    job = find_job(wb, experiment_id)
    if job is None or job.is_finished or _count_finished_runs(wb, experiment_id) != shown:
        note_change()
        st.rerun()
    with st.container(key="experiment_status", border=True):
        _refresh_job(job.id)


def show_running_job(job_id: str) -> None:
    """Show a running job, refreshed until it ends."""
    st.fragment(_refresh_job, run_every=REFRESH_S)(job_id)


def _refresh_job(job_id: str) -> None:
    work = read_job_view(job_id)
    if not work.is_running:
        st.rerun()
    show_job(job_id, work)


def show_ended_job(wb: Workbench, job: Job, action: str = "") -> bool:
    """Show the outcome of a job, with buttons that resume or delete it; return whether its ``action`` was pressed."""
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(f"**{escape_markdown(job.title)}** · {escape_markdown(job.message)}", width="stretch")
        is_pressed = bool(action and job.result) and st.button(action, key=f"run_{job.id}")
        if job.status in ("cancelled", "failed"):
            show_button("Resume", f"resume_{job.id}", lambda: wb.jobs.resume(job.id))
        show_button("Dismiss", f"away_{job.id}", lambda: wb.jobs.delete(job.id))
    return is_pressed


def _show_actions(wb: Workbench, experiment: Experiment, job: Job | None) -> None:
    if job is not None and not job.is_finished:
        return
    if experiment.status != "done":
        budget = experiment.budget
        if budget:
            budget = st.number_input("Budget ($)", 0.0, value=budget, format="%.4f", width=160)
        if st.button("Resume", icon=":material/play_arrow:"):
            with report_errors():
                enqueue_experiment(wb, experiment.id, budget=budget)
                st.rerun()
    if st.button("Delete", icon=":material/delete:", type="tertiary"):
        _delete(wb, experiment)


@st.dialog("Delete experiment")
def _delete(wb: Workbench, experiment: Experiment) -> None:
    st.markdown(f"Delete **{escape_markdown(experiment.title)}**? Results of its runs are kept for other experiments.")

    def change() -> str:
        Experiments(wb).delete(experiment.id)
        leave_view()
        return f"Deleted {experiment.title}."

    show_confirmation("Delete experiment", change)


def leave_view() -> None:
    """Return to the list of experiments."""
    address.put(experiment=None, second=None, ab=None, ask=None, metric=None, tag=None, parts=None)


def _show_results(wb: Workbench, experiment: Experiment) -> None:
    view = experiment.view
    outcome = load_outcome(wb, experiment.id, address.get("metric") or view.metric or experiment.metrics[0])
    if not outcome.lines:
        return
    tags = list(dict.fromkeys([*filter(None, [view.tag]), *(tag for line in outcome.lines for tag in line.tags)]))
    tag = ALL_RUNS
    with st.container(horizontal=True, vertical_alignment="bottom", key="results_bar"):
        first = view.metric if view.metric in outcome.metrics else experiment.metrics[0]
        titles = {metric: metric_title(metric) for metric in (first, *outcome.metrics)}
        choose_in_url("Metric", titles, "metric", "metric", labelled=True)
        if tags:
            choices = dict.fromkeys([view.tag or ALL_RUNS, ALL_RUNS, *tags])
            titles = {name: "All" if name == ALL_RUNS else f"#{escape_markdown(name)}" for name in choices}
            tag = choose_in_url("Runs", titles, "tag", "run_tag", labelled=True)
        _show_notes_form(wb, experiment, outcome)
        _show_downloads(outcome)
        if experiment.status != "running":
            _show_run_file_form(wb, experiment)
        labels = {cell.run_id: cell.cell.label for cell in outcome.done_cells}
        shown = SavedView(
            outcome.metric, tuple(labels[key] for key in read_picks(outcome, view)), "" if tag == ALL_RUNS else tag
        )
        is_changed = any(address.get(name) for name in ("metric", "ab", "tag")) and shown != view
        if is_changed and st.button(
            "Save view", icon=":material/bookmark_add:", help="Open it with this metric, these runs and this tag"
        ):
            run_change(lambda: _save_view(wb, experiment, shown))
    cells = outcome.done_cells
    titles = {cell.cell.label: format_run_title(cell) for cell in cells}
    verdict, *notes = describe_leaderboard(outcome.lines, outcome.cells, outcome.metric, titles) or ("",)
    if verdict:
        st.markdown(f"**{escape_markdown(verdict)}**")
    picks = show_leaderboard(wb, outcome, view, tag)
    if not cells:
        return
    runs = {format_run_title(cell): cell.run for cell in cells if cell.run is not None}
    test_set = Experiments(wb).test_set(experiment)
    notes.append("★: no other run is both better and faster. A/B: the two runs that are compared by question below.")
    if any(line.bounds for line in outcome.lines):
        notes.append(
            f"Unjudged: the share of the ranked documents without a judgment, then {metric_title(outcome.metric)} "
            "if none or all of them were relevant."
        )
    warnings = [*describe_judged_outside(wb, test_set), *describe_weaknesses(test_set, runs, outcome.metric)]
    warnings += outcome.wording
    trained = training.find_trained_rankers(wb, experiment.test_set_title, runs.values())
    warnings += [training.describe_seen_ranker(ranker) for ranker in trained]
    marked = [f":material/warning: {escape_markdown(sentence)}" for sentence in warnings]
    st.caption("  \n".join([*marked, *map(escape_markdown, notes)]))
    st.subheader("Quality vs. latency", anchor=False)
    _show_latencies(outcome)
    show_answers(wb, outcome)
    show_parts(wb, outcome)
    show_questions(wb, outcome, picks)
    show_ragas(outcome)


def _show_latencies(outcome: ExperimentOutcome) -> None:
    spots = [
        ChartPoint(
            format_run_title(cell), cell.cell.strategy, line.latency_ms["p50"], line.metrics[outcome.metric],
            on_front=line.on_front,
        )
        for line, cell in zip(outcome.lines, outcome.done_cells, strict=False)
        if line.latency_ms
    ]  # fmt: skip
    show_quality_chart(spots, "quality_latency")


def _show_notes_form(wb: Workbench, experiment: Experiment, outcome: ExperimentOutcome) -> None:
    """Offer to write a note and tags for the experiment or one of its runs."""
    cells = {cell.cell.label: cell for cell in outcome.done_cells}
    titles = {"": "This experiment"} | {label: format_run_title(cell) for label, cell in cells.items()}
    known = {tag for cell in outcome.done_cells for tag in cell.tags} | set(experiment.tags)
    with st.popover("Notes", type="tertiary", icon=":material/edit_note:", help="Of the experiment and its runs"):
        label = st.selectbox("For", list(titles), format_func=make_label_function(titles), key="noted")
        about = cells.get(label, experiment)
        with st.form(f"note_{label}", border=False):
            tags = st.multiselect(
                "Tags", sorted(known), list(about.tags), accept_new_options=True, key=f"note_tags_{label}"
            )
            note = st.text_area("Note", about.note, key=f"note_text_{label}", max_chars=MAX_NOTE_CHARS)
            saved = st.form_submit_button("Save note", type="primary")
        if saved:
            run_change(lambda: _save_note(wb, experiment, label or None, note, tags))


def _save_note(wb: Workbench, experiment: Experiment, run: str | None, note: str, tags: Sequence[str]) -> str:
    Experiments(wb).annotate(experiment.id, run, note=note.strip(), tags=tags)
    return "Note saved."


def _save_view(wb: Workbench, experiment: Experiment, view: SavedView) -> str:
    Experiments(wb).save_view(experiment.id, view.metric, view.runs, view.tag)
    return f"View saved. {experiment.title} opens with it."


def _show_run_file_form(wb: Workbench, experiment: Experiment) -> None:
    """Offer to add the ranking of another system, read from a file, to the leaderboard."""
    added = "-".join(
        cell.file_hash[:8] for cell in experiment.cells if cell.file_hash
    )  # the form is empty and closed once it changes
    with st.popover(
        "Add run file",
        type="tertiary",
        icon=":material/upload:",
        help="Compare the ranking of another system",
        key=f"run_file_form_{added}",
    ):
        label = "TREC run or CSV with query, document, score"
        upload = st.file_uploader(label, type=RUN_FILE_TYPES, key=f"run_file_{added}")
        name = st.text_input("Name", placeholder="Defaults to the file's name", key=f"run_file_name_{added}")
        if upload and st.button("Add to leaderboard", type="primary", key="add_run_file"):
            run_change(lambda: _add_run_file(wb, experiment, name.strip() or Path(upload.name).stem, upload))


def _add_run_file(wb: Workbench, experiment: Experiment, name: str, upload: UploadedFile) -> str:
    added = Experiments(wb).add_run_file(experiment.id, name, read_run_text(upload.name, upload.getvalue()))
    return " ".join([f"Added run file {added.name}.", *added.notes])


NOTEBOOK_HELP = "Notebook that reruns this experiment"


def _show_downloads(outcome: ExperimentOutcome) -> None:
    name = make_file_name(outcome.experiment.title, "experiment")
    with st.popover("Export", type="tertiary", icon=":material/ios_share:"):
        for label, data, ending, kind, about in (
            ("CSV", lambda: to_csv(outcome.lines, outcome.experiment.over), "csv", "text/csv", None),
            ("Notebook", lambda: to_notebook(outcome.experiment), "ipynb", "application/x-ipynb+json", NOTEBOOK_HELP),
        ):
            st.download_button(
                label, data, f"{name}.{ending}", kind, icon=":material/download:", on_click="ignore", width="stretch",
                help=about,
            )  # fmt: skip

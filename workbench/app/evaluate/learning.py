"""The Learn view: train rankers on judged questions, show their scores, and store them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from html import escape
from typing import TYPE_CHECKING

import streamlit as st

from evals.background import enqueue_learn
from evals.learning.training import FOLD_COUNT, LEARNED_STRATEGY, MIN_JUDGED_QUESTIONS
from evals.test_sets.store import TestSetStore
from workbench.app.evaluate.experiment import show_ended_job, show_running_job
from workbench.app.evaluate.test_sets import choose_test_set, show_test_sets_button
from workbench.app.shell.scope_bar import read_lasting_scope
from workbench.app.widgets.looks import format_measured, show_message, strategy_title
from workbench.app.widgets.notices import report_errors, run_change
from workbench.app.widgets.promoting import PromotionCandidate, list_measured_places, list_places, open_promotion
from workbench.app.widgets.rows import make_figure, show_rows
from workbench.formatting import count_text
from workbench.retrieval.parameters import DEFAULT_RANKER, RANKER
from workbench.retrieval.ranker import FEATURES, read_ranker
from workbench.services.promotions import MAX_NOTE_CHARS
from workbench.types import MAX_NAME_CHARS, Ranker, as_number, as_object

if TYPE_CHECKING:
    from evals.test_sets.store import TestSetInfo
    from workbench.storage.jobs import Job
    from workbench.workbench import Workbench

MAX_JOBS_SHOWN = 20  # trainings in the list


def show_learning(wb: Workbench) -> None:
    """Show the form, the training jobs with their results, and the stored rankers."""
    infos = TestSetStore(wb).list()
    ready = [info for info in infos if info.answerable >= MIN_JUDGED_QUESTIONS]
    if ready:
        _show_form(wb, ready)
    else:
        most = max((info.answerable for info in infos), default=0)
        show_message(
            "Not enough judged questions",
            "Learn trains a ranker on your judgments, for the strategy Learned. It needs a test set with "
            f"{MIN_JUDGED_QUESTIONS} judged questions; the largest has {most} ({MIN_JUDGED_QUESTIONS - most} missing).",
        )
        show_test_sets_button()
    for job in wb.jobs.list(kind="learn", limit=MAX_JOBS_SHOWN):
        with st.container(border=True, key=f"learn_{job.id}"):
            if job.is_finished:
                _show_outcome(wb, job)
            else:
                show_running_job(job.id)
    _show_rankers(wb)


def _show_form(wb: Workbench, ready: Sequence[TestSetInfo]) -> None:
    indexes = wb.indexes.list()
    with st.container(border=True, key="learn_form"):
        left, right = st.columns(2)
        with left:
            test_set = choose_test_set(ready, "learn_dataset")
        with right:
            names = [index.name for index in indexes]
            default = next((number for number, index in enumerate(indexes) if index.is_default), 0)
            index = st.selectbox("Index", names, default, key="learn_index")
        with st.container(horizontal=True, vertical_alignment="center"):
            go = st.button("Start training", type="primary", key="learn_go")
            st.caption(f"Trains a linear ranker on your judgments. Scores are {FOLD_COUNT}-fold cross-validated.")
    if go:
        with report_errors():
            enqueue_learn(wb, test_set, index)
            st.rerun()


def _show_outcome(wb: Workbench, job: Job) -> None:
    show_ended_job(wb, job)
    if not job.result:
        return
    ranker = read_ranker(as_object(job.result["ranker"]))
    figures = {name: as_number(value) for name, value in as_object(job.result["figures"]).items()}
    left, right = st.columns(2)
    with left:
        titles = {
            LEARNED_STRATEGY: "Learned, new ranker (cross-validated)",
            DEFAULT_RANKER: "Learned, built-in ranker",
            **{name: strategy_title(name) for name in ("rerank", "hybrid")},
        }
        scores = sorted(figures.items(), key=lambda item: -item[1])
        rows = {name: (titles[name], make_figure(value)) for name, value in scores if name in titles}
        show_rows(f"learned_{job.id}", ("Strategy", "nDCG@10"), rows, label="Scores", noun="strategies")
        st.markdown(format_measured("", str(job.result.get("scope") or "all your documents")))
        _show_save_form(wb, job, ranker)
    with right:
        st.html(render_weights(ranker))


def _show_save_form(wb: Workbench, job: Job, ranker: Ranker) -> None:
    """Offer to save the ranker under a name."""
    name = st.text_input("Name", ranker.trained_on[:MAX_NAME_CHARS], key=f"name_{job.id}")
    if st.button("Save", key=f"keep_{job.id}", help="Save as a ranker for the strategy Learned, to promote below"):
        run_change(lambda: _save_ranker(wb, ranker, name))


def _save_ranker(wb: Workbench, ranker: Ranker, name: str) -> str:
    kept = wb.rankers.save(replace(ranker, name=name))
    return f'Ranker "{kept.name}" saved. Select it on Compare, under Settings, for the strategy Learned.'


def _open_promotion(wb: Workbench, ranker: Ranker) -> None:
    note = f"nDCG@10 {ranker.figures.get(LEARNED_STRATEGY, 0.0):.3f}, learned from {ranker.trained_on}"
    others = {index.name for index in wb.indexes.list() if not index.is_default}
    index = ranker.index if ranker.index in others else None  # its scores apply to that index only
    candidate = PromotionCandidate("learned", {RANKER.name: ranker.name}, index, note[:MAX_NOTE_CHARS])
    taught = [info for info in TestSetStore(wb).list() if info.title == ranker.trained_on]
    places = list_places(wb, read_lasting_scope())
    measured = ""
    if len(taught) == 1:
        measured = format_measured(f"{ranker.trained_on}, version {ranker.version}", taught[0].over)
        places = list_measured_places(wb, None if taught[0].source_id else taught[0].scope, read_lasting_scope())
    open_promotion(wb, candidate, places, [escape(f"{ranker.name}: {describe_ranker(ranker)}")], measured)


def _show_rankers(wb: Workbench) -> None:
    """Show the rankers, to download, promote, delete or import."""
    st.header("Rankers", anchor=False)
    st.caption("Compare uses the one chosen under Settings for the strategy Learned.")
    for ranker in wb.rankers.list():
        with st.container(horizontal=True, vertical_alignment="center", key=f"ranker_{ranker.name}"):
            about = f'<span class="wb-kind">{escape(describe_ranker(ranker))}</span>'
            st.html(f"<b>{escape(ranker.name)}</b><br>{about}", width="stretch")
            st.download_button(
                "Download", wb.rankers.export(ranker.name), f"{ranker.name}.json", "application/json",
                key=f"file_{ranker.name}", type="tertiary",
            )  # fmt: skip
            if ranker.name != DEFAULT_RANKER:
                if st.button("Promote", key=f"serve_{ranker.name}", type="tertiary"):
                    _open_promotion(wb, ranker)
                if st.button("Delete", key=f"delete_{ranker.name}", type="tertiary"):
                    run_change(lambda name=ranker.name: _delete_ranker(wb, name))
    with st.popover("Import ranker"):
        file = st.file_uploader("Ranker file (JSON)", type="json", key="import_file")
        if file is not None and st.button("Import", key="import_ranker"):
            run_change(lambda: _import_ranker(wb, file.getvalue()))


def _delete_ranker(wb: Workbench, name: str) -> str:
    wb.rankers.delete(name)
    return f'Ranker "{name}" deleted.'


def _import_ranker(wb: Workbench, data: bytes) -> str:
    return f'Ranker "{wb.rankers.restore(data.decode(errors="replace")).name}" imported.'


def describe_ranker(ranker: Ranker) -> str:
    """Describe where a ranker comes from, in one line."""
    learned = ranker.figures.get(LEARNED_STRATEGY)
    version = f", version {ranker.version}" if ranker.version else ""
    parts = [
        f"{ranker.created_at.astimezone():%-d %b %Y}" if ranker.created_at else "Built in",
        f"trained on {count_text(ranker.questions, 'question')} of {ranker.trained_on}{version}",
        f"index {ranker.index}" if ranker.index else "",
        f"nDCG@10 {learned:.3f}" if learned is not None else "",
    ]
    return " · ".join(part for part in parts if part)


def render_weights(ranker: Ranker) -> str:
    """Return the weights as bars in HTML, positive to the right and negative to the left, largest first."""
    weights = {feature: ranker.weights.get(feature.name, 0.0) for feature in FEATURES}
    most = max(map(abs, weights.values())) or 1.0
    rows = [
        f'<li title="{escape(feature.why)}"><span>{escape(feature.title)}</span>'
        f'<span class="wb-axis" aria-hidden="true"><i class="{"less" if weight < 0 else "more"}" '
        f'style="width:{50 * abs(weight) / most:.1f}%"></i></span><span class="wb-weight">{weight:+.2f}</span></li>'
        for feature, weight in sorted(weights.items(), key=lambda item: -abs(item[1]))
    ]
    about = '<p class="wb-kind">What raises a passage (to the right) or lowers it (to the left)</p>'
    return f'{about}<ol class="wb-weights" aria-label="Weights">{"".join(rows)}</ol>'

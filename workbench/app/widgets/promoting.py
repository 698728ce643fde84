"""Promotion: the live strategy of a scope, and the dialog that changes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

import streamlit as st

from workbench.app.state.shared import load_indexes
from workbench.app.widgets.looks import escape_markdown, make_label_function, render_mark, strategy_title
from workbench.app.widgets.notices import report_errors, run_change
from workbench.errors import ScopeError
from workbench.retrieval.strategies import STRATEGIES, UNPROMOTED_TOOL_STRATEGY, check_parameters, split_strategy
from workbench.types import EVERYWHERE_KEY, Comparison, ParameterValue, Promotion, Proposal, Scope

if TYPE_CHECKING:
    from evals.experiments.runs import Cell, CellResult
    from evals.measures.significance import Difference
    from evals.test_set import MeasuredScope
    from workbench.workbench import Workbench


@dataclass(frozen=True, slots=True)
class LiveStrategy:
    """The strategy used by searches in a scope that name none."""

    promotion: Promotion | None  # the promotion; None for the built-in default
    strategy: str  # name of the strategy
    parameters: Mapping[str, ParameterValue]  # all its parameters
    index: str  # name of the index
    own: str  # key of the scope's own promotions; "" if it cannot have promotions
    reason: str = ""  # why it cannot have promotions
    default_index: str = ""  # name of the default index

    @property
    def badge(self) -> str:
        """The badge of the strategy: "live" if promoted, else "default"."""
        return "default" if self.promotion is None else "live"

    @property
    def undoable(self) -> bool:
        """True if the promotion is the scope's own, not inherited from a wider scope."""
        return self.promotion is not None and self.promotion.scope == self.own

    def is_column(self, name: str, index: str, parameters: Mapping[str, ParameterValue] | None) -> bool:
        """Return whether a column of a comparison is live."""
        return self._is(split_strategy(name, None)[0], index, parameters)

    def is_run(self, cell: Cell) -> bool:
        """Return whether a run of an experiment used what is live."""
        return self._is(cell.strategy, cell.index or self.default_index, cell.parameters)

    def _is(self, strategy: str, index: str, parameters: Mapping[str, ParameterValue] | None) -> bool:
        same = (strategy, index) == (self.strategy, self.index)
        return same and _complete(strategy, parameters) == dict(self.parameters)


def _complete(strategy: str, parameters: Mapping[str, ParameterValue] | None) -> Mapping[str, ParameterValue]:
    """Return a strategy's parameters with defaults; only the given ones if this process lacks the strategy."""
    return check_parameters(strategy, parameters) if strategy in STRATEGIES else dict(parameters or {})


def load_live_strategy(wb: Workbench, scope: Scope) -> LiveStrategy:
    """Return what is live in a scope.

    Raises:
        ScopeError: A part of the scope does not exist.
    """
    promotions = wb.promotions
    promotion, own, reason = promotions.find_active(scope), "", ""
    if promotion is not None:  # the current list has titles
        promotion = next((current for current in promotions.current() if current.scope == promotion.scope), promotion)
    try:
        own = promotions.key(scope)
    except ScopeError as error:
        reason = str(error)
    strategy = promotion.strategy if promotion else promotions.built_in
    parameters = _complete(strategy, promotion.parameters if promotion else None)
    default = next((index.name for index in load_indexes(wb) if index.is_default), "")
    return LiveStrategy(
        promotion, strategy, parameters, (promotion and promotion.index) or default, own, reason, default
    )


def find_live_columns(
    serving: LiveStrategy, comparison: Comparison, parameters: Mapping[str, Mapping[str, ParameterValue]]
) -> list[str]:
    """Return the columns that show the live strategy."""
    return [
        name
        for name, result in comparison.strategies.items()
        if serving.is_column(name, result.index, parameters.get(name, parameters.get(result.strategy)))
    ]


@dataclass(frozen=True, slots=True)
class PromotionCandidate:
    """A strategy to promote, its parameters and index (None for the default), and a note to store with it."""

    strategy: str
    parameters: Mapping[str, ParameterValue]
    index: str | None
    note: str = ""


@dataclass(frozen=True, slots=True)
class PromotionPlace:
    """A scope that a promotion may apply to, its title, and a warning to show if it is chosen."""

    scope: Scope
    title: str
    note: str = ""


@st.dialog("Promote")
def open_promotion(
    wb: Workbench,
    candidate: PromotionCandidate,
    places: Sequence[PromotionPlace],
    evidence: Sequence[str] = (),
    measured: str = "",
) -> None:
    """Ask for the scope of a promotion.

    Args:
        wb: The workbench.
        candidate: What is promoted.
        places: At least one scope; the first is preselected.
        evidence: HTML sentences to show.
        measured: What it was measured on, as ``format_measured`` returns it; "" if it was not measured.
    """
    settings = [f"{name.replace('_', ' ')} {value}" for name, value in candidate.parameters.items()]
    settings += [f"index {candidate.index}"] if candidate.index else []
    title = f"{render_mark(candidate.strategy)} <b>{escape(strategy_title(candidate.strategy))}</b>"
    st.html(f"<p>{title} {escape(' · '.join(settings))}</p>" + "".join(f"<p>{line}</p>" for line in evidence))
    if measured:
        st.markdown(measured)
    chosen = places[st.radio("Apply to", range(len(places)), format_func=lambda at: escape_markdown(places[at].title))]
    if chosen.note:
        st.warning(escape_markdown(chosen.note))
    st.caption("Searches in the app, MCP and Python use it if they name no strategy; you can undo this on Compare.")
    others = {"": "None"} | {n: row.title for n, row in STRATEGIES.items() if n != candidate.strategy and not row.needs}
    rival = st.selectbox(
        "A/B test against", list(others), format_func=make_label_function(others), key="promote_rival",
        help="Agents get the interleaved results of both. Connect shows whose documents they open.",
    )  # fmt: skip
    if st.button("Promote", type="primary", key="confirm_promote"):
        run_change(lambda: _promote(wb, candidate, chosen.scope, rival))


def list_places(wb: Workbench, scope: Scope) -> list[PromotionPlace]:
    """Return the scopes a promotion may apply to: the scope of the scope bar, if possible, and all documents."""
    everywhere = PromotionPlace(Scope(), "All documents")
    if find_promotion_key(wb, scope) in (None, EVERYWHERE_KEY):
        return [everywhere]
    return [PromotionPlace(scope, _scope_title(wb, scope)), everywhere]


def list_measured_places(wb: Workbench, measured: MeasuredScope | None, chosen: Scope) -> list[PromotionPlace]:
    """Return the scopes a promotion may apply to, the measured one first.

    Args:
        wb: The workbench.
        measured: The scope of the experiment; None if it measured a separate corpus.
        chosen: The scope of the scope bar.
    """
    from evals.test_set import OWN_CORPUS_TEXT, WHOLE_CORPUS

    key = None if measured is None else find_promotion_key(wb, measured.scope)
    was = OWN_CORPUS_TEXT if measured is None else measured.text
    note = f"This run was measured on {was}, so its scores may not hold for this scope."
    if measured is not None and key is None:
        note = f"This run was measured on {was}, which cannot have its own promotion."
    others: list[PromotionPlace] = []
    if find_promotion_key(wb, chosen) not in (None, EVERYWHERE_KEY, key):
        others.append(PromotionPlace(chosen, _scope_title(wb, chosen), note))
    if key == EVERYWHERE_KEY:
        return [PromotionPlace(Scope(), f"All documents ({WHOLE_CORPUS.text}), as measured"), *others]
    others.append(PromotionPlace(Scope(), "All documents", note))
    if measured is None or key is None:
        return others[::-1]
    return [PromotionPlace(measured.scope, f"Measured scope: {was}"), *others]


def _scope_title(wb: Workbench, scope: Scope) -> str:
    from evals.gateway import describe_scope

    return f"Current scope: {describe_scope(wb, scope).text}"


def find_promotion_key(wb: Workbench, scope: Scope) -> str | None:
    """Return the key of a scope's own promotions; None if it cannot have promotions, or names something deleted."""
    try:
        return wb.promotions.key(scope)
    except ScopeError:
        return None


def _promote(wb: Workbench, candidate: PromotionCandidate, scope: Scope, rival: str) -> str:
    promotion = wb.promotions.promote(
        candidate.strategy, scope=scope, parameters=candidate.parameters, index=candidate.index, note=candidate.note,
        rival=rival,
    )  # fmt: skip
    return f"{strategy_title(promotion.strategy)} is live (version {promotion.version}) in the app, MCP and Python."


def show_live_line(wb: Workbench, serving: LiveStrategy, scope: Scope) -> None:
    """Show what is live and since when, with an undo button."""
    with st.container(key="servingline", horizontal=True, gap="small", vertical_alignment="center", width="content"):
        st.html(f'<p class="wb-serving">{render_live_strategy(serving)}</p>', width="content")
        if serving.promotion is not None and serving.undoable:
            arguments = (wb, scope, serving.promotion.version)
            st.button("Undo", key="undo_promotion", type="tertiary", on_click=_undo, args=arguments)


def render_live_strategy(serving: LiveStrategy) -> str:
    """Return a sentence about what is live, as escaped HTML."""
    if serving.promotion is not None:
        return render_promotion(serving.promotion)
    return (
        f"Nothing promoted yet: the app searches with <b>{escape(strategy_title(serving.strategy))}</b>, agents with "
        f"<b>{escape(strategy_title(UNPROMOTED_TOOL_STRATEGY))}</b>."
    )


def list_changed_parameters(promotion: Promotion | Proposal) -> list[str]:
    """Return "name value" of the parameters that differ from the strategy's defaults."""
    defaults = _complete(promotion.strategy, None)
    return [
        f"{key} {value}" for key, value in promotion.parameters.items() if key in defaults and value != defaults[key]
    ]


def render_promotion(promotion: Promotion) -> str:
    """Return a promotion's strategy, scope and start time as escaped HTML."""
    kind = promotion.scope.partition(":")[0]
    place = "in all documents" if kind == "everywhere" else f"in the {kind} <b>{escape(promotion.scope_title)}</b>"
    since = f"{promotion.promoted_at.astimezone():%-d %b %Y, %H:%M}" if promotion.promoted_at else "–"
    facts = [
        f"<b>{escape(strategy_title(promotion.strategy))}</b> is live {place}",
        f"since {since}",
        f"version {promotion.version}",
        *([f"index {escape(promotion.index)}"] if promotion.index else []),
        *([f"interleaved with <b>{escape(strategy_title(promotion.rival))}</b> for agents"] if promotion.rival else []),
        *map(escape, list_changed_parameters(promotion)),
    ]
    return " · ".join(facts)


def _undo(wb: Workbench, scope: Scope, version: int) -> None:
    """Undo a version; a second click finds another version and does nothing."""
    with report_errors(st.toast):
        promotion = wb.promotions.find_active(scope)
        if promotion is not None and (promotion.scope, promotion.version) == (wb.promotions.key(scope), version):
            wb.promotions.undo(scope)


# Evidence for a promotion from experiments

MAX_EXPERIMENTS_SEARCHED = 20  # newest experiments that are searched for evidence


def compare_with_live(results: Sequence[CellResult], metric: str, run_id: str, serving: LiveStrategy) -> str:
    """Return an HTML sentence that compares a run with what is live, by the paired test of an experiment."""
    from evals.experiments.leaderboard import compare_with_run

    measured = [result for result in results if result.run is not None]
    serves = f"{escape(strategy_title(serving.strategy))}, which is live"
    reference = next((result for result in measured if serving.is_run(result.cell)), None)
    if reference is None:
        return f"This experiment does not include {serves}, so there is no comparison with it."
    if reference.run_id == run_id:
        return "It is already live."
    differences = compare_with_run(measured, metric, reference.run_id)
    clear = any(one.significant and one.difference > 0 for one in differences.values())
    return _format_verdict(differences[run_id], serves) + (
        "" if clear else " Nothing in this experiment is clearly better."
    )


def make_live_strategy(candidate: PromotionCandidate, default_index: str) -> LiveStrategy:
    """Return what would be live if a candidate were promoted."""
    parameters = check_parameters(candidate.strategy, candidate.parameters)
    index = candidate.index or default_index
    return LiveStrategy(None, candidate.strategy, parameters, index, own="", default_index=default_index)


def _format_verdict(difference: Difference, serves: str) -> str:
    from evals.measures.significance import describe_difference, describe_tie

    if difference.is_tie:
        return f"<b>It ties with {serves}</b>: {describe_tie(difference)}."
    low, high = difference.interval
    size = f"{difference.difference:+.3f}, 95% CI {low:+.3f} to {high:+.3f}; {escape(describe_difference(difference))}"
    if not difference.significant:
        clearly = "" if difference.difference < 0 else "clearly "
        return f"<b>It is not {clearly}better than {serves}</b>: {size}."
    better = "better" if difference.difference > 0 else "worse"
    return f"<b>It is clearly {better} than {serves}</b>: {size}."


def find_joint_evidence(wb: Workbench, candidate: PromotionCandidate, serving: LiveStrategy) -> str:
    """Return an HTML sentence from the newest experiment that measured a candidate and what is live."""
    from evals.experiments.catalogue import Experiments
    from evals.measures.metrics import metric_title

    wanted = make_live_strategy(candidate, serving.default_index)
    experiments = Experiments(wb)
    finished = [experiment for experiment in experiments.list() if experiment.status == "done"]
    newest = sorted(finished, key=lambda experiment: str(experiment.created_at), reverse=True)
    for experiment in newest[:MAX_EXPERIMENTS_SEARCHED]:
        if any(map(wanted.is_run, experiment.cells)) and any(map(serving.is_run, experiment.cells)):
            results = [result for result in experiments.results(experiment.id) if result.run is not None]
            run = next((result for result in results if wanted.is_run(result.cell)), None)
            if run is not None:
                metric = experiment.metrics[0]
                ground = f"{metric_title(metric)} in {escape(experiment.title)}, scope: {escape(experiment.over)}"
                return f"{compare_with_live(results, metric, run.run_id, serving)} ({ground})"
    return (
        f"No experiment includes both it and {escape(strategy_title(serving.strategy))}, which is live. "
        "Run one in Evaluate to compare them."
    )

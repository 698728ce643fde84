"""Promotion where strategies are compared: what serves the scope, and one click to change or undo it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

import streamlit as st

from workbench.app.state.shared import indexes_of_run
from workbench.app.widgets.looks import escaped, mark_html, title_of
from workbench.app.widgets.notices import act
from workbench.errors import ScopeError, WorkbenchError
from workbench.retrieval.options import named
from workbench.retrieval.strategies import UNPROMOTED_TOOL_STRATEGY, check_parameters
from workbench.storage.promotions import EVERYWHERE
from workbench.types import Comparison, ParameterValue, Promotion, Scope

if TYPE_CHECKING:
    from evals.experiments.runs import Cell, CellResult
    from evals.measures.significance import Difference
    from evals.test_set import MeasuredScope
    from workbench.workbench import Workbench


@dataclass(frozen=True, slots=True)
class Serving:
    """The strategy of searches in a scope that name none; ``promotion`` None is the built-in default.

    ``own`` is the key under which the scope itself can have a promotion, "" where it can have none, for ``reason``.
    """

    promotion: Promotion | None
    strategy: str
    parameters: Mapping[str, ParameterValue]
    index: str
    own: str
    reason: str = ""
    default_index: str = ""

    @property
    def undoable(self) -> bool:
        """True where the promotion is the scope's own, not one it has from further out."""
        return self.promotion is not None and self.promotion.scope == self.own

    def is_column(self, name: str, index: str, parameters: Mapping[str, ParameterValue] | None) -> bool:
        """Tell whether a column of a comparison is what serves."""
        return self._is(named(name, None)[0], index, parameters)

    def is_run(self, cell: Cell) -> bool:
        """Tell whether a run of an experiment was made with what serves."""
        return self._is(cell.strategy, cell.index or self.default_index, cell.parameters)

    def _is(self, strategy: str, index: str, parameters: Mapping[str, ParameterValue] | None) -> bool:
        same = (strategy, index) == (self.strategy, self.index)
        return same and check_parameters(strategy, parameters) == dict(self.parameters)


def serving_in(wb: Workbench, scope: Scope) -> Serving:
    """Return what serves a scope. Raises ScopeError where it names what does not exist."""
    promotions = wb.promotions
    promotion, own, reason = promotions.serving(scope), "", ""
    if promotion is not None:  # again, with its title
        promotion = next((current for current in promotions.current() if current.scope == promotion.scope), promotion)
    try:
        own = promotions.key(scope)
    except ScopeError as error:
        reason = str(error)
    strategy = promotion.strategy if promotion else promotions.built_in
    parameters = check_parameters(strategy, promotion.parameters if promotion else None)
    default = next((index.name for index in indexes_of_run(wb) if index.is_default), "")
    return Serving(promotion, strategy, parameters, (promotion and promotion.index) or default, own, reason, default)


def serving_columns(
    serving: Serving, comparison: Comparison, parameters: Mapping[str, Mapping[str, ParameterValue]]
) -> list[str]:
    """Return the columns that show what serves."""
    return [
        name
        for name, result in comparison.strategies.items()
        if serving.is_column(name, result.index, parameters.get(name, parameters.get(result.strategy)))
    ]


@dataclass(frozen=True, slots=True)
class PromotionCandidate:
    """A promotion that a person wants: a strategy with its parameters and index, and the note that is kept with it."""

    strategy: str
    parameters: Mapping[str, ParameterValue]
    index: str | None
    note: str = ""


@dataclass(frozen=True, slots=True)
class PromotionPlace:
    """A scope that a promotion may be for; ``note`` is said when it is chosen, such as that another was measured."""

    scope: Scope
    title: str
    note: str = ""


@st.dialog("Promote")
def promote_dialog(
    wb: Workbench,
    candidate: PromotionCandidate,
    places: Sequence[PromotionPlace],
    evidence: Sequence[str] = (),
) -> None:
    """Ask where a candidate is to serve from now on.

    Args:
        places: At least one; the first is chosen to begin with.
        evidence: Sentences of HTML above the question.
    """
    settings = [f"{name.replace('_', ' ')} {value}" for name, value in candidate.parameters.items()]
    settings += [f"index {candidate.index}"] if candidate.index else []
    title = f"{mark_html(candidate.strategy)} <b>{escape(title_of(candidate.strategy))}</b>"
    st.html(f"<p>{title} {escape(' · '.join(settings))}</p>" + "".join(f"<p>{line}</p>" for line in evidence))
    chosen = places[st.radio("It serves", range(len(places)), format_func=lambda at: escaped(places[at].title))]
    if chosen.note:
        st.warning(escaped(chosen.note))
    st.caption(
        "Search, the MCP tools and Python use it from then on where they name no strategy; one click on Compare "
        "undoes it."
    )
    if st.button("Promote", type="primary", key="confirm_promote"):
        act(lambda: _promoted(wb, candidate, chosen.scope))


def places_of_bar(wb: Workbench, scope: Scope) -> list[PromotionPlace]:
    """Return the scopes a promotion may be for: the one chosen in the bar, if it can have one, and everything."""
    everywhere = PromotionPlace(Scope(), "Everywhere")
    if promotion_key(wb, scope) in (None, EVERYWHERE):
        return [everywhere]
    return [PromotionPlace(scope, "In the scope chosen above"), everywhere]


def places_of_measured(wb: Workbench, measured: MeasuredScope | None, chosen: Scope) -> list[PromotionPlace]:
    """Return the scopes a promotion may be for: the one that was measured first, then those that were not.

    Args:
        measured: The scope of the experiment; None if it measured a corpus of its own.
        chosen: The scope of the bar.
    """
    from evals.test_set import EVERYTHING, OWN_CORPUS

    key = None if measured is None else promotion_key(wb, measured.scope)
    was = OWN_CORPUS if measured is None else measured.text
    note = f"This run was measured over {was}, not over what you chose here: its figures may not hold there."
    if measured is not None and key is None:
        note = f"This run was measured over {was}, for which no promotion is possible: it would serve other documents."
    others: list[PromotionPlace] = []
    if promotion_key(wb, chosen) not in (None, EVERYWHERE, key):
        others.append(PromotionPlace(chosen, "In the scope chosen above", note))
    if key == EVERYWHERE:
        return [PromotionPlace(Scope(), f"Everywhere ({EVERYTHING.text}), as it was measured"), *others]
    others.append(PromotionPlace(Scope(), "Everywhere", note))
    if measured is None or key is None:
        return others[::-1]
    return [PromotionPlace(measured.scope, f"In the scope that was measured: {was}"), *others]


def promotion_key(wb: Workbench, scope: Scope) -> str | None:
    """Return the key of a scope's own promotions; None if it cannot have any, or names something deleted."""
    try:
        return wb.promotions.key(scope)
    except ScopeError:
        return None


def _promoted(wb: Workbench, candidate: PromotionCandidate, scope: Scope) -> str:
    promotion = wb.promotions.promote(
        candidate.strategy,
        scope=scope,
        parameters=candidate.parameters,
        index=candidate.index,
        note=candidate.note,
    )
    return f"{title_of(promotion.strategy)} serves now, as version {promotion.version}: here, in Python and over MCP."


def serving_line(wb: Workbench, serving: Serving, scope: Scope) -> None:
    """Show what serves and since when, with the way back."""
    with st.container(key="servingline", horizontal=True, gap="small", vertical_alignment="center"):
        st.html(f'<p class="wb-serving">{serving_html(serving)}</p>', width="content")
        if serving.promotion is not None and serving.undoable:
            arguments = (wb, scope, serving.promotion.version)
            st.button("Undo", key="undo_promotion", type="tertiary", on_click=_undo, args=arguments)


def serving_html(serving: Serving) -> str:
    """Return the sentence on what serves, as HTML; every text is escaped."""
    if serving.promotion is not None:
        return promotion_html(serving.promotion)
    return (
        f"<b>{escape(title_of(serving.strategy))}</b> serves searches that name no strategy: the built-in default. The "
        f"MCP tool search_knowledge_base answers with <b>{escape(title_of(UNPROMOTED_TOOL_STRATEGY))}</b> until one is "
        "promoted."
    )


def promotion_html(promotion: Promotion) -> str:
    """Return what a promotion lets serve, where and since when, as HTML; every text is escaped."""
    kind = promotion.scope.partition(":")[0]
    place = "everywhere" if kind == "everywhere" else f"the {kind} <b>{escape(promotion.scope_title)}</b>"
    since = f"{promotion.promoted_at.astimezone():%-d %b %Y, %H:%M}" if promotion.promoted_at else "–"
    defaults = check_parameters(promotion.strategy, None)
    facts = [
        f"<b>{escape(title_of(promotion.strategy))}</b> serves {place}",
        f"since {since}",
        f"version {promotion.version}",
        *([f"index {escape(promotion.index)}"] if promotion.index else []),
        *(
            escape(f"{key} {value}")
            for key, value in promotion.parameters.items()
            if key in defaults and value != defaults[key]
        ),
    ]
    return " · ".join(facts)


def _undo(wb: Workbench, scope: Scope, version: int) -> None:
    """Take back that version; a second click finds another one and leaves it."""
    try:
        promotion = wb.promotions.serving(scope)
        if promotion is not None and (promotion.scope, promotion.version) == (wb.promotions.key(scope), version):
            wb.promotions.undo(scope)
    except WorkbenchError as error:
        st.toast(escaped(str(error)))


# --- The evidence for a promotion: whether an experiment's paired test tells the candidate from what serves now ---

LOOKED_AT = 20  # newest experiments in which a candidate and what serves may have been measured together


def beside_serving(results: Sequence[CellResult], metric: str, run_id: str, serving: Serving) -> str:
    """Return a sentence of HTML on a run against what serves, by the paired test of an experiment's results."""
    from evals.experiments.leaderboard import against

    measured = [result for result in results if result.run is not None]
    serves = f"{escape(title_of(serving.strategy))}, which serves now"
    reference = next((result for result in measured if serving.is_run(result.cell)), None)
    if reference is None:
        return f"This experiment did not measure {serves}, so it does not say whether this run is better."
    if reference.run_id == run_id:
        return "It serves now."
    differences = against(measured, metric, reference.run_id)
    clear = any(one.significant and one.difference > 0 for one in differences.values())
    return _verdict(differences[run_id], serves) + ("" if clear else " Nothing in this experiment is clearly better.")


def serving_of(candidate: PromotionCandidate, default_index: str) -> Serving:
    """Return what would serve if a candidate were promoted."""
    parameters = check_parameters(candidate.strategy, candidate.parameters)
    index = candidate.index or default_index
    return Serving(None, candidate.strategy, parameters, index, own="", default_index=default_index)


def _verdict(difference: Difference, serves: str) -> str:
    from evals.measures.significance import equal_everywhere, sentence

    if difference.is_tie:
        return f"<b>It ties with {serves}</b>: {equal_everywhere(difference)}."
    low, high = difference.interval
    size = f"{difference.difference:+.3f}, 95 % {low:+.3f} to {high:+.3f}; {escape(sentence(difference))}"
    if not difference.significant:
        clearly = "" if difference.difference < 0 else "clearly "
        return f"<b>It is not {clearly}better than {serves}</b>: {size}."
    better = "better" if difference.difference > 0 else "worse"
    return f"<b>It is clearly {better} than {serves}</b>: {size}."


def measured_together(wb: Workbench, candidate: PromotionCandidate, serving: Serving) -> str:
    """Return a sentence of HTML from the newest experiment that measured a candidate and what serves."""
    from evals.experiments.catalogue import Experiments
    from evals.measures.metrics import metric_title

    wanted = serving_of(candidate, serving.default_index)
    experiments = Experiments(wb)
    finished = [experiment for experiment in experiments.list() if experiment.status == "done"]
    newest = sorted(finished, key=lambda experiment: str(experiment.created_at), reverse=True)
    for experiment in newest[:LOOKED_AT]:
        if any(map(wanted.is_run, experiment.cells)) and any(map(serving.is_run, experiment.cells)):
            results = [result for result in experiments.results(experiment.id) if result.run is not None]
            run = next((result for result in results if wanted.is_run(result.cell)), None)
            if run is not None:
                metric = experiment.metrics[0]
                ground = f"{metric_title(metric)} in {escape(experiment.title)}, over {escape(experiment.over)}"
                return f"{beside_serving(results, metric, run.run_id, serving)} ({ground}.)"
    return (
        f"No experiment has measured it beside {escape(title_of(serving.strategy))}, which serves now; Evaluate "
        "can tell whether it is better."
    )

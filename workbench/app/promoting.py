"""Promotion where strategies are compared: what serves the scope, and one click to change or undo it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

import streamlit as st

from workbench.app.board_data import title_of
from workbench.errors import ScopeError, WorkbenchError
from workbench.retrieval.strategies import check_parameters
from workbench.services.search import named
from workbench.types import Comparison, Promotion, Scope

if TYPE_CHECKING:
    from evals.plan import Cell
    from workbench.workbench import Workbench


@dataclass(frozen=True, slots=True)
class Serving:
    """What a search in the scope uses when it names no strategy; ``promotion`` None is the built-in default.

    ``own`` is the key under which the scope itself can have a promotion, "" where it can have none, for ``reason``.
    """

    promotion: Promotion | None
    strategy: str
    parameters: Mapping[str, Any]
    index: str
    own: str
    reason: str = ""
    default_index: str = ""

    @property
    def undoable(self) -> bool:
        """True where the promotion is the scope's own, not one it has from further out."""
        return self.promotion is not None and self.promotion.scope == self.own

    def is_column(self, name: str, index: str, parameters: Mapping[str, Any] | None) -> bool:
        """Tell whether a column of a comparison is what serves."""
        return self._is(named(name, None)[0], index, parameters)

    def is_run(self, cell: Cell) -> bool:
        """Tell whether a run of an experiment was made with what serves."""
        return self._is(cell.strategy, cell.index or self.default_index, cell.parameters)

    def _is(self, strategy: str, index: str, parameters: Mapping[str, Any] | None) -> bool:
        same = (strategy, index) == (self.strategy, self.index)
        return same and check_parameters(strategy, parameters) == dict(self.parameters)


def serving_in(workbench: Workbench, scope: Scope) -> Serving:
    """Return what serves a scope. Raises ScopeError where it names what does not exist."""
    promotions = workbench.promotions
    found, own, reason = promotions.serving(scope), "", ""
    if found is not None:  # again, with its title
        found = next((one for one in promotions.current() if one.scope == found.scope), found)
    try:
        own = promotions.key(scope)
    except ScopeError as error:
        reason = str(error)
    strategy = found.strategy if found else promotions.built_in
    parameters = check_parameters(strategy, found.parameters if found else None)
    default = next((index.name for index in workbench.indexes.list() if index.is_default), "")
    return Serving(found, strategy, parameters, (found and found.index) or default, own, reason, default)


def serving_columns(serving: Serving, comparison: Comparison, parameters: Mapping[str, Any]) -> list[str]:
    """Return the columns that show what serves."""
    return [
        name
        for name, result in comparison.strategies.items()
        if serving.is_column(name, result.index, parameters.get(name, parameters.get(result.strategy)))
    ]


def promote(workbench: Workbench, scope: Scope, name: str, index: str | None, parameters: Mapping[str, Any]) -> str:
    """Let a column serve the scope from now on; returns the sentence that says so."""
    strategy, own_index = named(name, None)
    given = parameters.get(name, parameters.get(strategy))
    made = workbench.promotions.promote(strategy, scope=scope, parameters=given, index=own_index or index)
    return f"{title_of(strategy)} serves now, as version {made.version}: here, in Python and over MCP."


def serving_line(workbench: Workbench, serving: Serving, scope: Scope) -> None:
    """Show what serves and since when, with the way back."""
    with st.container(key="servingline", horizontal=True, gap="small", vertical_alignment="center"):
        st.html(f'<p class="wb-serving">{serving_html(serving)}</p>', width="content")
        if serving.promotion is not None and serving.undoable:
            arguments = (workbench, scope, serving.promotion.version)
            st.button("Undo", key="undo_promotion", type="tertiary", on_click=_undo, args=arguments)


def serving_html(serving: Serving) -> str:
    """Return the sentence on what serves, as HTML; every text is escaped."""
    if serving.promotion is not None:
        return promotion_html(serving.promotion)
    return f"<b>{escape(title_of(serving.strategy))}</b> serves searches that name no strategy: the built-in default."


def promotion_html(made: Promotion) -> str:
    """Return what a promotion lets serve, where and since when, as HTML; every text is escaped."""
    kind = made.scope.partition(":")[0]
    place = "everywhere" if kind == "everywhere" else f"the {kind} <b>{escape(made.scope_title)}</b>"
    since = f"{made.promoted_at.astimezone():%-d %b %Y, %H:%M}" if made.promoted_at else "–"
    defaults = check_parameters(made.strategy, None)
    facts = [
        f"<b>{escape(title_of(made.strategy))}</b> serves {place}",
        f"since {since}",
        f"version {made.version}",
        *([f"index {escape(made.index)}"] if made.index else []),
        *(
            escape(f"{key} {value}")
            for key, value in made.parameters.items()
            if key in defaults and value != defaults[key]
        ),
    ]
    return " · ".join(facts)


def _undo(workbench: Workbench, scope: Scope, version: int) -> None:
    """Take back that version; a second click finds another one and leaves it."""
    try:
        found = workbench.promotions.serving(scope)
        if found is not None and (found.scope, found.version) == (workbench.promotions.key(scope), version):
            workbench.promotions.undo(scope)
    except WorkbenchError as error:
        st.toast(str(error))

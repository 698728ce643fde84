"""The strategies that serve agents which name none: the head of the Connect page, in the words of Compare."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import streamlit as st

from workbench.app.widgets.names import title_of
from workbench.app.widgets.promoting import promotion_html
from workbench.sizes import counted
from workbench.storage.promotions import EVERYWHERE
from workbench.types import Promotion

if TYPE_CHECKING:
    from workbench.workbench import Workbench

LISTED = 3  # promotions for narrower scopes that are shown at once; the rest unfolds


def serving_list(workbench: Workbench) -> None:
    """Show the strategy that serves everywhere, and the scopes in which another one does."""
    rows = [f'<p class="wb-serving">{line}</p>' for line in serving_lines(workbench)]
    listed, rest = rows[: LISTED + 1], rows[LISTED + 1 :]
    more = f"<details><summary>{counted(len(rest), 'more scope')}</summary>{''.join(rest)}</details>" if rest else ""
    st.html(f'<div class="wb-servings">{"".join(listed)}{more}</div>')


def serving_lines(workbench: Workbench) -> list[str]:
    """Return the strategy that serves everywhere, then those of narrower scopes, as HTML; every text is escaped."""
    by_scope = {promotion.scope: promotion for promotion in workbench.promotions.current()}
    default = next((index.name for index in workbench.indexes.list() if index.is_default), "")
    everywhere = by_scope.pop(EVERYWHERE, None)
    if everywhere is not None:
        first_line = f"For agents that name no strategy, {_promoted(everywhere, default)}"
    else:
        first_line = f"Nothing is promoted{' everywhere' if by_scope else ''}: {_built_in(workbench, default)}"
    return [
        f'{first_line} · change it in <a href="./">Compare</a> or <a href="evaluate">Evaluate</a>',
        *(
            f'{_promoted(promotion, default)} · <a href="./?{escape(query_of(workbench, promotion))}">Compare there</a>'
            for promotion in by_scope.values()
        ),
    ]


def _promoted(promotion: Promotion, default: str) -> str:
    return promotion_html(promotion) + ("" if promotion.index else f" · index {escape(default)}, the default one")


def _built_in(workbench: Workbench, default: str) -> str:
    from mcp_app.tools.knowledge.search import DEFAULT_SEARCH_TYPE

    strategy, own = title_of(workbench.promotions.built_in), title_of(DEFAULT_SEARCH_TYPE)
    return (
        f"agents that name no strategy get the built-in default, <b>{escape(strategy)}</b> "
        f"(<b>{escape(own)}</b> in search_knowledge_base) · index {escape(default)}, the default one"
    )


def query_of(workbench: Workbench, promotion: Promotion) -> str:
    """Return a promotion's scope as an address names it."""
    kind, _, key = promotion.scope.partition(":")
    if kind != "folder":
        return urlencode({kind: key})
    folders = {
        folder.id: {"project": project.id, "folder": folder.name}
        for project in workbench.projects.list()
        for folder in workbench.projects.folders(project.id)
    }
    return urlencode(folders.get(key, {}))

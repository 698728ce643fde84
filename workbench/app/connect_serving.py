"""What serves agents that name no strategy: the head of the Connect page, in the words of Compare."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import streamlit as st

from workbench.app.board_data import title_of
from workbench.app.labels import counted
from workbench.app.promoting import promotion_html
from workbench.storage.promotions import EVERYWHERE
from workbench.types import Promotion

if TYPE_CHECKING:
    from workbench.workbench import Workbench

LISTED = 3  # promotions for narrower scopes that are shown at once; the rest unfolds


def serving_list(workbench: Workbench) -> None:
    """Show what serves everywhere, and the scopes in which something else does."""
    rows = [f'<p class="wb-serving">{line}</p>' for line in serving_lines(workbench)]
    shown, rest = rows[: LISTED + 1], rows[LISTED + 1 :]
    more = f"<details><summary>{counted(len(rest), 'more scope')}</summary>{''.join(rest)}</details>" if rest else ""
    st.html(f'<div class="wb-servings">{"".join(shown)}{more}</div>')


def serving_lines(workbench: Workbench) -> list[str]:
    """Return as HTML what serves everywhere, then what serves narrower scopes; every text is escaped."""
    made = {promotion.scope: promotion for promotion in workbench.promotions.current()}
    default = next((index.name for index in workbench.indexes.list() if index.is_default), "")
    everywhere = made.pop(EVERYWHERE, None)
    if everywhere is not None:
        said = f"For agents that name no strategy, {_promoted(everywhere, default)}"
    else:
        said = f"Nothing is promoted{' everywhere' if made else ''}: {_built_in(workbench, default)}"
    return [
        f'{said} · change it in <a href="./">Compare</a> or <a href="evaluate">Evaluate</a>',
        *(
            f'{_promoted(promotion, default)} · <a href="./?{escape(query_of(workbench, promotion))}">Compare there</a>'
            for promotion in made.values()
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
    """Return how a promotion's scope stands in an address."""
    kind, _, key = promotion.scope.partition(":")
    if kind != "folder":
        return urlencode({kind: key})
    folders = {
        folder.id: {"project": project.id, "folder": folder.name}
        for project in workbench.projects.list()
        for folder in workbench.projects.folders(project.id)
    }
    return urlencode(folders.get(key, {}))

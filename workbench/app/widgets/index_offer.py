"""The offer of an index for other languages as a person sees it, with the button that takes it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from workbench.app.widgets.notices import act
from workbench.models.registry import BUILT_IN
from workbench.services.indexes import NOT_INSTALLED, OFFERED

if TYPE_CHECKING:
    from workbench.workbench import Workbench


def language_offer(workbench: Workbench) -> None:
    """Offer the index where it would help and there is none yet; say so where its package is missing."""
    offer = workbench.indexes.language_offer()
    if offer is None:
        return
    with st.container(key="language_offer"):
        st.markdown(offer.sentence)
        if not BUILT_IN[OFFERED].is_installed:
            st.caption(NOT_INSTALLED)
        elif st.button("Build an index for these languages", icon=":material/translate:", key="index_languages"):
            act(lambda: _build(workbench))


def _build(workbench: Workbench) -> str:
    taken = {index.name: index for index in workbench.indexes.list()}
    chunker = next(index.chunker for index in taken.values() if index.is_default)
    name = next(name for name in (OFFERED, *(f"{OFFERED}_{n}" for n in range(2, 100))) if name not in taken)
    index = workbench.indexes.create(name, chunker=chunker, embedding_model=OFFERED)
    workbench.jobs.enqueue_index_build(index.name)
    return f"Made the index {index.name}; it is being built, and searches go on meanwhile."

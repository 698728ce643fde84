"""The language of a source's documents, as a person corrects it where their texts misled."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from workbench.app.widgets.notices import act
from workbench.languages import AUTO, LANGUAGES, STEMMED_AT_ONCE, language_title
from workbench.sizes import counted
from workbench.types import Source

if TYPE_CHECKING:
    from workbench.workbench import Workbench


@st.dialog("Language of a source")
def source_language(workbench: Workbench, source: Source) -> None:
    """Ask for the language of a source's documents, and stem their words anew."""
    now = "each text tells its own" if source.language == AUTO else f"{_title(source.language)}, for every document"
    st.markdown(
        "Each document's language is told from its text. Where that went wrong, choose the language of all documents "
        "of this source, later ones too: their words are then stemmed anew in every index, which takes as long as "
        f"adding them did. Now: {now}."
    )
    language = st.selectbox(
        "Language",
        (AUTO, *LANGUAGES),
        index=None,
        format_func=_title,
        placeholder="Choose a language",
        key="source_language",
    )

    def change() -> str:
        is_quick = source.passages_count <= STEMMED_AT_ONCE
        workbench.sources.update(source.id, language=language, build=is_quick)
        documents = counted(source.documents_count, "document")
        if not is_quick:
            workbench.jobs.enqueue_stemming()
            return f"The words of {documents} are being stemmed anew; the work is shown in the tray."
        if language == AUTO:
            return f"The words of {documents} are stemmed as each text tells now."
        return f"The words of {documents} are stemmed as {_title(language or '')} now."

    if st.button("Set the language", type="primary", disabled=language is None):
        with st.spinner("Stemming the words anew"):
            act(change)


def _title(language: str) -> str:
    return "Told by each text" if language == AUTO else language_title(language) or "None: words as they are"

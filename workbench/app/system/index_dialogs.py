"""The dialogs that make and drop an index."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import streamlit as st

from workbench.app.system.parameter_input import parameter_input
from workbench.app.widgets.labels import escaped
from workbench.app.widgets.notices import act
from workbench.ingestion.chunking import CHUNKERS, DEFAULT_CHUNKER
from workbench.models.registry import FORMS, MODELS
from workbench.sizes import counted
from workbench.types import Index

if TYPE_CHECKING:
    from workbench.workbench import Workbench


@st.dialog("New index", width="large")
def new_index(workbench: Workbench) -> None:
    """Ask how documents are to be cut and embedded, then let a worker fill the index from what is stored."""
    name = st.text_input("Name", placeholder="lower-case letters, digits and _", max_chars=40, key="index_name")
    chunkers = list(CHUNKERS)
    chunker = st.selectbox("Chunker", chunkers, chunkers.index(DEFAULT_CHUNKER), key="index_chunker")
    st.caption(CHUNKERS[chunker].why)
    options = {}
    parameters = CHUNKERS[chunker].parameters
    for column, parameter in zip(st.columns(len(parameters)), parameters, strict=True):
        with column:
            options[parameter.name] = parameter_input(parameter, f"index_{chunker}_{parameter.name}")
    models = [workbench.settings.embedding_model, *(index.embedding_model for index in workbench.indexes.list())]
    models += [row.name for row in MODELS if not row.for_tests]
    model = st.selectbox(
        "Embedding model", list(dict.fromkeys(models)), accept_new_options=True, key="index_model",
        help=f"{'; '.join(f'{row.name}: {row.title}' for row in MODELS)}. Others by name: {', '.join(FORMS)}.",
    )  # fmt: skip
    documents = workbench.documents.count()
    st.caption(f"{counted(documents, 'document')} to cut into passages; known passages are not embedded again.")
    if st.button("Create and build", type="primary", key="index_create"):
        act(lambda: _create(workbench, name.strip(), chunker, options, model))


def _create(workbench: Workbench, name: str, chunker: str, options: dict[str, Any], model: str | None) -> str:
    index: Index = workbench.indexes.create(name, chunker=chunker, options=options, embedding_model=model)
    workbench.jobs.enqueue_index_build(index.name)
    return f"Made the index {index.name}; it is being built, and searches go on meanwhile."


@st.dialog("Drop index")
def drop_index(workbench: Workbench, name: str) -> None:
    """Ask before an index goes, saying what goes with it."""
    index = workbench.indexes.get(name)
    st.markdown(
        f"This drops **{escaped(name)}** with its {counted(index.passages_count, 'passage')}. Documents stay, and it "
        "can be built again; strategies promoted with it fall back to the default index."
    )
    with st.container(horizontal=True):
        if st.button(f"Drop {escaped(name)}", type="primary", key="confirm_drop"):
            act(lambda: _drop(workbench, name))
        if st.button("Keep", key="keep_index"):
            st.rerun()


def _drop(workbench: Workbench, name: str) -> str:
    workbench.indexes.delete(name)
    return f"Dropped the index {name}; the documents stay."

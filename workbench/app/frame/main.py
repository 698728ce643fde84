"""The script Streamlit runs for every visitor: the frame around the page that the address names."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from workbench.app import address
from workbench.app.assets import STYLESHEET, component
from workbench.app.engine import ENGINE
from workbench.app.navigation import pages
from workbench.app.scope_bar import scope_bar
from workbench.app.states import failed, opening
from workbench.app.work_view import work_bar
from workbench.errors import WorkbenchError

PATIENCE = 0.2  # seconds to wait for a workbench that is nearly open, before a skeleton is painted


def main() -> None:
    """Show the navigation, the scope bar, running work and the page."""
    icon = Path(__file__).parent / "static" / "icon.svg"
    st.set_page_config(page_title="RAG Workbench", page_icon=str(icon), layout="wide")
    st.html(STYLESHEET)
    st.logo(str(icon), size="medium")
    current = st.navigation(pages(), position="top")
    address.arrive(current.title)
    try:
        workbench = ENGINE.wait(PATIENCE)
        if workbench is None:
            opening()
            return
        scope_bar(workbench)
        work_bar(current.title)
        current.run()
    except WorkbenchError as error:
        failed(error)
    address.remember()
    component("shortcuts")(key="shortcuts")


main()

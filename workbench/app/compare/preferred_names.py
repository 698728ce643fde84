"""The names in the question, as chips: a press takes one out of the preference, another one brings it back."""

from __future__ import annotations

from hashlib import blake2b

import streamlit as st

from workbench.app.state import address
from workbench.app.widgets.labels import escaped
from workbench.types import Comparison, Scope

MAX_NAME_CHARS = 48  # characters of a name that are shown


def preferred_names(comparison: Comparison, scope: Scope) -> None:
    """Show what is preferred and what a person took out; nothing where the question names no document."""
    names = comparison.preferring
    if not names and not scope.ignored_names:
        return
    only = scope.names == "only"
    with st.container(key="preferred", horizontal=True, gap="small", vertical_alignment="center"):
        st.markdown("Only in" if only and names else "Preferring" if names else "Not preferring", width="content")
        for name in names:
            documents = "1 document" if name.documents == 1 else f"{name.documents:,} documents"
            st.button(
                escaped(name.text, MAX_NAME_CHARS),
                key=_key("chip", name.text),
                icon=":material/close:",
                icon_position="right",
                help=f"{name.kind.capitalize()} of {documents}. Press to search without it.",
                on_click=_ignore,
                args=(name.text,),
            )
        for text in scope.ignored_names:
            st.button(
                f"~~{escaped(text, MAX_NAME_CHARS)}~~",
                key=_key("chipback", text),
                icon=":material/undo:",
                icon_position="right",
                type="tertiary",
                help="Press to prefer it again.",
                on_click=_bring_back,
                args=(text,),
            )
        if names:
            st.button(
                "Search all documents" if only else "Search only these",
                key="only_named",
                type="tertiary",
                on_click=address.put,
                kwargs={"names": None if only else "only"},
            )


def _ignore(name: str) -> None:
    address.put(without=[*address.get_all("without"), name])


def _bring_back(name: str) -> None:
    address.put(without=[other for other in address.get_all("without") if other != name])


def _key(kind: str, text: str) -> str:
    return f"{kind}_{blake2b(text.encode(), digest_size=6).hexdigest()}"

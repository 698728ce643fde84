"""The address bar as the state of a page: what one could want to share or come back to stands in it.

Scope and index apply everywhere and follow from page to page; everything else belongs to its page, which finds it
again when one comes back.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import streamlit as st

EVERYWHERE = ("project", "folder", "tag", "source", "index")
_MEMORY = "address_memory"


def get(name: str, default: str = "") -> str:
    """Return one value of the address."""
    return str(st.query_params.get(name, default))


def get_all(name: str) -> tuple[str, ...]:
    """Return a repeated value of the address, in order, each once."""
    return tuple(dict.fromkeys(value for value in st.query_params.get_all(name) if value))


def put(**changes: str | Iterable[str] | None) -> None:
    """Change values of the address, one step back in the browser; None, "" and empty lists take a name out."""
    now = {name: st.query_params.get_all(name) for name in st.query_params}
    wanted = now | {name: [value] if isinstance(value, str) else list(value or ()) for name, value in changes.items()}
    kept = {name: [value for value in values if value] for name, values in wanted.items()}
    kept = {name: values for name, values in kept.items() if values or (name in now and name not in changes)}
    if kept != now:
        st.query_params.from_dict(kept)


def arrive(page: str) -> None:
    """Restore what the navigation bar dropped: the scope from the last page, the rest from the last visit here.

    An address that says something itself (a shared link) wins over what is remembered.
    """
    memory: dict[str, Any] = st.session_state.setdefault(_MEMORY, {"page": None, "pages": {}, "everywhere": {}})
    if memory["page"] not in (None, page):
        for name, values in memory["everywhere"].items():
            if name not in st.query_params:
                put(**{name: values})
        own = [name for name in st.query_params if name not in EVERYWHERE]
        if not own:
            put(**memory["pages"].get(page, {}))
    memory["page"] = page


def remember() -> None:
    """Keep the address of the page that was just shown."""
    memory = st.session_state[_MEMORY]
    names = list(st.query_params)
    memory["everywhere"] = {name: st.query_params.get_all(name) for name in names if name in EVERYWHERE}
    memory["pages"][memory["page"]] = {
        name: st.query_params.get_all(name) for name in names if name not in (*EVERYWHERE, "doc", "at")
    }

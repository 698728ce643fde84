"""The address bar as the state of a page: everything one may want to share or to come back to.

Scope and index apply everywhere and follow from page to page; everything else belongs to its page, which finds it
again when one comes back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import streamlit as st

EVERYWHERE = ("kind", "project", "folder", "tag", "source", "language", "index")
_OPENED = ("doc", "at", "why", "by", "missed", "form", "part")  # drawers over a page, closed when one comes back to it
_MEMORY = "address_memory"


def get(name: str, default: str = "") -> str:
    """Return one value of the address."""
    return str(st.query_params.get(name, default))


def get_all(name: str) -> tuple[str, ...]:
    """Return a repeated value of the address, in order, each once."""
    return tuple(dict.fromkeys(value for value in st.query_params.get_all(name) if value))


def put(**changes: str | Iterable[str] | None) -> None:
    """Change values of the address, one step back in the browser; None, "" and empty lists take a name out."""
    _write(changes)
    if _MEMORY in st.session_state:
        remember()  # already here: who goes to another page at once ends this run before its last line


def _write(changes: Mapping[str, str | Iterable[str] | None]) -> None:
    before = {name: st.query_params.get_all(name) for name in st.query_params}
    wanted = before | {
        name: [value] if isinstance(value, str) else list(value or ()) for name, value in changes.items()
    }
    after = {name: [value for value in values if value] for name, values in wanted.items()}
    after = {name: values for name, values in after.items() if values or (name in before and name not in changes)}
    if after != before:
        st.query_params.from_dict(after)


def arrive(page: str) -> None:
    """Restore what the navigation bar dropped: the scope from the last page, the rest from the last visit here.

    An address that says something itself (a shared link) wins over what is remembered.
    """
    memory = st.session_state.setdefault(_MEMORY, {"page": None, "pages": {}, "everywhere": {}})
    if memory["page"] not in (None, page):
        for name, values in memory["everywhere"].items():
            if name not in st.query_params:
                _write({name: values})
        own = [name for name in st.query_params if name not in EVERYWHERE]
        if not own:
            _write(memory["pages"].get(page, {}))
    memory["page"] = page


def leave_for(page: str, **values: str) -> None:
    """Let a page find these values when it is shown next, in place of those of its last visit."""
    memory = st.session_state.get(_MEMORY)
    if memory is not None:
        memory["pages"][page] = {name: [value] for name, value in values.items()}


def remember() -> None:
    """Keep the address of the page that was just shown."""
    memory = st.session_state[_MEMORY]
    names = list(st.query_params)
    memory["everywhere"] = {name: st.query_params.get_all(name) for name in names if name in EVERYWHERE}
    memory["pages"][memory["page"]] = {
        name: st.query_params.get_all(name) for name in names if name not in (*EVERYWHERE, *_OPENED)
    }


# --- The path that the app is served under, behind a reverse proxy ---


def rooted(path: str) -> str:
    """Return the address of a path of the app, which begins with a slash, on its own host."""
    base = str(st.get_option("server.baseUrlPath") or "").strip("/")
    return f"/{base}{path}" if base else path

"""The URL as the state of a page, so that it can be shared and revisited.

Scope and index are kept from page to page; other values belong to a page and are restored on return.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import streamlit as st

SCOPE_KEYS = ("kind", "project", "folder", "tag", "source", "language", "metadata", "since", "until", "index")
# Of the inspector and the reader, which are closed on return to a page.
INSPECTOR_KEYS = ("look", "doc", "at", "cut", "why", "by", "missed", "form", "part", "pane")
_MEMORY = "address_memory"
PAGES_KEY = "pages_of_the_app"  # in the session: Streamlit's page objects by name


def get(name: str, default: str = "") -> str:
    """Return a value from the URL."""
    return str(st.query_params.get(name, default))


def get_all(name: str) -> tuple[str, ...]:
    """Return the distinct values of a repeated name, in order."""
    return tuple(dict.fromkeys(value for value in st.query_params.get_all(name) if value))


def put(**changes: str | Iterable[str] | None) -> None:
    """Change values in the URL as one step in the browser's history; None, "" and empty lists remove a name."""
    _write(changes)
    if _MEMORY in st.session_state:
        remember()  # here too, because a page switch ends the run before its last line


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
    """Restore the scope from the last page, and other values from the last visit of this page.

    Values in the URL itself, such as in a shared link, take precedence.
    """
    memory = st.session_state.setdefault(_MEMORY, {"page": None, "pages": {}, "everywhere": {}})
    if memory["page"] not in (None, page):
        for name, values in memory["everywhere"].items():
            if name not in st.query_params:
                _write({name: values})
        own = [name for name in st.query_params if name not in SCOPE_KEYS]
        if not own:
            _write(memory["pages"].get(page, {}))
    memory["page"] = page


def store_for_next_visit(page: str, **values: str | list[str]) -> None:
    """Store values for another page's next visit."""
    memory = st.session_state.get(_MEMORY)
    if memory is not None:
        memory["pages"][page] = {name: value if isinstance(value, list) else [value] for name, value in values.items()}


def remember() -> None:
    """Store the URL of the current page."""
    memory = st.session_state[_MEMORY]
    names = list(st.query_params)
    memory["everywhere"] = {name: st.query_params.get_all(name) for name in names if name in SCOPE_KEYS}
    memory["pages"][memory["page"]] = {
        name: st.query_params.get_all(name) for name in names if name not in (*SCOPE_KEYS, *INSPECTOR_KEYS)
    }


# The base path, behind a reverse proxy


def add_base_path(path: str) -> str:
    """Return a path of the app, starting with a slash, below the base path."""
    base = str(st.get_option("server.baseUrlPath") or "").strip("/")
    return f"/{base}{path}" if base else path


def switch_page(name: str) -> None:
    """Go to a page; this ends the current run of the script.

    Raises:
        KeyError: There is no page with this name.
    """
    st.switch_page(st.session_state[PAGES_KEY][name])

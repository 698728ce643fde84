"""The path that the app is served under, behind a reverse proxy."""

from __future__ import annotations

import streamlit as st


def rooted(path: str) -> str:
    """Return the address of a path of the app, which begins with a slash, on its own host."""
    base = str(st.get_option("server.baseUrlPath") or "").strip("/")
    return f"/{base}{path}" if base else path

"""A described parameter as the input of its kind, for forms; (Compare's own controls keep theirs in the address)."""

from __future__ import annotations

from typing import Any

import streamlit as st

from workbench.types import Parameter


def parameter_input(parameter: Parameter, key: str) -> bool | str | int | float:
    """Draw one parameter with its range and its reason; returns the value."""
    label = parameter.name.replace("_", " ").capitalize()
    common: dict[str, Any] = {"key": key, "help": parameter.why}
    if parameter.kind == "bool":
        return st.toggle(label, bool(parameter.default), **common)
    if parameter.kind == "choice":
        return st.selectbox(label, parameter.choices, parameter.choices.index(parameter.default), **common)
    kind, low, high = (int, 0, None) if parameter.kind == "int" else (float, 0.0, None)
    bounds = {
        "min_value": low if parameter.low is None else kind(parameter.low),
        "max_value": high if parameter.high is None else kind(parameter.high),
    }
    return st.number_input(label, value=kind(parameter.default), **bounds, **common)

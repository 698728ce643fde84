"""The parts of an address that Compare does not understand: one sentence tells them, one button takes them out."""

from __future__ import annotations

from collections.abc import Iterator

import streamlit as st

from workbench.app.compare.strategy_bar import LIMITS, MOST, chosen_limit, room
from workbench.app.state import address
from workbench.app.widgets.labels import escaped
from workbench.retrieval.strategies import STRATEGIES

OWN = (
    "q", "s", "n", "set", "on", "without", "names", "answer", "judge", "doc", "at", "cut", "why", "by", "missed",
    "form", "part",
)  # fmt: skip
OF_OTHERS = ("embed", "utm_")  # Streamlit's own, and what mail and chat programs append
MAX_VALUE_CHARS = 60  # characters of a value that are repeated


def tell_odd_values() -> None:
    """Say what of the address was not understood, and what is shown instead; nothing where all was."""
    odd = list(odd_values())
    if not odd:
        return
    told = ", ".join(f"{_short(name, value)} ({why})" for name, value, why in odd)
    with st.container(key="odd_values", horizontal=True, vertical_alignment="center"):
        st.markdown(f"Not understood in the address and left out: {escaped(told, 600)}.", width="content")
        st.button("Clean the address", type="tertiary", key="clean_address", on_click=_clean)


def odd_values() -> Iterator[tuple[str, str, str]]:
    """Yield (name, value, why it has no effect) of each part of the address that changes nothing."""
    for name in st.query_params:
        if name not in (*OWN, *address.EVERYWHERE) and not name.startswith(OF_OTHERS):
            yield name, address.get(name), f"Compare has no value {name}"
    shown = address.get("n")
    if shown and shown != str(chosen_limit()):
        yield "n", shown, f"a column shows {_any_of(LIMITS)} passages; these are {chosen_limit()}"
    for item in address.get_all("set"):
        if not _is_setting(item):
            yield "set", item, "a setting is written strategy.parameter=value, and the defaults are taken"
    for name in address.get_all("s")[room() :]:
        yield "s", name, f"at most {MOST} columns stand side by side"


def _is_setting(item: str) -> bool:
    target, sign, _ = item.partition("=")
    strategy, _, name = target.partition(".")
    return (
        bool(sign) and strategy in STRATEGIES and any(known.name == name for known in STRATEGIES[strategy].parameters)
    )


def _any_of(numbers: tuple[int, ...]) -> str:
    return f"{', '.join(map(str, numbers[:-1]))} or {numbers[-1]}"


def _short(name: str, value: str) -> str:
    text = f"{name}={value}"
    return text if len(text) <= MAX_VALUE_CHARS else text[: MAX_VALUE_CHARS - 1] + "…"


def _clean() -> None:
    odd = [(name, value) for name, value, _ in odd_values()]
    address.put(**{name: [one for one in address.get_all(name) if (name, one) not in odd] for name, _ in odd})

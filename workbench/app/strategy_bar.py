"""Which strategies a page is about, and their parameters: drawn from the table of strategies, kept in the address."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import streamlit as st

from workbench.app import address
from workbench.app.board_data import title_of
from workbench.app.looks import look
from workbench.errors import InvalidInput
from workbench.retrieval.strategies import STRATEGIES
from workbench.types import Parameter

DEFAULT = ("vector", "keyword", "hybrid", "rerank")
MOST = 4
LIMITS = (5, 10, 20, 50)


def chosen_indexes() -> tuple[str, ...]:
    """Return the indexes that every strategy is asked on, side by side; none where it is the page's one index."""
    return address.get_all("on")[:MOST]


def room() -> int:
    """Return how many strategies have a place, each being a column an index."""
    return MOST // max(1, len(chosen_indexes()))


def default_strategies() -> tuple[str, ...]:
    """Return what is compared where the address names nothing: the last of the four when there is room for fewer."""
    return DEFAULT[-room() :]


def chosen_strategies() -> tuple[str, ...]:
    """Return the strategies the address names, as many as have room; by default those that show most."""
    return address.get_all("s")[: room()] or default_strategies()


def chosen_limit() -> int:
    """Return how many passages a column shows."""
    wanted = address.get("n", "10")
    return int(wanted) if wanted.isdecimal() and int(wanted) in LIMITS else 10


def chosen_parameters(strategies: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return the parameters the address sets, by strategy; values are checked where they are used."""
    found: dict[str, dict[str, Any]] = {}
    for item in address.get_all("set"):
        target, _, value = item.partition("=")
        strategy, _, name = target.partition(".")
        if strategy in strategies:
            found.setdefault(strategy, {})[name] = value
    return found


def strategy_bar(with_llm: bool, with_reranker: bool, indexes: Sequence[str]) -> tuple[str, ...]:
    """Show the strategies as pills, their parameters behind a button; returns the chosen in the table's order.

    It is drawn into the container "strategybar", beside the page's other controls.
    """
    offered = [
        name
        for name, strategy in STRATEGIES.items()
        if (with_llm or not strategy.needs_llm) and (with_reranker or not strategy.needs_reranker)
    ]
    chosen = list(chosen_strategies())
    shown = [*offered, *(name for name in chosen if name not in offered)]
    st.session_state["strategies"] = chosen
    st.html(f"<style>{_pill_marks(shown)}</style>")
    st.pills(
        "Strategies", shown, selection_mode="multi", key="strategies", format_func=title_of,
        on_change=_change, label_visibility="collapsed",
        wrap=True,
        width="stretch",
    )  # fmt: skip
    with st.popover("Settings", type="tertiary", icon=":material/tune:", key="settings_popover"):
        _settings(chosen, indexes)
    return tuple(name for name in shown if name in chosen)


def _change() -> None:
    wanted = list(st.session_state["strategies"])
    before = chosen_strategies()
    if len(wanted) > room():
        added = [name for name in wanted if name not in before][: room()]
        wanted = [*[name for name in wanted if name in before][: room() - len(added)], *added]
        st.toast(f"At most {MOST} columns side by side: {title_of(before[-1])} made room.")
    address.put(s=None if set(wanted) == set(default_strategies()) else wanted)


def _settings(chosen: Sequence[str], indexes: Sequence[str]) -> None:
    st.session_state["limit"] = chosen_limit()
    st.segmented_control("Passages in a column", LIMITS, key="limit", required=True, on_change=_change_limit)
    _index_choice(indexes)
    given = chosen_parameters(chosen)
    for name in chosen:
        if name in STRATEGIES and STRATEGIES[name].parameters:
            st.markdown(f"**:{look(name).hue}[{look(name).mark}] {title_of(name)}**")
            for parameter in STRATEGIES[name].parameters:
                _control(name, parameter, given.get(name, {}))
    if given:
        st.button("Back to the defaults", on_click=lambda: address.put(set=None), type="tertiary")


def _index_choice(indexes: Sequence[str]) -> None:
    """Offer to ask each strategy on several indexes; one index leaves nothing to choose."""
    chosen = chosen_indexes()
    shown = [*indexes, *(name for name in chosen if name not in indexes)]
    if len(shown) < 2:
        return
    st.session_state["on_indexes"] = list(chosen)
    st.multiselect(
        "Side by side on indexes", shown, key="on_indexes", max_selections=MOST, placeholder="The one chosen above",
        help="Each strategy gets a column for each of them.",
        on_change=lambda: address.put(on=st.session_state["on_indexes"]),
    )  # fmt: skip


def _change_limit() -> None:
    limit = st.session_state["limit"]
    address.put(n=None if limit == 10 else str(limit))


def _control(strategy: str, parameter: Parameter, given: dict[str, Any]) -> None:
    """Draw one parameter as the control of its kind; a value of the address that is not valid shows as the default."""
    key, label = f"set_{strategy}_{parameter.name}", parameter.name.replace("_", " ").capitalize()
    try:
        value = parameter.read(given.get(parameter.name, parameter.default))
    except InvalidInput:
        value = parameter.default
    st.session_state[key] = value
    common: dict[str, Any] = {
        "key": key, "help": parameter.why, "on_change": _set, "args": (strategy, parameter, key),
    }  # fmt: skip
    if parameter.kind == "bool":
        st.toggle(label, **common)
    elif parameter.kind == "choice":
        st.segmented_control(label, parameter.choices, required=True, **common)
    elif parameter.kind == "int":
        st.slider(label, int(parameter.low or 0), int(parameter.high or 100), **common)
    else:
        st.slider(label, float(parameter.low or 0), float(parameter.high or 1), step=0.05, **common)


def _set(strategy: str, parameter: Parameter, key: str) -> None:
    prefix, value = f"{strategy}.{parameter.name}=", st.session_state[key]
    others = [item for item in address.get_all("set") if not item.startswith(prefix)]
    address.put(set=others if value == parameter.default else [*others, f"{prefix}{value}"])


def _pill_marks(names: Sequence[str]) -> str:
    """Return the rules that put each strategy's mark, in its hue, before its name."""
    rules = []
    for place, name in enumerate(names, start=1):
        seen = look(name)
        selector = f'.st-key-strategybar [data-testid="stButtonGroup"] button:nth-of-type({place}) p::before'
        light, dark = seen.hex("light"), seen.hex("dark")
        rules.append(
            f'{selector}{{content:"{seen.mark}";color:light-dark({light},{dark});margin-right:7px;font-size:12px}}'
        )
    return "".join(rules)

"""The strategies that a page is about, with their parameters: drawn from their table, kept in the address."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

import streamlit as st

from workbench.app.state import address
from workbench.app.state.controlled import show_value
from workbench.app.state.shared import OPENING
from workbench.app.widgets.labels import escaped
from workbench.app.widgets.looks import look, mark_html
from workbench.app.widgets.names import title_of
from workbench.errors import InvalidInput
from workbench.retrieval.strategies import COMPARED, DEFAULT_STRATEGY, STRATEGIES
from workbench.types import Parameter, ParameterValue

MOST = 4
LIMITS = (5, 10, 20, 50)


def chosen_indexes() -> tuple[str, ...]:
    """Return the indexes that every strategy is asked on, side by side; none where it is the page's one index."""
    return address.get_all("on")[:MOST]


def room() -> int:
    """Return how many strategies fit: each takes one column for every index."""
    return MOST // max(1, len(chosen_indexes()))


def default_strategies() -> tuple[str, ...]:
    """Return the strategies of an address that names none: the last of the four where fewer fit."""
    return COMPARED[-room() :]


def chosen_strategies() -> tuple[str, ...]:
    """Return the strategies the address names, as many as have room; by default those that show most."""
    return address.get_all("s")[: room()] or default_strategies()


def chosen_limit() -> int:
    """Return how many passages a column shows."""
    wanted = address.get("n", "10")
    return int(wanted) if wanted.isdecimal() and int(wanted) in LIMITS else 10


def chosen_parameters(strategies: Sequence[str]) -> dict[str, dict[str, ParameterValue]]:
    """Return the parameters the address sets, by strategy; values are checked where they are used."""
    parameters: dict[str, dict[str, ParameterValue]] = {}
    for item in address.get_all("set"):
        target, _, value = item.partition("=")
        strategy, _, name = target.partition(".")
        if strategy in strategies:
            parameters.setdefault(strategy, {})[name] = value
    return parameters


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
    names = [*offered, *(name for name in chosen if name not in offered)]
    show_value("strategies", chosen, names)
    st.html(f"<style>{_pill_marks(names)}</style>")
    st.pills(
        "Strategies", names, selection_mode="multi", key="strategies",
        format_func=lambda name: escaped(title_of(name), 60),
        on_change=_change, label_visibility="collapsed",
        wrap=True,
        width="stretch",
    )  # fmt: skip
    with st.popover("Settings", type="tertiary", icon=":material/tune:", key="settings_popover"):
        _settings(chosen, indexes)
    return tuple(name for name in names if name in chosen)


def _change() -> None:
    wanted = list(st.session_state["strategies"])
    before = chosen_strategies()
    if len(wanted) > room():
        added = [name for name in wanted if name not in before][: room()]
        staying = _with_room([name for name in wanted if name in before], room() - len(added))
        dropped_titles = [escaped(title_of(name)) for name in wanted if name not in (*staying, *added)]
        wanted = [*staying, *added]
        st.toast(f"At most {MOST} columns side by side: {', '.join(dropped_titles)} made room.")
    address.put(s=None if set(wanted) == set(default_strategies()) else wanted)


def _with_room(names: Sequence[str], places: int) -> list[str]:
    """Return as many names as have a place; the last ones go first, the built-in default at the very last."""
    order = sorted(names, key=lambda name: name != DEFAULT_STRATEGY)[: max(0, places)]
    return [name for name in names if name in order]


def _settings(chosen: Sequence[str], indexes: Sequence[str]) -> None:
    show_value("limit", chosen_limit())
    st.segmented_control("Passages in a column", LIMITS, key="limit", required=True, on_change=_change_limit)
    _index_choice(indexes)
    parameters = chosen_parameters(chosen)
    for name in chosen:
        if name in STRATEGIES and STRATEGIES[name].parameters:
            st.html(f"<b>{mark_html(name)} {escape(title_of(name))}</b>")
            for parameter in STRATEGIES[name].parameters:
                _control(name, parameter, parameters.get(name, {}))
    if parameters:
        st.button("Back to the defaults", on_click=lambda: address.put(set=None), type="tertiary")


def _index_choice(indexes: Sequence[str]) -> None:
    """Offer to ask each strategy on several indexes; one index leaves nothing to choose."""
    chosen = chosen_indexes()
    names = [*indexes, *(name for name in chosen if name not in indexes)]
    if len(names) < 2:
        return
    show_value("on_indexes", list(chosen), names)
    st.multiselect(
        "Side by side on indexes", names, key="on_indexes", max_selections=MOST, placeholder="The one chosen above",
        help="Each strategy gets a column for each of them.",
        on_change=lambda: address.put(on=st.session_state["on_indexes"]),
    )  # fmt: skip


def _change_limit() -> None:
    limit = st.session_state["limit"]
    address.put(n=None if limit == 10 else str(limit))


def _control(strategy: str, parameter: Parameter, parameters: dict[str, ParameterValue]) -> None:
    """Draw one parameter as the control of its kind; a value of the address that is not valid shows as the default."""
    key, label = f"set_{strategy}_{parameter.name}", parameter.name.replace("_", " ").capitalize()
    try:
        value = parameter.read(parameters.get(parameter.name, parameter.default))
    except InvalidInput:
        value = parameter.default
    show_value(key, value)
    common: dict[str, Any] = {
        "key": key, "help": parameter.why, "on_change": _set, "args": (strategy, parameter, key),
    }  # fmt: skip
    if parameter.kind == "bool":
        st.toggle(label, **common)
    elif parameter.kind == "choice":
        st.segmented_control(label, parameter.choices, required=True, **common)
    elif parameter.kind == "name":
        names = [ranker.name for ranker in OPENING.workbench.rankers.list()]
        st.selectbox(label, names if value in names else [*names, value], **common)
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
        appearance = look(name)
        selector = f'.st-key-strategybar [data-testid="stButtonGroup"] button:nth-of-type({place}) p::before'
        light, dark = appearance.hex("light"), appearance.hex("dark")
        rules.append(
            f'{selector}{{content:"{appearance.mark}";color:light-dark({light},{dark});margin-right:4px;font-size:13px}}'
        )
    return "".join(rules)

"""The columns of a comparison: strategies, their parameters, and searches in a thread."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import streamlit as st

from workbench.app.compare.matches import Underlines, find_similar_words, place_key
from workbench.app.state import address
from workbench.app.state.shared import OPENING, show_value
from workbench.app.widgets.looks import (
    choice_title,
    escape_markdown,
    get_look,
    parameter_title,
    render_mark,
    strategy_title,
)
from workbench.errors import InvalidInput, WorkbenchError
from workbench.retrieval.strategies import COMPARED_STRATEGIES, DEFAULT_STRATEGY, STRATEGIES
from workbench.services.corpus import import_framework
from workbench.types import Comparison, Parameter, ParameterValue, Scope

if TYPE_CHECKING:
    from workbench.workbench import Workbench

# Searches and answers in a thread, so that the page stays responsive

_SESSION_KEY = "asked"
T = TypeVar("T")
SEARCH_WAIT_S = 1.0  # seconds before the page reports that it is still searching


@dataclass(slots=True)
class Pending(Generic[T]):
    """A call that is running in a thread or has ended."""

    key: Hashable  # identifies the question and its settings
    began: float = field(default_factory=time.monotonic)  # start time of the monotonic clock
    settled: threading.Event = field(default_factory=threading.Event)  # set last, when the call ends
    answer: T | None = None  # the result, if it succeeded
    error: Exception | None = None  # the failure, if any

    def run(self, call: Callable[[], T | None]) -> None:
        """Store the result of a call, or its failure."""
        try:
            import_framework()
            self.answer = call()
        except Exception as error:  # noqa: BLE001 - shown or raised again in the page's thread
            self.error = error
        finally:
            self.settled.set()


def get_or_start_search(key: Hashable, call: Callable[[], T]) -> Pending[T]:
    """Return this session's search for a key, started if necessary, after waiting up to ``SEARCH_WAIT_S`` seconds.

    Raises:
        Exception: The error of ``call``, each time the page is drawn, until ``discard_search``.
    """
    pending: Pending[T] | None = st.session_state.get(_SESSION_KEY)
    if pending is None or pending.key != key:
        pending = Pending(key)
        st.session_state[_SESSION_KEY] = pending
        threading.Thread(target=pending.run, args=(call,), name="ask", daemon=True).start()
    pending.settled.wait(max(0.0, pending.began + SEARCH_WAIT_S - time.monotonic()))
    if pending.error is not None:
        raise pending.error
    return pending


def is_searched(key: Hashable) -> bool:
    """Return whether this session has the result for a key."""
    pending: Pending[object] | None = st.session_state.get(_SESSION_KEY)
    return pending is not None and pending.key == key and pending.settled.is_set()


def discard_search() -> None:
    """Drop the search, so that it runs again."""
    st.session_state.pop(_SESSION_KEY, None)


@dataclass(frozen=True, slots=True)
class SearchSettings:
    """How a comparison searches."""

    scope: Scope
    index: str | None  # None for the default
    parameters: Mapping[str, Mapping[str, ParameterValue]]  # by strategy
    history: tuple[str, ...] = ()  # earlier turns of a test question


@dataclass(frozen=True, slots=True)
class ComparedHits:
    """A comparison and what the board adds to it."""

    comparison: Comparison  # the results of the columns that succeeded
    likes: Underlines  # words to underline, keyed by hit
    failures: Mapping[str, WorkbenchError] = field(default_factory=dict)  # errors of the columns that failed, by name
    # Markdown headers of tables that start before a hit, keyed by hit.
    headers: Mapping[str, str] = field(default_factory=dict)


def run_comparison(
    wb: Workbench, question: str, columns: Sequence[str], limit: int, asking: SearchSettings
) -> ComparedHits:
    """Search with each column's strategy; a failure of one does not affect the others.

    Raises:
        WorkbenchError: The scope does not exist, or every column fails for the same reason.
    """
    wb.requests.resolve(asking.scope)
    failures: dict[str, WorkbenchError] = {}
    try:
        comparison = _compare_columns(wb, question, columns, limit, asking)
    except WorkbenchError as error:
        failures = _find_failures(wb, question, columns, limit, asking)
        answering = [name for name in columns if name not in failures]
        if failures and not answering and len(columns) > 1 and len({str(error) for error in failures.values()}) == 1:
            raise error
        comparison = (
            _compare_columns(wb, question, answering, limit, asking) if answering else Comparison(question, {}, {})
        )
    headers = _load_table_headers(wb, comparison)
    return ComparedHits(comparison, find_similar_words(wb, comparison), failures, headers)


def _load_table_headers(wb: Workbench, comparison: Comparison) -> dict[str, str]:
    """Return the headers of tables that start before a hit, keyed by hit."""
    headers: dict[str, str] = {}
    for result in comparison.strategies.values():
        hits = [hit for hit in result if place_key(hit) not in headers and hit.metadata.get("table_header")]
        if hits:
            known = wb.answers.table_headers(hits, result.index)
            headers |= {place_key(hit): known[hit.passage_id] for hit in hits if hit.passage_id in known}
    return headers


def _compare_columns(
    wb: Workbench, question: str, columns: Sequence[str], limit: int, asking: SearchSettings
) -> Comparison:
    return wb.compare(
        question, strategies=columns, limit=limit, scope=asking.scope, index=asking.index,
        parameters=asking.parameters, history=asking.history,
    )  # fmt: skip


def _find_failures(
    wb: Workbench, question: str, columns: Sequence[str], limit: int, asking: SearchSettings
) -> dict[str, WorkbenchError]:
    """Search with each column separately, after a joint search failed, and return the errors by name."""
    errors: dict[str, WorkbenchError] = {}
    for name in columns:
        try:
            _compare_columns(wb, question, [name], limit, asking)
        except WorkbenchError as error:
            errors[name] = error
    return errors


# The passage in the inspector, kept in the URL

EXPECTED_DOCUMENT = "expected"  # instead of a passage id: only the search for an expected document


def open_why(column: str, passage_id: str = EXPECTED_DOCUMENT) -> None:
    """Open the inspector at a passage and its column."""
    address.put(look="why", why=passage_id, by=column, missed=None, pane=None)


def open_passage(opened: Mapping[str, object], cut: str) -> None:
    """Open the inspector at the document of a passage, cut into passages by the index ``cut`` ("" for the page's)."""
    place = f"{opened['start']}-{opened['end']}"
    address.put(look="document", doc=str(opened["document"]), at=place, cut=cut, form=None, part=None, pane=None)


# Chosen strategies and parameters, kept in the URL

MAX_COLUMNS = 4
LIMITS = (5, 10, 20, 50)
DEFAULT_LIMIT = 10


def read_indexes() -> tuple[str, ...]:
    """Return the indexes on which to compare each strategy; () for the page's own index."""
    return address.get_all("on")[:MAX_COLUMNS]


def max_strategies() -> int:
    """Return how many strategies fit on the page; each needs one column per index."""
    return MAX_COLUMNS // max(1, len(read_indexes()))


def default_strategies() -> tuple[str, ...]:
    """Return the default strategies, as many as fit."""
    return COMPARED_STRATEGIES[-max_strategies() :]


def read_strategies() -> tuple[str, ...]:
    """Return the strategies named in the URL, as many as fit, or the default ones."""
    return address.get_all("s")[: max_strategies()] or default_strategies()


def read_limit() -> int:
    """Return the number of passages per column."""
    return next((limit for limit in LIMITS if str(limit) == address.get("n")), DEFAULT_LIMIT)


def read_parameters(strategies: Sequence[str]) -> dict[str, dict[str, ParameterValue]]:
    """Return the parameters in the URL by strategy, not yet validated, without objects that a link could import."""
    parameters: dict[str, dict[str, ParameterValue]] = {}
    for item in address.get_all("set"):
        target, _, value = item.partition("=")
        strategy, _, name = target.partition(".")
        if strategy in strategies and not value.startswith("python:"):
            parameters.setdefault(strategy, {})[name] = value
    return parameters


def show_strategy_bar(with_llm: bool, with_reranker: bool) -> tuple[str, ...]:
    """Show the strategies as pills; return the chosen ones in table order."""
    offered = [
        name
        for name, strategy in STRATEGIES.items()
        if (with_llm or not strategy.needs_llm) and (with_reranker or not strategy.needs_reranker)
    ]
    chosen = list(read_strategies())
    names = [*offered, *(name for name in chosen if name not in offered)]
    st.html(f"<style>{_pill_css(names)}</style>")
    st.pills(
        "Strategies", names, default=show_value("strategies", chosen, names), selection_mode="multi", key="strategies",
        format_func=lambda name: escape_markdown(strategy_title(name), 60),
        on_change=_change_strategies, label_visibility="collapsed",
        wrap=True,
        width="stretch",
    )  # fmt: skip
    return tuple(name for name in names if name in chosen)


def _change_strategies() -> None:
    wanted = list(st.session_state["strategies"])
    before = read_strategies()
    if len(wanted) > max_strategies():
        added = [name for name in wanted if name not in before][: max_strategies()]
        staying = _drop_excess([name for name in wanted if name in before], max_strategies() - len(added))
        dropped_titles = [escape_markdown(strategy_title(name)) for name in wanted if name not in (*staying, *added)]
        wanted = [*staying, *added]
        st.toast(f"Limit is {MAX_COLUMNS} columns. Removed {', '.join(dropped_titles)}.")
    address.put(s=None if set(wanted) == set(default_strategies()) else wanted)


def _drop_excess(names: Sequence[str], places: int) -> list[str]:
    """Return as many names as fit, dropping from the end and the built-in default last."""
    order = sorted(names, key=lambda name: name != DEFAULT_STRATEGY)[: max(0, places)]
    return [name for name in names if name in order]


def show_settings(chosen: Sequence[str], indexes: Sequence[str]) -> None:
    """Show the settings of a comparison: its passages, indexes and the parameters of each strategy."""
    limits: dict[str, Any] = {"default": show_value("limit", read_limit()), "on_change": _change_limit}
    st.segmented_control("Passages per column", LIMITS, key="limit", required=True, **limits)
    _show_index_choice(indexes)
    parameters = read_parameters(chosen)
    for name in chosen:
        if name in STRATEGIES and STRATEGIES[name].parameters:
            st.html(f"<b>{render_mark(name)} {escape(strategy_title(name))}</b>")
            for parameter in STRATEGIES[name].parameters:
                _show_control(name, parameter, parameters.get(name, {}))
    if parameters:
        st.button("Reset to defaults", on_click=lambda: address.put(set=None), type="tertiary")


def _show_index_choice(indexes: Sequence[str]) -> None:
    """Offer to compare each strategy on several indexes, if there are several."""
    chosen = read_indexes()
    names = [*indexes, *(name for name in chosen if name not in indexes)]
    if len(names) < 2:
        return
    st.multiselect(
        "Compare on indexes", names, show_value("on_indexes", list(chosen), names), key="on_indexes",
        max_selections=MAX_COLUMNS, placeholder="Index chosen above",
        help="Each strategy gets one column per index.",
        on_change=lambda: address.put(on=st.session_state["on_indexes"]),
    )  # fmt: skip


def _change_limit() -> None:
    limit = st.session_state["limit"]
    address.put(n=None if limit == DEFAULT_LIMIT else str(limit))


def _show_control(strategy: str, parameter: Parameter, parameters: dict[str, ParameterValue]) -> None:
    """Draw one parameter as the control for its kind; an invalid value in the URL shows as the default."""
    key, label = f"set_{strategy}_{parameter.name}", parameter_title(parameter.name)
    try:
        value = parameter.read(parameters.get(parameter.name, parameter.default))
    except InvalidInput:
        value = parameter.default
    show_value(key, value)
    common: dict[str, Any] = {
        "key": key, "help": parameter.why, "on_change": _set_parameter, "args": (strategy, parameter, key),
    }  # fmt: skip
    if parameter.kind == "bool":
        st.toggle(label, bool(value), **common)
    elif parameter.kind == "choice":
        st.segmented_control(label, parameter.choices, default=value, format_func=choice_title, required=True, **common)
    elif parameter.kind == "name":
        names = [ranker.name for ranker in OPENING.workbench.rankers.list()]
        names = names if value in names else [*names, value]
        st.selectbox(label, names, names.index(str(value)), **common)
    elif parameter.kind == "text":
        st.text_input(label, str(value), **common)
    elif parameter.kind == "int":
        st.slider(label, int(parameter.low or 0), int(parameter.high or 100), int(value), **common)
    else:
        st.slider(label, float(parameter.low or 0), float(parameter.high or 1), float(value), step=0.05, **common)


def _set_parameter(strategy: str, parameter: Parameter, key: str) -> None:
    prefix, value = f"{strategy}.{parameter.name}=", st.session_state[key]
    others = [item for item in address.get_all("set") if not item.startswith(prefix)]
    address.put(set=others if value == parameter.default else [*others, f"{prefix}{value}"])


def _pill_css(names: Sequence[str]) -> str:
    """Return CSS that puts each strategy's mark, in its hue, before its name."""
    rules = []
    for place, name in enumerate(names, start=1):
        appearance = get_look(name)
        selector = f'.st-key-strategies [data-testid="stButtonGroup"] button:nth-of-type({place}) p::before'
        light, dark = appearance.hex("light"), appearance.hex("dark")
        rules.append(
            f'{selector}{{content:"{appearance.mark}";color:light-dark({light},{dark});margin-right:4px;font-size:13px}}'
        )
    return "".join(rules)

"""The Compare page, which is the home page: one question, up to four strategies side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from hashlib import blake2b
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import streamlit as st

from workbench.app.compare.answer import answer_button, answer_panel
from workbench.app.compare.board import board
from workbench.app.compare.columns import (
    LIMITS,
    MOST,
    Asking,
    ComparedHits,
    PendingAnswer,
    ask,
    chosen_indexes,
    chosen_limit,
    chosen_parameters,
    compare,
    forget,
    room,
    strategy_bar,
)
from workbench.app.compare.judging import Judging, judge_control, judging_round
from workbench.app.compare.start import empty_home, next_step, sample_questions
from workbench.app.compare.why import Explaining, open_why, why_panel
from workbench.app.shell.scope_bar import clear_scope, current_index, current_scope, is_scoped
from workbench.app.shell.states import board_skeleton, failed, message
from workbench.app.state import address
from workbench.app.state.shared import OPENING, changes, indexes_of_run, show_value
from workbench.app.widgets.looks import escaped
from workbench.app.widgets.promoting import serving_in, serving_line
from workbench.app.widgets.reader import reader
from workbench.errors import ConfigurationError, InvalidInput, NotFound, WorkbenchError
from workbench.export import FORMS, Asked
from workbench.retrieval.options import across
from workbench.retrieval.strategies import STRATEGIES
from workbench.types import Comparison, Scope
from workbench.workbench import BUILT_IN_RERANKER

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator

    from workbench.workbench import Workbench

# Export of a comparison

MAX_FILE_NAME_CHARS = 60  # of an exported file


def export_button(comparison: Comparison, asking: Asking, limit: int) -> None:
    """Show the popover with the file formats and the link."""
    asked = Asked(tuple(comparison.strategies), limit, asking.scope, asking.index, asking.parameters)
    with st.popover("Export", type="tertiary", icon=":material/ios_share:", key="export_popover"):
        for ending, (title, media_type, write) in FORMS.items():
            st.download_button(
                title,
                lambda write=write: write(comparison, asked),
                file_name(comparison.query) + ending,
                media_type,
                icon=":material/download:",
                on_click="ignore",
                width="stretch",
            )
        with st.container(key="copy_link"):
            st.caption("Copy link to this comparison")
            st.code(link(), language=None, wrap_lines=True)


def file_name(question: str) -> str:
    """Return a file name of the words of a question, safe on any system."""
    words = "".join(char if char.isalnum() else "-" for char in question)
    return "-".join(part for part in words.split("-") if part)[:MAX_FILE_NAME_CHARS] or "comparison"


def link() -> str:
    """Return the current URL of the page."""
    query = urlencode({name: st.query_params.get_all(name) for name in st.query_params}, doseq=True)
    return f"{str(st.context.url).partition('?')[0]}?{query}"


# Invalid values in the URL

OWN = (
    "q", "s", "n", "set", "on", "without", "names", "answer", "judge", "doc", "at", "cut", "why", "by", "missed",
    "form", "part",
)  # fmt: skip
OF_OTHERS = ("embed", "utm_")  # of Streamlit, and added by mail and chat programs
MAX_VALUE_CHARS = 60  # of a value that is quoted


def tell_odd_values() -> None:
    """Show which values of the URL are ignored, with a button that removes them."""
    odd = list(odd_values())
    if not odd:
        return
    listed = ", ".join(f"{_short(name, value)} ({why})" for name, value, why in odd)
    with st.container(key="odd_values", horizontal=True, vertical_alignment="center"):
        st.markdown(f"Ignored in the URL: {escaped(listed, 600)}.", width="content")
        st.button("Clean up URL", type="tertiary", key="clean_address", on_click=_clean)


def odd_values() -> Iterator[tuple[str, str, str]]:
    """Yield (name, value, reason) of each value of the URL that has no effect."""
    for name in st.query_params:
        if name not in (*OWN, *address.EVERYWHERE) and not name.startswith(OF_OTHERS):
            yield name, address.get(name), "unknown parameter"
    shown = address.get("n")
    if shown and shown != str(chosen_limit()):
        yield "n", shown, f"must be {_any_of(LIMITS)}; showing {chosen_limit()}"
    for item in address.get_all("set"):
        if not _is_setting(item):
            yield "set", item, "expected strategy.parameter=value; using the default"
    for name in address.get_all("s")[room() :]:
        yield "s", name, f"limit is {MOST} columns"


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


# Document names in the question, as chips

MAX_NAME_CHARS = 48  # of a chip


def preferred_names(comparison: Comparison, scope: Scope) -> None:
    """Show which names of the question boost documents, and those that the user has turned off."""
    names = comparison.preferring
    if not names and not scope.ignored_names:
        return
    only = scope.names == "only"
    with st.container(key="preferred", horizontal=True, gap="small", vertical_alignment="center"):
        st.markdown(_names_label(only, bool(names)), width="content")
        for name in names:
            documents = "1 document" if name.documents == 1 else f"{name.documents:,} documents"
            st.button(
                escaped(name.text, MAX_NAME_CHARS),
                key=_key("chip", name.text),
                icon=":material/close:",
                icon_position="right",
                help=f"{name.kind.capitalize()} of {documents}. Click to ignore it.",
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
                help="Click to boost it again.",
                on_click=_bring_back,
                args=(text,),
            )
        if names:
            st.button(
                "Search all documents" if only else "Only search these",
                key="only_named",
                type="tertiary",
                on_click=address.put,
                kwargs={"names": None if only else "only"},
            )


def _names_label(only: bool, has_names: bool) -> str:
    if not has_names:
        return "Not boosting documents named"
    return "Only documents named" if only else "Boosting documents named"


def _ignore(name: str) -> None:
    address.put(without=[*address.get_all("without"), name])


def _bring_back(name: str) -> None:
    address.put(without=[other for other in address.get_all("without") if other != name])


def _key(kind: str, text: str) -> str:
    return f"{kind}_{blake2b(text.encode(), digest_size=6).hexdigest()}"


def page() -> None:
    """Show the question and its results, or what to do if there is no question or no document."""
    wb = OPENING.workbench
    question = _question()
    if question.strip():
        st.html('<a class="wb-skip" href="#passages">Skip to results</a>')
    with st.container(key="strategybar", horizontal=True, wrap=False, gap="small", vertical_alignment="center"):
        strategies = strategy_bar(
            with_llm=wb.settings.has_llm,
            with_reranker=wb.settings.reranker != BUILT_IN_RERANKER,
            indexes=[index.name for index in indexes_of_run(wb) if index.status == "ready"],
        )
        judging = judge_control(wb, question)
        answer_button()
    tell_odd_values()
    if not wb.documents.count():
        empty_home(wb)
    elif not question.strip():
        if judging is not None:
            judging_round(judging)
        sample_questions(wb)
    else:
        _answers(wb, question, strategies, judging)
    reader(wb, address.get("cut") or current_index())


def _question() -> str:
    show_value("question", address.get("q"))
    return (
        st.text_input(
            "Question",
            key="question",
            placeholder="Ask your documents a question",
            label_visibility="collapsed",
            autocomplete="off",
            on_change=lambda: address.put(q=st.session_state["question"], without=None, names=None),
        )
        or ""
    )


def _answers(wb: Workbench, question: str, strategies: tuple[str, ...], judging: Judging | None) -> None:
    limit, columns = chosen_limit(), tuple(across(strategies, chosen_indexes()))
    asking = Asking(current_scope(), current_index(), chosen_parameters(strategies))
    key = (question, columns, limit, asking.scope, asking.index, repr(asking.parameters), changes())
    in_the_meantime = st.empty()  # a slot of its own, which the board clears at once
    try:
        pending = ask(key, lambda: compare(wb, question, columns, limit, asking))
    except WorkbenchError as error:
        failed(error, _remedies(error) or {"Try again": forget})
        return
    if pending.settled.is_set() and pending.answer is not None:
        _board(wb, pending.answer, asking, judging)
        why_panel(wb, Explaining(question, limit, asking, pending.answer.comparison))
    else:
        _slow(pending, len(columns), in_the_meantime)


def _remedies(error: WorkbenchError) -> dict[str, Callable[[], None]]:
    """Return a button for each invalid value of the URL."""
    if not isinstance(error, InvalidInput | NotFound | ConfigurationError):
        return {}
    remedies: dict[str, Callable[[], None]] = {}
    if address.get("index") or address.get("on"):
        remedies["Use default index"] = lambda: address.put(index=None, on=None)
    if address.get("set"):
        remedies["Reset to defaults"] = lambda: address.put(set=None)
    if address.get("s"):
        remedies["Compare default strategies"] = lambda: address.put(s=None)
    return remedies


def _board(wb: Workbench, compared: ComparedHits, asking: Asking, judging: Judging | None) -> None:
    comparison = compared.comparison
    if not compared.failures and not any(len(result) for result in comparison.strategies.values()):
        notes = {note for result in comparison.strategies.values() for note in result.scope.notes}
        if judging is not None:
            judging_round(judging)
        message("Nothing found", *notes, "Rephrase the question" + (" or widen the scope." if is_scoped() else "."))
        with st.container(horizontal=True):
            if is_scoped():
                st.button("Clear scope", on_click=clear_scope, icon=":material/close:")
            if comparison.strategies:
                column = next(iter(comparison.strategies))
                st.button(
                    "Find an expected document", key="expected", type="tertiary", on_click=open_why, args=(column,)
                )
        return
    preferred_names(comparison, asking.scope)
    serving = serving_in(wb, asking.scope)
    with st.container(horizontal=True, vertical_alignment="top", wrap=False, key="above_board"):
        with st.container(gap=None):
            serving_line(wb, serving, asking.scope)
            next_step(wb, judging is not None)
        if comparison.strategies:
            export_button(comparison, asking, chosen_limit())
    above = st.container(key="answer_place")
    board(wb, compared, asking, serving, judging)
    with above:
        if comparison.strategies:
            answer_panel(wb, comparison, asking, serving)


def _slow(pending: PendingAnswer[ComparedHits], columns: int, place: DeltaGenerator) -> None:
    with place.container():
        with st.container(key="slow", horizontal=True, vertical_alignment="center"):
            why = "Large corpora take longer." if OPENING.is_warm else "Loading the model."
            st.html(f'<p class="wb-lead" role="status">Still searching. {why}</p>', width="content")
            st.button("Cancel", on_click=_stop)
        board_skeleton(columns)
    st.fragment(_return_when_settled, run_every=0.3)(pending)


def _return_when_settled(pending: PendingAnswer[ComparedHits]) -> None:
    if pending.settled.is_set():
        st.rerun()


def _stop() -> None:
    forget()
    address.put(q=None)

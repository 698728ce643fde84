"""The Compare page, which is the home page: one question, up to four strategies side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from hashlib import blake2b
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import streamlit as st

from workbench.app.compare.answer import show_answer_button, show_answer_panel
from workbench.app.compare.board import show_board
from workbench.app.compare.columns import (
    LIMITS,
    MAX_COLUMNS,
    ComparedHits,
    PendingSearch,
    SearchSettings,
    discard_search,
    get_or_start_search,
    max_strategies,
    read_indexes,
    read_limit,
    read_parameters,
    run_comparison,
    show_strategy_bar,
)
from workbench.app.compare.judging import QuestionJudging, show_judge_control, show_progress
from workbench.app.compare.start import show_empty_home, show_next_step, show_sample_questions
from workbench.app.compare.why import ExplainedQuestion, open_why, show_why_panel
from workbench.app.shell.scope_bar import clear_scope, is_scoped, read_index, read_scope
from workbench.app.shell.states import show_board_skeleton, show_error, show_message
from workbench.app.state import address
from workbench.app.state.shared import OPENING, change_count, load_indexes, show_value
from workbench.app.widgets.looks import escape_markdown
from workbench.app.widgets.promoting import load_live_strategy, show_live_line
from workbench.app.widgets.reader import show_reader
from workbench.errors import ConfigurationError, InvalidInput, NotFound, WorkbenchError
from workbench.export import EXPORT_FORMATS, CompareArguments
from workbench.retrieval.options import combine_with_indexes
from workbench.retrieval.strategies import STRATEGIES
from workbench.types import Comparison, Scope
from workbench.workbench import BUILT_IN_RERANKER

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator

    from workbench.workbench import Workbench

# Export of a comparison

MAX_FILE_NAME_CHARS = 60  # of an exported file


def show_export_button(comparison: Comparison, asking: SearchSettings, limit: int) -> None:
    """Show the popover with the file formats and the link."""
    asked = CompareArguments(tuple(comparison.strategies), limit, asking.scope, asking.index, asking.parameters)
    with st.popover("Export", type="tertiary", icon=":material/ios_share:", key="export_popover"):
        for ending, (title, media_type, write) in EXPORT_FORMATS.items():
            st.download_button(
                title,
                lambda write=write: write(comparison, asked),
                make_file_name(comparison.query) + ending,
                media_type,
                icon=":material/download:",
                on_click="ignore",
                width="stretch",
            )
        with st.container(key="copy_link"):
            st.caption("Copy link to this comparison")
            st.code(current_url(), language=None, wrap_lines=True)


def make_file_name(question: str) -> str:
    """Return a file name of the words of a question, safe on any system."""
    words = "".join(char if char.isalnum() else "-" for char in question)
    return "-".join(part for part in words.split("-") if part)[:MAX_FILE_NAME_CHARS] or "comparison"


def current_url() -> str:
    """Return the current URL of the page."""
    query = urlencode({name: st.query_params.get_all(name) for name in st.query_params}, doseq=True)
    return f"{str(st.context.url).partition('?')[0]}?{query}"


# Invalid values in the URL

OWN_PARAMETERS = (
    "q", "s", "n", "set", "on", "without", "names", "answer", "judge", "doc", "at", "cut", "why", "by", "missed",
    "form", "part",
)  # fmt: skip
FOREIGN_PREFIXES = ("embed", "utm_")  # of Streamlit, and added by mail and chat programs
MAX_VALUE_CHARS = 60  # of a value that is quoted


def show_invalid_values() -> None:
    """Show which values of the URL are ignored, with a button that removes them."""
    odd = list(find_invalid_values())
    if not odd:
        return
    listed = ", ".join(f"{_shorten(name, value)} ({why})" for name, value, why in odd)
    with st.container(key="odd_values", horizontal=True, vertical_alignment="center"):
        st.markdown(f"Ignored in the URL: {escape_markdown(listed, 600)}.", width="content")
        st.button("Clean up URL", type="tertiary", key="clean_address", on_click=_remove_invalid_values)


def find_invalid_values() -> Iterator[tuple[str, str, str]]:
    """Yield (name, value, reason) of each value of the URL that has no effect."""
    for name in st.query_params:
        if name not in (*OWN_PARAMETERS, *address.EVERYWHERE) and not name.startswith(FOREIGN_PREFIXES):
            yield name, address.get(name), "unknown parameter"
    shown = address.get("n")
    if shown and shown != str(read_limit()):
        yield "n", shown, f"must be {_join_numbers(LIMITS)}; showing {read_limit()}"
    for item in address.get_all("set"):
        if not _is_setting(item):
            yield "set", item, "expected strategy.parameter=value; using the default"
    for name in address.get_all("s")[max_strategies() :]:
        yield "s", name, f"limit is {MAX_COLUMNS} columns"


def _is_setting(item: str) -> bool:
    target, sign, _ = item.partition("=")
    strategy, _, name = target.partition(".")
    return (
        bool(sign) and strategy in STRATEGIES and any(known.name == name for known in STRATEGIES[strategy].parameters)
    )


def _join_numbers(numbers: tuple[int, ...]) -> str:
    return f"{', '.join(map(str, numbers[:-1]))} or {numbers[-1]}"


def _shorten(name: str, value: str) -> str:
    text = f"{name}={value}"
    return text if len(text) <= MAX_VALUE_CHARS else text[: MAX_VALUE_CHARS - 1] + "…"


def _remove_invalid_values() -> None:
    odd = [(name, value) for name, value, _ in find_invalid_values()]
    address.put(**{name: [one for one in address.get_all(name) if (name, one) not in odd] for name, _ in odd})


# Document names in the question, as chips

MAX_NAME_CHARS = 48  # of a chip


def show_name_chips(comparison: Comparison, scope: Scope) -> None:
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
                escape_markdown(name.text, MAX_NAME_CHARS),
                key=_widget_key("chip", name.text),
                icon=":material/close:",
                icon_position="right",
                help=f"{name.kind.capitalize()} of {documents}. Click to ignore it.",
                on_click=_ignore_name,
                args=(name.text,),
            )
        for text in scope.ignored_names:
            st.button(
                f"~~{escape_markdown(text, MAX_NAME_CHARS)}~~",
                key=_widget_key("chipback", text),
                icon=":material/undo:",
                icon_position="right",
                type="tertiary",
                help="Click to boost it again.",
                on_click=_restore_name,
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


def _ignore_name(name: str) -> None:
    address.put(without=[*address.get_all("without"), name])


def _restore_name(name: str) -> None:
    address.put(without=[other for other in address.get_all("without") if other != name])


def _widget_key(kind: str, text: str) -> str:
    return f"{kind}_{blake2b(text.encode(), digest_size=6).hexdigest()}"


def page() -> None:
    """Show the question and its results, or what to do if there is no question or no document."""
    wb = OPENING.workbench
    question = _show_question()
    if question.strip():
        st.html('<a class="wb-skip" href="#passages">Skip to results</a>')
    with st.container(key="strategybar", horizontal=True, wrap=False, gap="small", vertical_alignment="center"):
        strategies = show_strategy_bar(
            with_llm=wb.settings.has_llm,
            with_reranker=wb.settings.reranker != BUILT_IN_RERANKER,
            indexes=[index.name for index in load_indexes(wb) if index.status == "ready"],
        )
        judging = show_judge_control(wb, question)
        show_answer_button()
    show_invalid_values()
    if not wb.documents.count():
        show_empty_home(wb)
    elif not question.strip():
        if judging is not None:
            show_progress(judging)
        show_sample_questions(wb)
    else:
        _show_results(wb, question, strategies, judging)
    show_reader(wb, address.get("cut") or read_index())


def _show_question() -> str:
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


def _show_results(wb: Workbench, question: str, strategies: tuple[str, ...], judging: QuestionJudging | None) -> None:
    limit, columns = read_limit(), tuple(combine_with_indexes(strategies, read_indexes()))
    asking = SearchSettings(read_scope(), read_index(), read_parameters(strategies))
    key = (question, columns, limit, asking.scope, asking.index, repr(asking.parameters), change_count())
    in_the_meantime = st.empty()  # a slot of its own, which the board clears at once
    try:
        pending = get_or_start_search(key, lambda: run_comparison(wb, question, columns, limit, asking))
    except WorkbenchError as error:
        show_error(error, _find_remedies(error) or {"Try again": discard_search})
        return
    if pending.settled.is_set() and pending.answer is not None:
        _show_comparison(wb, pending.answer, asking, judging)
        show_why_panel(wb, ExplainedQuestion(question, limit, asking, pending.answer.comparison))
    else:
        _show_waiting(pending, len(columns), in_the_meantime)


def _find_remedies(error: WorkbenchError) -> dict[str, Callable[[], None]]:
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


def _show_comparison(
    wb: Workbench, compared: ComparedHits, asking: SearchSettings, judging: QuestionJudging | None
) -> None:
    comparison = compared.comparison
    if not compared.failures and not any(len(result) for result in comparison.strategies.values()):
        notes = {note for result in comparison.strategies.values() for note in result.scope.notes}
        if judging is not None:
            show_progress(judging)
        show_message(
            "Nothing found", *notes, "Rephrase the question" + (" or widen the scope." if is_scoped() else ".")
        )
        with st.container(horizontal=True):
            if is_scoped():
                st.button("Clear scope", on_click=clear_scope, icon=":material/close:")
            if comparison.strategies:
                column = next(iter(comparison.strategies))
                st.button(
                    "Find an expected document", key="expected", type="tertiary", on_click=open_why, args=(column,)
                )
        return
    show_name_chips(comparison, asking.scope)
    serving = load_live_strategy(wb, asking.scope)
    with st.container(horizontal=True, vertical_alignment="top", wrap=False, key="above_board"):
        with st.container(gap=None):
            show_live_line(wb, serving, asking.scope)
            show_next_step(wb, judging is not None)
        if comparison.strategies:
            show_export_button(comparison, asking, read_limit())
    above = st.container(key="answer_place")
    show_board(wb, compared, asking, serving, judging)
    with above:
        if comparison.strategies:
            show_answer_panel(wb, comparison, asking, serving)


def _show_waiting(pending: PendingSearch[ComparedHits], columns: int, place: DeltaGenerator) -> None:
    with place.container():
        with st.container(key="slow", horizontal=True, vertical_alignment="center"):
            why = "Large corpora take longer." if OPENING.is_warm else "Loading the model."
            st.html(f'<p class="wb-lead" role="status">Still searching. {why}</p>', width="content")
            st.button("Cancel", on_click=_cancel_search)
        show_board_skeleton(columns)
    st.fragment(_rerun_when_settled, run_every=0.3)(pending)


def _rerun_when_settled(pending: PendingSearch[ComparedHits]) -> None:
    if pending.settled.is_set():
        st.rerun()


def _cancel_search() -> None:
    discard_search()
    address.put(q=None)

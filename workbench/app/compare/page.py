"""The Compare page, which is the home page: one question, up to four strategies side by side."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from html import escape
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import streamlit as st

from workbench.app.compare.board import show_board, show_figures
from workbench.app.compare.columns import (
    DEFAULT_LIMIT,
    LIMITS,
    MAX_COLUMNS,
    ComparedHits,
    Pending,
    SearchSettings,
    discard_search,
    get_or_start_search,
    is_searched,
    max_strategies,
    open_passage,
    open_why,
    read_indexes,
    read_limit,
    read_parameters,
    run_comparison,
    show_settings,
    show_strategy_bar,
)
from workbench.app.compare.judging import (
    COMPARISON_KEYS,
    QUEUE_TITLES,
    QuestionJudging,
    ask_question,
    find_turns,
    show_queue,
    store_in_history,
)
from workbench.app.compare.why import ExplainedQuestion, show_why
from workbench.app.shell.scope_bar import clear_scope, is_scoped, read_index, read_scope
from workbench.app.shell.states import show_board_skeleton, show_error
from workbench.app.shell.work import show_add_button, show_sample_button, show_upload_area
from workbench.app.state import address
from workbench.app.state.shared import OPENING, change_count, choose_in_url, load_indexes, name_tab, show_value
from workbench.app.widgets.looks import (
    escape_markdown,
    format_place,
    make_file_name,
    shorten,
    show_message,
    strategy_title,
    strip_markdown,
)
from workbench.app.widgets.notices import mount
from workbench.app.widgets.promoting import LiveStrategy, find_live_columns, load_live_strategy, show_live_line
from workbench.app.widgets.reader import find_document, show_document
from workbench.errors import Ambiguous, ConfigurationError, InvalidInput, NotFound, WorkbenchError
from workbench.export import EXPORT_FORMATS, CompareArguments
from workbench.retrieval.options import Ask, combine_with_indexes
from workbench.retrieval.strategies import STRATEGIES, split_strategy
from workbench.sample import questions_dir
from workbench.services.answers import DEFAULT_PASSAGES
from workbench.services.sample_corpus import SAMPLE_TITLE
from workbench.types import Comparison, JsonObject, Passage, Scope
from workbench.workbench import BUILT_IN_RERANKER

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator

    from workbench.services.answers import Answer, AnswerStream
    from workbench.workbench import Workbench

# The answer that is being written, in a thread

_SESSION_KEY = "answering"


@dataclass(slots=True)
class PendingText(Pending["Answer"]):
    """An answer that is being written, or has been."""

    text: str = ""  # the text so far
    passages: tuple[Passage, ...] = ()  # the passages it may cite
    stopped: threading.Event = field(default_factory=threading.Event)  # set to cancel it

    @property
    def state(self) -> str:
        """One of "writing", "stopped", "failed" and "done"."""
        if not self.settled.is_set():
            return "stopped" if self.stopped.is_set() else "writing"
        if self.error is not None:
            return "failed"
        return "done" if self.answer is not None else "stopped"

    def write(self, begin: Callable[[], AnswerStream]) -> None:
        """Ask, and append the pieces of the answer until it ends or is stopped."""
        self.run(lambda: self._read(begin()))

    def _read(self, stream: AnswerStream) -> Answer | None:
        self.passages = stream.passages
        for piece in stream:
            if self.stopped.is_set():
                return None
            self.text += piece
        return stream.answer()


def get_or_start_answer(key: Hashable, begin: Callable[[], AnswerStream]) -> PendingText:
    """Return this session's answer for a key, started if necessary; an answer for another key is stopped."""
    writing: PendingText | None = st.session_state.get(_SESSION_KEY)
    if writing is None or writing.key != key:
        cancel_answer()
        writing = PendingText(key)
        st.session_state[_SESSION_KEY] = writing
        threading.Thread(target=writing.write, args=(begin,), name="answer", daemon=True).start()
    return writing


def is_writing(key: Hashable) -> bool:
    """Return whether the answer for a key is not complete, or has not been started."""
    writing: PendingText | None = st.session_state.get(_SESSION_KEY)
    return writing is None or writing.key != key or writing.state == "writing"


def cancel_answer() -> None:
    """Cancel the answer that is being written."""
    if _SESSION_KEY in st.session_state:
        st.session_state[_SESSION_KEY].stopped.set()


def restart_answer() -> None:
    """Drop the answer, so that it is requested again."""
    cancel_answer()
    st.session_state.pop(_SESSION_KEY, None)


_QUOTE_PATTERN = re.compile(r".+?\[\d{1,3}\](?=\s|$)", re.DOTALL)
REFRESH_S = 0.15  # seconds between refreshes of an answer that is being written


def show_answer(wb: Workbench, comparison: Comparison, asking: SearchSettings, serving: LiveStrategy) -> None:
    """Answer from the column of the live strategy, or from the first one."""
    column = [*find_live_columns(serving, comparison, asking.parameters), *comparison.strategies][0]
    strategy, own_index = split_strategy(column, None)
    index, parameters = own_index or asking.index, asking.parameters.get(strategy)
    ask = Ask(strategy, DEFAULT_PASSAGES, asking.scope, index, parameters or {}, history=asking.history)
    key = (comparison.query, column, repr(ask), change_count())

    def panel() -> None:
        writing = get_or_start_answer(key, lambda: wb.answers.ask(comparison.query, ask))
        _draw_answer(writing, strategy_title(column), own_index or "", was_writing)

    was_writing = is_writing(key)
    st.fragment(panel, run_every=REFRESH_S if was_writing else None)()


def _draw_answer(writing: PendingText, strategy: str, cut: str, was_writing: bool) -> None:
    state = writing.state
    if state == "failed" and not isinstance(writing.error, WorkbenchError):
        assert writing.error is not None
        raise writing.error
    data = build_answer_data(writing, state, strategy)
    result = mount("compare/answer", "answer", data, "open", stop=cancel_answer, again=restart_answer)
    if result.open and 1 <= int(result.open) <= len(writing.passages):
        passage = writing.passages[int(result.open) - 1]
        open_passage({"document": passage.document_id, "start": passage.start, "end": passage.end}, cut)
        st.rerun()
    if result.again or (was_writing and state != "writing"):
        st.rerun()


def build_answer_data(writing: PendingText, state: str, strategy: str) -> JsonObject:
    """Return the data of the panel."""
    answer = writing.answer
    return {
        "state": state,
        "kind": answer.kind if answer else "",
        "text": _format_extracts(writing.text) if answer and answer.kind == "extracts" else writing.text,
        "passages": _list_passages(writing.passages),
        "model": answer.model if answer else "",
        "strategy": strategy,
        "notes": list(answer.degraded) if answer else [],
        "error": str(writing.error) if writing.error else "",
        "ms": round(answer.timings_ms.get("total", 0.0), 1) if answer else None,
    }


def _format_extracts(text: str) -> str:
    """Return quoted Markdown sentences as plain text; each ends in its citation."""
    return " ".join(strip_markdown(quote).removeprefix("· ") for quote in _QUOTE_PATTERN.findall(text))


def _list_passages(passages: Sequence[Passage]) -> list[JsonObject]:
    return [
        {
            "title": passage.document_title,
            "place": format_place(passage, passage.headings) or passage.path or passage.url or "",
        }
        for passage in passages
    ]


# The first visit

INTRODUCTION = (
    "Search your documents with several strategies at once: by meaning, by keywords and by both. You "
    "judge the results, the workbench scores each strategy, and your agents get the winner."
)


def show_empty_home(wb: Workbench) -> None:
    """Explain the workbench and offer three ways to add the first documents."""
    show_message("Which search strategy works best for your documents?", INTRODUCTION)
    show_upload_area(wb, wb.sources.list())
    left, right = st.columns(2, gap="medium")
    with left, st.container(border=True, key="way_crawl"):
        _show_heading("A website", "Crawls its pages; respects robots.txt and your rate limit.")
        show_add_button("crawl")
    with right, st.container(border=True, key="way_sample"):
        about = "About fifty articles on retrieval, with questions to try. Loads in about a minute."
        _show_heading("Sample documents", about)
        show_sample_button(wb)


def _show_heading(title: str, sentence: str) -> None:
    st.html(f'<p class="wb-way"><b>{title}</b><br>{sentence}</p>')


def show_further_ways(wb: Workbench) -> None:
    """Offer, below the sample questions, to add one's own documents."""
    st.html('<p class="wb-kind">Or ask your own documents:</p>')
    show_upload_area(wb, wb.sources.list())
    show_add_button("crawl")


# Sample questions: paraphrased, exact and misspelled

_KIND_TITLES = {"meaning": "Paraphrased", "keyword": "Names, codes and rare words", "typo": "Misspelled"}
_QUESTIONS_PER_KIND = 3


@cache
def _load_questions() -> dict[str, list[str]]:
    by_kind: dict[str, list[str]] = {kind: [] for kind in _KIND_TITLES}
    for line in (questions_dir() / "queries.jsonl").read_text(encoding="utf-8").splitlines():
        question = json.loads(line)
        if question.get("kind") in by_kind and len(question["text"]) < 58:
            by_kind[question["kind"]].append(question["text"])
    return {kind: texts[:_QUESTIONS_PER_KIND] for kind, texts in by_kind.items() if texts}


def show_sample_questions(wb: Workbench) -> None:
    """Offer sample questions, or explain the page if the sample is not loaded."""
    if not _has_sample(wb):
        show_message(
            "Ask a question",
            "Each column shows the results of one strategy; the lines between the columns show where they agree.",
        )
        return
    st.html(f'<p class="wb-lead">{INTRODUCTION}</p>')
    st.html('<p class="wb-lead">Each column shows one strategy; the lines between them show where they disagree. '
            "Ask anything, or start with one of these.</p>")  # fmt: skip
    with st.container(key="sample_questions"):
        columns = st.columns(len(_load_questions()), gap="large")
    for column, (kind, texts) in zip(columns, _load_questions().items(), strict=True):
        with column:
            st.html(f'<p class="wb-kind">{_KIND_TITLES[kind]}</p>')
            for place, text in enumerate(texts):
                key = f"sample_{kind}_{place}"
                st.button(text, key=key, type="tertiary", on_click=ask_question, args=(text,))
    show_further_ways(wb)


def _has_sample(wb: Workbench) -> bool:
    try:
        return wb.sources.get(SAMPLE_TITLE).documents_count > 0
    except (NotFound, Ambiguous):
        return False


# Export of a comparison


def show_export_button(comparison: Comparison, asking: SearchSettings, limit: int) -> None:
    """Show the popover with the file formats and the link."""
    given = asking.scope, asking.index, asking.parameters, asking.history
    asked = CompareArguments(tuple(comparison.strategies), limit, *given)
    with st.popover("Export", type="tertiary", icon=":material/ios_share:", key="export_popover"):
        for ending, (title, media_type, write) in EXPORT_FORMATS.items():
            st.download_button(
                title,
                lambda write=write: write(comparison, asked),
                make_file_name(comparison.query, "comparison") + ending,
                media_type,
                icon=":material/download:",
                on_click="ignore",
                width="stretch",
            )
        with st.container(key="copy_link"):
            st.caption("Copy link to this comparison")
            st.code(current_url(), language=None, wrap_lines=True)


def current_url() -> str:
    """Return the current URL of the page."""
    query = urlencode({name: st.query_params.get_all(name) for name in st.query_params}, doseq=True)
    return f"{str(st.context.url).partition('?')[0]}?{query}"


# Invalid values in the URL

OWN_PARAMETERS = (
    *COMPARISON_KEYS, "judge", "queue", *address.INSPECTOR_KEYS,
)  # fmt: skip
FOREIGN_PREFIXES = ("embed", "utm_")  # of Streamlit, and added by mail and chat programs
MAX_VALUE_CHARS = 60  # of a value that is quoted


def show_invalid_values() -> None:
    """Show which values in the URL are ignored, with a button that removes them."""
    odd = list(find_invalid_values())
    if not odd:
        return
    listed = ", ".join(f"{shorten(f'{name}={value}', MAX_VALUE_CHARS)} ({why})" for name, value, why in odd)
    with st.container(key="odd_values", horizontal=True, vertical_alignment="center"):
        st.markdown(f"Ignored in the URL: {escape_markdown(listed, 600)}.", width="content")
        st.button("Clean up URL", type="tertiary", key="clean_address", on_click=_remove_invalid_values)


def find_invalid_values() -> Iterator[tuple[str, str, str]]:
    """Yield (name, value, reason) for each value in the URL that has no effect."""
    for name in st.query_params:
        if name not in OWN_PARAMETERS and not name.startswith(FOREIGN_PREFIXES):
            yield name, address.get(name), "unknown parameter"
    shown = address.get("n")
    if shown and shown != str(read_limit()):
        yield "n", shown, f"must be {', '.join(map(str, LIMITS[:-1]))} or {LIMITS[-1]}; showing {read_limit()}"
    for item in address.get_all("set"):
        if not _is_setting(item):
            yield "set", item, "expected strategy.parameter=value, without python: objects; using the default"
    for name in address.get_all("s")[max_strategies() :]:
        yield "s", name, f"limit is {MAX_COLUMNS} columns"


def _is_setting(item: str) -> bool:
    target, sign, value = item.partition("=")
    strategy, _, name = target.partition(".")
    return (
        bool(sign)
        and not value.startswith("python:")
        and strategy in STRATEGIES
        and any(known.name == name for known in STRATEGIES[strategy].parameters)
    )


def _remove_invalid_values() -> None:
    odd = [(name, value) for name, value, _ in find_invalid_values()]
    address.put(**{name: [one for one in address.get_all(name) if (name, one) not in odd] for name, _ in odd})


# Document names in the question, as chips

MAX_NAME_CHARS = 48  # of a chip
MAX_TURNS_CHARS = 300  # of the earlier turns of a test question


def show_name_chips(comparison: Comparison, scope: Scope) -> None:
    """Show which names in the question boost documents, and those that the user has turned off."""
    names = comparison.preferring
    if not names and not scope.ignored_names:
        return
    only = scope.names == "only"
    with st.container(key="preferred", horizontal=True, gap="small", vertical_alignment="center", width="content"):
        st.markdown(_names_label(only, bool(names)), width="content")
        for name in names:
            documents = "1 document" if name.documents == 1 else f"{name.documents:,} documents"
            st.button(
                escape_markdown(name.text, MAX_NAME_CHARS),
                key=f"chip_{name.text}",
                icon=":material/close:",
                icon_position="right",
                help=f"{name.kind.capitalize()} of {documents}. Click to ignore it.",
                on_click=_ignore_name,
                args=(name.text,),
            )
        for text in scope.ignored_names:
            st.button(
                f"~~{escape_markdown(text, MAX_NAME_CHARS)}~~",
                key=f"chipback_{text}",
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


# The inspector, and the panes


@dataclass(frozen=True, slots=True)
class ShownComparison:
    """A comparison on the board."""

    explaining: ExplainedQuestion  # its question, settings and results
    serving: LiveStrategy  # what is live in its scope


INSPECTOR_TITLES = {
    "why": "Why", "document": "Document", "answer": "Answer", "figures": "Figures", "settings": "Settings",
}  # fmt: skip
MAX_CHARS_SHOWN = 40  # of a question in a field as wide as a phone
PANE_TITLES = {"queue": "Queue", "results": "Results", "inspector": "Answer · Why"}


def read_inspector_tab() -> str:
    """Return the open tab of the inspector; "" if it is closed."""
    tab = address.get("look")
    if tab in INSPECTOR_TITLES:
        return tab
    if address.get("doc"):
        return "document"
    if address.get("why"):
        return "why"
    return "answer" if address.get("pane") == "inspector" else ""


def close_inspector() -> None:
    """Close the inspector, and cancel an answer that is being written."""
    cancel_answer()
    address.put(**dict.fromkeys(address.INSPECTOR_KEYS))


def _show_inspector_buttons(tab: str, strategies: Sequence[str]) -> None:
    """Show the buttons that open the inspector at what does not belong to a passage; pressed again, they close it."""
    parameters = read_parameters(strategies).values()
    changed = sum(map(len, parameters)) + (read_limit() != DEFAULT_LIMIT) + bool(read_indexes())
    for name, icon in (("answer", "short_text"), ("figures", "grid_on"), ("settings", "tune")):
        is_open = name == tab
        st.button(
            INSPECTOR_TITLES[name] + (f" ({changed})" if changed and name == "settings" else ""),
            help=f"Changed settings: {changed}" if changed and name == "settings" else None,
            key=f"look_{name}",
            type="tertiary",
            icon=f":material/{icon}:",
            on_click=close_inspector if is_open else address.put,
            kwargs={} if is_open else {"look": name, "pane": None},
        )


def _show_inspector(wb: Workbench, tab: str, shown: ShownComparison | None, strategies: tuple[str, ...]) -> None:
    """Show the tabs of the inspector and the content of the open one."""
    with st.container(key="inspector_head", horizontal=True, wrap=False, vertical_alignment="center", gap="small"):
        choose_in_url("Inspector", INSPECTOR_TITLES, "look", "inspector_tab", current=tab)
        st.button("Close", key="inspector_close", type="tertiary", on_click=close_inspector, help="Esc")
    comparison = shown.explaining.compared.comparison if shown else None
    if tab == "settings":
        show_settings(strategies, [index.name for index in load_indexes(wb) if index.status == "ready"])
    elif tab == "document":
        document = find_document(wb)
        if document is None:
            st.caption("Click the title of a result to read its document here.")
        else:
            st.html(f"<h2>{escape(document.title or 'Document')}</h2>")
            show_document(wb, document, address.get("cut") or read_index())
    elif shown is None or comparison is None or not comparison.strategies:
        st.caption("Shown once there are results." if address.get("q") else "Ask a question first.")
    elif tab == "answer":
        show_answer(wb, comparison, shown.explaining.asking, shown.serving)
    elif tab == "figures":
        show_figures(comparison)
    else:
        show_why(wb, shown.explaining)


def _show_pane_choice(tab: str) -> None:
    """Show the panes as tabs, which the style sheet hides on wide screens, and hide the other panes on small ones."""
    named = address.get("pane")
    pane = named if named in PANE_TITLES else "inspector" if tab else "results"
    with st.container(key="pane_choice"):
        choose_in_url("Pane", PANE_TITLES, "pane", "pane", current=pane, width="stretch")
    others = ", ".join(f".st-key-panes > :has(> .st-key-pane_{name})" for name in PANE_TITLES if name != pane)
    st.html(f"<style>@media (max-width: 1099.9px), (max-height: 599.9px) {{ {others} {{ display: none; }} }}</style>")


def page() -> None:
    """Show the question and its results, or what to do if there is no question or no document."""
    wb = OPENING.workbench
    if not wb.documents.count():
        show_empty_home(wb)
        return
    question, tab = _show_question(), read_inspector_tab()
    if question.strip():
        name_tab(part=shorten(question, MAX_VALUE_CHARS))
        st.html('<a class="wb-skip" href="#passages">Skip to results</a>')
    with st.container(key="strategybar", horizontal=True, wrap=False, gap="small", vertical_alignment="center"):
        strategies = show_strategy_bar(
            with_llm=wb.settings.has_llm, with_reranker=wb.settings.reranker != BUILT_IN_RERANKER
        )
        _show_pane_choice(tab)
        _show_inspector_buttons(tab, strategies)
    show_invalid_values()
    shown = None
    with st.container(key="panes", horizontal=True, wrap=False, gap="small"):
        with st.container(key="pane_queue"):
            part = choose_in_url("Queue", QUEUE_TITLES, "queue", "queue_part")
            judging = show_queue(wb, question, part)
        with st.container(key="pane_results", gap="xsmall"):
            if question.strip():
                shown = _show_results(wb, question, strategies, judging)
            else:
                show_sample_questions(wb)
        if tab:
            with st.container(key="pane_inspector", gap="xsmall"):
                _show_inspector(wb, tab, shown, strategies)


def _show_question() -> str:
    question = st.text_input(
        "Question",
        show_value("question", address.get("q")),
        key="question",
        placeholder="Ask your documents a question",
        label_visibility="collapsed",
        autocomplete="off",
        on_change=lambda: address.put(q=st.session_state["question"], without=None, names=None),
    )
    if len(question or "") > MAX_CHARS_SHOWN:
        st.html(f'<p class="wb-asked">{escape(question or "")}</p>')
    return question or ""


def _show_results(
    wb: Workbench, question: str, strategies: tuple[str, ...], judging: QuestionJudging | None
) -> ShownComparison | None:
    """Show the results of a question; return them once they are complete."""
    limit, columns = read_limit(), tuple(combine_with_indexes(strategies, read_indexes()))
    asking = SearchSettings(read_scope(), read_index(), read_parameters(strategies), find_turns(wb, question))
    key = (question, columns, limit, repr(asking), change_count())
    in_the_meantime = st.empty()  # a separate slot, which the board clears immediately
    if not is_searched(key):
        in_the_meantime.html('<i class="wb-busy"></i>')  # dims the previous results
    try:
        pending = get_or_start_search(key, lambda: run_comparison(wb, question, columns, limit, asking))
    except WorkbenchError as error:
        show_error(error, _find_remedies(error) or {"Try again": discard_search})
        return None
    if not pending.settled.is_set() or pending.answer is None:
        _show_waiting(pending, len(columns), in_the_meantime)
        return None
    in_the_meantime.empty()
    store_in_history(wb, question)
    explaining = ExplainedQuestion(question, limit, asking, pending.answer)
    shown = ShownComparison(explaining, load_live_strategy(wb, asking.scope))
    _show_comparison(wb, shown, judging)
    return shown


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


def _show_comparison(wb: Workbench, shown: ShownComparison, judging: QuestionJudging | None) -> None:
    compared, asking = shown.explaining.compared, shown.explaining.asking
    comparison = compared.comparison
    if not compared.failures and not any(len(result) for result in comparison.strategies.values()):
        notes = {note for result in comparison.strategies.values() for note in result.scope.notes}
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
    with st.container(horizontal=True, vertical_alignment="top", wrap=False, key="above_board"):
        with st.container(gap=None):
            if asking.history:
                st.caption(escape_markdown(f"After: {' · '.join(asking.history)}", MAX_TURNS_CHARS))
            with st.container(horizontal=True, vertical_alignment="center", gap="small", key="board_notes"):
                show_name_chips(comparison, asking.scope)
                show_live_line(wb, shown.serving, asking.scope)
        if comparison.strategies:
            show_export_button(comparison, asking, read_limit())
    with st.container(key="board_scroll"):
        show_board(wb, compared, asking, shown.serving, judging)


def _show_waiting(pending: Pending[ComparedHits], columns: int, place: DeltaGenerator) -> None:
    with place.container():
        with st.container(key="slow", horizontal=True, vertical_alignment="center"):
            why = "Large corpora take longer." if OPENING.is_warm else "Loading the model."
            st.html(f'<p class="wb-lead" role="status">Still searching. {why}</p>', width="content")
            st.button("Cancel", on_click=_cancel_search)
        show_board_skeleton(columns)
    st.fragment(_rerun_when_settled, run_every=0.3)(pending)


def _rerun_when_settled(pending: Pending[ComparedHits]) -> None:
    if pending.settled.is_set():
        st.rerun()


def _cancel_search() -> None:
    discard_search()
    address.put(q=None)

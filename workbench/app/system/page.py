"""The System page: health, jobs, indexes, sizes and versions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import streamlit as st

from workbench.app.state.shared import OPENING, choose_in_url
from workbench.app.widgets.looks import escape_markdown, make_label_function, parameter_title
from workbench.app.widgets.notices import report_errors, run_change, show_confirmation, show_language_offer, show_notice
from workbench.app.widgets.rows import Figure, Noted, RowCell, show_rows
from workbench.app.widgets.table import Column, show_table
from workbench.errors import Conflict, InvalidInput, ModelError
from workbench.formatting import count_text, parse_assignments, size_text
from workbench.ingestion.chunking import CHUNKERS, DEFAULT_CHUNKER
from workbench.models.endpoints import EMBEDDING_PROVIDERS, LLM_PROVIDERS, RERANK_PROVIDERS
from workbench.models.registry import MODELS, NAME_FORMS
from workbench.settings import (
    DEFAULT,
    ENVIRONMENT,
    Settings,
    SettingValue,
    add_provider_key,
    list_settings,
    load_settings,
    write_settings,
)
from workbench.storage.jobs import Job
from workbench.types import Index, JsonValue, Parameter, as_integer, duration_text, progress_text
from workbench.workbench import try_model

if TYPE_CHECKING:
    from workbench.services.health import IndexStatus, Status
    from workbench.storage.jobs import JobLoad
    from workbench.storage.replica import ReplicaState
    from workbench.workbench import Workbench

# The set-up of models: language model, embedding model, reranker and the keys of providers, stored in .env

URL, MODEL, KEY = "WORKBENCH_LLM_BASE_URL", "WORKBENCH_LLM_MODEL", "WORKBENCH_LLM_API_KEY"
EMBEDDING, RERANKER = "WORKBENCH_EMBEDDING_MODEL", "WORKBENCH_RERANKER"
PROVIDERS = {**LLM_PROVIDERS, **RERANK_PROVIDERS, **EMBEDDING_PROVIDERS}
_SAVES = "setup_saves"  # part of the keys of inputs for secrets, so that a saved one leaves the session


class Field(NamedTuple):
    """An input for a setting."""

    variable: str
    label: str
    choices: tuple[str, ...] = ()  # offered values; others can be entered
    hint: str = ""  # shown while the input is empty


@dataclass(frozen=True, slots=True)
class Section:
    """A model with its inputs and its test."""

    part: str  # as ``try_model`` names it
    title: str
    fields: tuple[Field, ...]
    effect: str  # what it changes


SECTIONS = (
    Section(
        "llm",
        "Language model",
        (
            Field(URL, "Endpoint URL", hint="OpenAI-compatible"),
            Field(MODEL, "Model", hint="Name, PROVIDER:MODEL or GGUF"),
            Field(KEY, "Endpoint API key"),
        ),
        "Writes answers, which are cited extracts otherwise. Adds the strategies HyDE, Multi-query and LLM rerank.",
    ),
    Section(
        "embedding",
        "Embedding model",
        (Field(EMBEDDING, "Model", tuple(model.name for model in MODELS if not model.for_tests)),),
        "New indexes use it; existing ones keep theirs. Create an index under Status and make it the default.",
    ),
    Section(
        "reranker",
        "Reranker",
        (Field(RERANKER, "Model", (str(Settings.model_fields["reranker"].default),)),),
        "A model other than the default adds the strategy Cross-encoder, which reorders the best passages with it.",
    ),
)


def show_setup(wb: Workbench) -> None:
    """Show a form for each model, and one for the keys of providers."""
    rows = {row.variable: row for row in list_settings()}
    left, right = st.columns(2, gap="large")
    with left:
        _show_section(wb, SECTIONS[0], rows)
        _show_keys(rows)
    with right:
        for section in SECTIONS[1:]:
            _show_section(wb, section, rows)
    st.caption(
        "Values are written to .env in the working directory, which only its owner can read. Environment variables "
        "take precedence. Restart other servers and workers after a change; this app applies it at once."
    )


def _show_section(wb: Workbench, section: Section, rows: Mapping[str, SettingValue]) -> None:
    st.header(section.title, anchor=False)
    form, untested = st.form(f"setup_{section.part}"), f"untested_{section.part}"
    with form:
        given = {field.variable: _show_input(field, rows[field.variable]) for field in section.fields}
        costs = _describe_cost(wb, section.part, given)
        st.html(
            f'<dl class="wb-facts"><dt>Changes</dt><dd>{escape(section.effect)}</dd>'
            f"<dt>Costs</dt><dd>{escape(costs)}</dd></dl>"
        )
        with st.container(horizontal=True):
            saves = st.form_submit_button("Save", type="primary", key=f"save_{section.part}")
            tries = st.form_submit_button("Test", key=f"test_{section.part}")
            removes = rows[KEY].origin not in (DEFAULT, ENVIRONMENT) and section.part == "llm"
            removes = removes and st.form_submit_button("Remove key", key="remove_llm_key")
    if removes:
        run_change(lambda: _save({KEY: ""}))
    elif (skips := st.session_state.pop(untested, False)) or saves or tries:
        with report_errors(lambda text: _show_failure(section, text)), st.spinner("Testing…"):
            changes = find_changes(given, rows)
            try:
                result = "It was not tested." if skips else try_model(_apply(changes), section.part)
            except ModelError:
                with form:
                    st.caption("If the model is not running now, save its settings and test them later.")
                    st.form_submit_button(
                        "Save without testing", on_click=st.session_state.update, args=({untested: True},)
                    )
                raise
            if tries:
                st.success(escape_markdown(result))
            else:
                run_change(lambda: f"{_save(changes)} {result}")


def _show_failure(section: Section, text: str) -> None:
    """Show an escaped error with the labels of the inputs instead of the names of their settings."""
    labels = {provider.key: f"{provider.key} under API keys of providers" for provider in PROVIDERS.values()}
    for variable, label in (labels | {field.variable: f"**{field.label}**" for field in section.fields}).items():
        text = text.replace(escape_markdown(variable), label) if variable else text
    st.error(text)


def _show_input(field: Field, row: SettingValue) -> str:
    """Show an input with the origin of its value; return what was entered."""
    key, fixed = f"setup_{field.variable}", row.origin == ENVIRONMENT
    if row.is_secret:
        key += str(st.session_state.get(_SAVES, 0))
        hint = "Enter a key to replace the stored one" if row.value else ""
        text = st.text_input(
            field.label, type="password", key=key, placeholder=hint, disabled=fixed, autocomplete="new-password"
        )
    elif field.choices:
        choices = list(dict.fromkeys([row.value, *field.choices]))
        text = st.selectbox(field.label, choices, key=key, accept_new_options=True, disabled=fixed)
    else:
        text = st.text_input(field.label, row.value, key=key, placeholder=field.hint, disabled=fixed)
    if row.value:
        st.caption(escape_markdown(_describe_origin(row)))
    return (text or "").strip()


def _describe_origin(row: SettingValue) -> str:
    if row.origin == ENVIRONMENT:
        return f"From the environment variable {row.variable}, which takes precedence. Change it there."
    return "Default" if row.origin == DEFAULT else f"From {row.origin}"


def find_changes(given: Mapping[str, str], rows: Mapping[str, SettingValue]) -> dict[str, str]:
    """Return what was entered that differs from the stored values; "" removes a value.

    A stored key is never sent to another endpoint than the one it was entered for.

    Raises:
        Conflict: The endpoint is changed, but its key comes from the environment.
    """
    changes: dict[str, str] = {}
    for variable, text in given.items():
        row = rows[variable]
        if row.origin != ENVIRONMENT and text != row.value and (text or not row.is_secret):
            changes[variable] = text
    if URL in changes and KEY not in changes and rows[KEY].value:
        if rows[KEY].origin == ENVIRONMENT:
            raise Conflict(f"The key in the environment variable {KEY} belongs to another endpoint. Change both there.")
        changes[KEY] = ""
    return changes


def _apply(changes: Mapping[str, str]) -> Settings:
    """Return the settings with changes that are not stored yet."""
    names = {f"WORKBENCH_{name.upper()}": name for name in Settings.model_fields}
    return load_settings(**{names[variable]: text for variable, text in changes.items()})


def _save(changes: Mapping[str, str]) -> str:
    """Write the changes and open the workbench with them; return a notice."""
    if not changes:
        return "Nothing has changed."
    file = write_settings(changes)
    st.session_state[_SAVES] = st.session_state.get(_SAVES, 0) + 1
    with st.spinner("Applying…"):
        OPENING.reload()
    forgotten = KEY in changes and URL in changes and not changes[KEY]
    return f"Saved in {file}." + (
        " The API key of the previous endpoint was removed; enter the new one." if forgotten else ""
    )


def _describe_cost(wb: Workbench, part: str, given: Mapping[str, str]) -> str:
    """Return what a model costs."""
    name = given[{"llm": MODEL, "embedding": EMBEDDING, "reranker": RERANKER}[part]]
    if name.partition(":")[0] not in PROVIDERS and not (part == "llm" and given[URL]):
        return "Nothing: it runs on this machine." if name else "Nothing: no model is set."
    if part == "llm":
        return "What its provider charges. An answer sends up to 6 passages, at most about 1,600 tokens."
    costs = wb.indexes.describe_reranker_cost(name) if part == "reranker" else wb.indexes.describe_cost("", name)
    unit = "1,000 searches" if part == "reranker" else "million tokens"
    return costs or f"Unknown; add ?price=DOLLARS per {unit} to its name."


# Keys of providers

PROVIDER_TITLES = {"openai": "OpenAI", "tei": "Your own endpoints"}  # others are their names, capitalised


def _show_keys(rows: Mapping[str, SettingValue]) -> None:
    names = {provider.key: family for family, provider in PROVIDERS.items() if provider.key}
    st.header("API keys of providers", anchor=False)
    titles = {key: PROVIDER_TITLES.get(family, family.capitalize()) for key, family in names.items()}
    with st.container(border=True, key="setup_keys"):
        variable = st.selectbox(
            "Provider", list(names), format_func=lambda key: f"{titles[key]} ({key}{', set' if key in rows else ''})"
        )
        row = rows.get(variable, SettingValue(variable, "", DEFAULT, is_secret=True))
        with st.form(f"key_{variable}", border=False):
            entered = _show_input(Field(variable, "API key"), row)
            effect, costs = describe_key(variable)
            st.html(f'<dl class="wb-facts"><dt>Changes</dt><dd>{effect}</dd><dt>Costs</dt><dd>{costs}</dd></dl>')
            with st.container(horizontal=True):
                saves = st.form_submit_button("Save", type="primary", key="save_key")
                tries = st.form_submit_button("Test", key="test_key")
                removes = st.form_submit_button("Remove", key="remove_key", disabled=not row.value)
    if saves and not entered:
        st.error("Enter a key.")
    elif saves or removes:
        run_change(lambda: _save({variable: "" if removes else entered}))
    elif tries:
        with report_errors(), st.spinner("Testing…"):
            st.success(escape_markdown(_try_key(variable, entered)))


def describe_key(variable: str) -> tuple[str, str]:
    """Return which models a provider's key makes available, and what they cost."""
    tables = (
        (LLM_PROVIDERS, "language model", "each answer"),
        (EMBEDDING_PROVIDERS, "embedding model", "each new passage and search"),
        (RERANK_PROVIDERS, "reranker", "each search"),
    )
    families = [family for family, provider in PROVIDERS.items() if provider.key == variable]
    kinds = [(kind, unit) for table, kind, unit in tables if any(family in table for family in families)]
    names = " or ".join(f"{family}:MODEL" for family in families)
    return (
        f"Makes {names} available as {' or '.join(kind for kind, _ in kinds)}.",
        f"Nothing until you choose one; then the provider charges for {', '.join(unit for _, unit in kinds)}.",
    )


def _try_key(variable: str, entered: str) -> str:
    """Test the models that use a key, with the one that was entered or else the stored one."""
    settings = load_settings()
    parts = {"llm": settings.llm_model, "embedding": settings.embedding_model, "reranker": settings.reranker}
    keys = {family: provider.key for family, provider in PROVIDERS.items()}
    used = [part for part, name in parts.items() if keys.get(name.partition(":")[0]) == variable]
    if not used:
        raise InvalidInput("No model of this provider is set. Save the key, enter a model of it above, and test that.")
    chosen = add_provider_key(settings, variable, entered) if entered else settings
    return " ".join(try_model(chosen, part) for part in used)


# Input of a parameter


def show_parameter_input(parameter: Parameter, key: str) -> bool | str | int | float:
    """Draw the input of a parameter and return its value."""
    label = parameter_title(parameter.name)
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


# Dialogs to create and drop an index

COMPONENT_FORM = "python:PACKAGE.MODULE:NAME?OPTION=VALUE"


@st.dialog("New index", width="large")
def ask_new_index(wb: Workbench) -> None:
    """Ask for the chunker and embedding model of a new index, and queue its build."""
    name = st.text_input("Name", placeholder="Lowercase letters, digits and _", max_chars=40, key="index_name")
    chunkers = list(CHUNKERS)
    chunker = st.selectbox(
        "Chunker", chunkers, chunkers.index(DEFAULT_CHUNKER), accept_new_options=True, key="index_chunker",
        help=f"Or a LlamaIndex parser: {COMPONENT_FORM}.",
    )  # fmt: skip
    options = {}
    if chunker in CHUNKERS:
        st.caption(CHUNKERS[chunker].why)
        parameters = CHUNKERS[chunker].parameters
        for column, parameter in zip(st.columns(len(parameters)), parameters, strict=True):
            with column:
                options[parameter.name] = show_parameter_input(parameter, f"index_{chunker}_{parameter.name}")
    transformations = st.multiselect(
        "Transformations", [], accept_new_options=True, key="index_transformations", placeholder="None",
        help=f"Extractors of titles, summaries or context, in this order: {COMPONENT_FORM}.",
    )  # fmt: skip
    models = [wb.settings.embedding_model, *(index.embedding_model for index in wb.indexes.list())]
    models += [row.name for row in MODELS if not row.for_tests]
    model = st.selectbox(
        "Embedding model", list(dict.fromkeys(models)), accept_new_options=True, key="index_model",
        help=f"{'; '.join(f'{row.name}: {row.title}' for row in MODELS)}. Other forms: {', '.join(NAME_FORMS)}.",
    )  # fmt: skip
    if st.toggle("Preview the passages of a document", key="index_preview"):
        _show_preview(wb, chunker, options, model)
    documents = wb.documents.count()
    st.caption(f"{count_text(documents, 'document')} to split into passages. Existing embeddings are reused.")
    if cost := wb.indexes.describe_cost(name.strip(), model):
        st.caption(cost.replace("$", "\\$"))
    if st.button("Create and build", type="primary", key="index_create"):
        run_change(lambda: _create_index(wb, name.strip(), chunker, options, transformations, model))


MAX_PASSAGES_PREVIEWED = 100  # of a document, by one chunker
MAX_PREVIEWED = 500  # documents offered for a preview


def _show_preview(wb: Workbench, chosen: str | None, options: Mapping[str, Any], model: str | None) -> None:
    """Show the passages of a document by up to three chunkers, next to each other."""
    titles = {document.id: document.title for document in wb.documents.list(limit=MAX_PREVIEWED)}
    document_id = st.selectbox(
        "Document", list(titles), format_func=make_label_function(titles), key="preview_document"
    )
    first = [chosen] if chosen in CHUNKERS else []
    names = list(dict.fromkeys([*first, *wb.indexes.PREVIEWED, *CHUNKERS]))
    picked = st.multiselect("Chunkers", names, names[:3], max_selections=3, key=f"preview_chunkers_{chosen}")
    if not document_id or not picked:
        return
    for column, name in zip(st.columns(len(picked)), picked, strict=True):
        with column, report_errors():
            own = options if name == chosen else {}
            cut = [each.text for each in wb.indexes.preview(document_id, name, own, model=model)]
            lengths = dict.fromkeys(f"{choose(map(len, cut)):,}" for choose in (min, max) if cut)
            sizes = f", {' to '.join(lengths)} characters" if cut else ""
            st.markdown(f"**{name}** · {count_text(len(cut), 'passage')}{sizes}")
            with st.container(height=320, key=f"preview_{name}"):
                st.html("".join(f'<p class="wb-cut">{escape(passage)}</p>' for passage in cut[:MAX_PASSAGES_PREVIEWED]))
                if len(cut) > MAX_PASSAGES_PREVIEWED:
                    st.caption(f"The first {MAX_PASSAGES_PREVIEWED} of {len(cut):,}.")


def _create_index(
    wb: Workbench, name: str, chunker: str, options: dict[str, Any], transformations: list[str], model: str | None
) -> str:
    index: Index = wb.indexes.create(
        name, chunker=chunker, options=options, transformations=transformations, embedding_model=model
    )
    wb.jobs.enqueue_index_build(index.name)
    return f'Index "{index.name}" created. It is being built; searches continue to work.'


@st.dialog("Attach a table", width="large")
def ask_table(wb: Workbench) -> None:
    """Ask for a pgvector table that is searched in place, and queue the reading of its rows."""
    st.caption("A table of LangChain, LlamaIndex or any other schema is searched in place. Nothing is written there.")
    name = st.text_input("Name", placeholder="Lowercase letters, digits and _", max_chars=40, key="table_name")
    url = st.text_input(
        "Postgres URL", type="password", key="table_url", placeholder="postgresql://USER:PASSWORD@HOST:PORT/DATABASE",
        help="It is stored and never shown. Leave it empty for a table in the workbench's own database.",
    )  # fmt: skip
    table = st.text_input("Table or view", "langchain_pg_embedding", key="table_table")
    collection = st.text_input("Collection", key="table_collection", help="Required if a LangChain table has several.")
    columns: dict[str, str] = {}
    with st.expander("Columns, if they are not recognised"):
        for column, role in zip(st.columns(4), ("id", "text", "vector", "metadata"), strict=True):
            with column:
                columns[role] = st.text_input(role.capitalize(), key=f"table_column_{role}")
    filters = st.text_input("Filter", key="table_filter", placeholder="tenant=acme, language=en")
    models = [wb.settings.embedding_model, *(row.name for row in MODELS if not row.for_tests)]
    model = st.selectbox(
        "Embedding model of its vectors", list(dict.fromkeys(models)), accept_new_options=True, key="table_model",
        help=f"A sample of its texts is embedded to check it. Other forms: {', '.join(NAME_FORMS)}.",
    )  # fmt: skip
    if st.button("Attach", type="primary", key="table_attach"):
        run_change(lambda: _attach_table(wb, name.strip(), url, table, columns, model, collection, filters))


def _attach_table(
    wb: Workbench,
    name: str,
    url: str,
    table: str,
    columns: dict[str, str],
    model: str | None,
    collection: str,
    filters: str,
) -> str:
    chosen = parse_assignments([part for part in filters.split(",") if part.strip()], "filter")
    index: Index = wb.indexes.attach(
        name, url or None, table, columns, model=model, collection=collection.strip() or None, filter=chosen, fill=False
    )
    wb.jobs.enqueue_index_build(index.name)
    notes = " ".join(f"{note}." for note in list_table_notes(index.attachment))
    return f'Table attached as "{index.name}". Its rows are being read. {notes}'.strip()


def list_table_notes(attachment: Mapping[str, JsonValue] | None) -> list[str]:
    """Return notes on an attached table: its index, its model, and rows that are left out."""
    known = attachment or {}
    return [str(note) for kind in ("notes", "left_out") for note in cast("list[JsonValue]", known.get(kind, []))]


@st.dialog("Drop index")
def confirm_drop(wb: Workbench, name: str) -> None:
    """Ask for confirmation before an index is dropped."""
    index = wb.indexes.get(name)
    st.markdown(
        f"This drops **{escape_markdown(name)}** with {count_text(index.passages_count, 'passage')}. "
        f"Documents are kept, and it "
        "can be rebuilt. Strategies promoted with it fall back to the default index."
    )
    show_confirmation(f"Drop {escape_markdown(name)}", lambda: _drop_index(wb, name))


def _drop_index(wb: Workbench, name: str) -> str:
    wb.indexes.delete(name)
    return f'Index "{name}" dropped. Documents are kept.'


INDEX_COLUMNS = (
    "Index", "Chunker", "Embedding model", "Documents", "Passages", "Vector search", "On disk", "Status",
)  # fmt: skip


def show_indexes(wb: Workbench, indexes: Sequence[IndexStatus]) -> None:
    """Show the indexes and the actions for the selected one."""
    with st.container(horizontal=True, vertical_alignment="center"):
        st.header("Indexes", anchor=False, width="stretch")
        if st.button("Attach table", icon=":material/table:", key="index_attach"):
            ask_table(wb)
        if st.button("New index", icon=":material/add:", key="index_new"):
            ask_new_index(wb)
    show_language_offer(wb)
    building = wb.jobs.list_builds()
    missing = {index["name"]: wb.indexes.count_missing(index["name"]) for index in indexes}
    actions = st.container(key="index_actions", horizontal=True, vertical_alignment="center", gap="small")
    rows = {
        index["name"]: _make_index_cells(index, missing[index["name"]], building.get(index["name"]))
        for index in indexes
    }
    chosen = show_rows("indexes", INDEX_COLUMNS, rows, label="Indexes", noun="indexes", selectable=True).selected
    with actions:
        picked = next((index for index in indexes if (index["name"],) == chosen), None)
        if picked is None:
            st.caption("Select an index to build it, make it the default or drop it.")
        else:
            _show_actions(wb, picked, missing[picked["name"]], picked["name"] in building)


def _show_actions(wb: Workbench, index: IndexStatus, missing: int, building: bool) -> None:
    name, attached = index["name"], index["attachment"]
    st.markdown(f"**{escape_markdown(name)}**", width="content")
    if attached is not None:
        reading = st.button("Sync", icon=":material/sync:", disabled=building, help=_describe_table(attached))
    else:
        reading = st.button(
            "Build", icon=":material/construction:", disabled=building or not missing, help=_describe_missing(missing)
        )
    if reading:
        run_change(lambda: _build_index(wb, name))
    usable = index["status"] == "ready" and not index["is_default"] and attached is None
    if st.button(
        "Make default", icon=":material/check:", disabled=not usable, help="Use it for searches that name no index."
    ):
        run_change(lambda: _make_default(wb, name))
    if st.button(
        "Drop", icon=":material/delete:", disabled=building or index["is_default"],
        help="Documents are kept. To drop the default index, choose another default first.",
    ):  # fmt: skip
        confirm_drop(wb, name)


def _describe_missing(missing: int) -> str:
    return f"{count_text(missing, 'document')} missing." if missing else "No documents missing."


def _describe_table(attachment: Mapping[str, JsonValue]) -> str:
    """Return the table that an attached index reads, with notes."""
    table, place = str(attachment["table"]).replace('"', ""), attachment["place"]
    rows = count_text(as_integer(attachment["rows"]), "row")
    parts = [
        f"Read new, changed and deleted rows of {table} at {place}",
        f"{rows}, {as_integer(attachment['matched']):,} of them in documents here, synced {attachment['synced_at']}",
        *list_table_notes(attachment),
    ]
    return escape_markdown(". ".join(parts) + ".", 1000)


def _build_index(wb: Workbench, name: str) -> str:
    wb.jobs.enqueue_index_build(name)
    return f'Building index "{name}"; searches continue to work.'


def _make_default(wb: Workbench, name: str) -> str:
    wb.indexes.set_default(name)
    return f'"{name}" is now the default index.'


def _make_index_cells(index: IndexStatus, missing: int, job: Job | None) -> list[RowCell]:
    """Return the cells of an index; ``job`` is the job that builds it."""
    options = ", ".join(f"{name} {value}" for name, value in index["chunker_options"].items())
    families = f"and {index['family_count']:,} conversations, articles and archives" if index["family_count"] else ""
    is_described = index["graph"] or index["attachment"] is not None
    return [
        Noted(index["name"], "default" if index["is_default"] else ""),
        Noted(index["chunker"], "; ".join(filter(None, [options, *index["transformations"]]))),
        Noted(index["embedding_model"], f"{index['dimensions']:,} dimensions"),
        Noted(index["documents_count"], families),
        index["passages_count"],
        Noted(_describe_search(index), index["vector_search"] if is_described else ""),
        Figure(size_text(index["bytes"]), index["bytes"]),
        Noted(_status_cell(index["status"], missing, job), " ".join(index["notes"])),
    ]


def _describe_search(index: IndexStatus) -> str:
    """Return "in its table" if attached, else "exact" or "graph", with the recall of the graph."""
    graph = index["graph"]
    if index["attachment"] is not None:
        return "in its table"
    if index["vector_search"] == "exact":
        return index["vector_search"]
    recall = f"recall {graph['recall']:.2%}" if graph else "not built yet"
    return f"graph, {recall}" if index["has_graph"] else f"exact (graph: {recall})"


def _status_cell(status: str, missing: int, job: Job | None) -> dict[str, str]:
    if job is not None:
        return {
            "state": "failed" if job.stalled else "busy",
            "text": "building" if job.state == "running" else job.state,
        }
    if status == "failed":
        return {"state": "failed", "text": "failed"}
    if missing or status != "ready":
        return {"state": "waiting", "text": f"{count_text(missing, 'document')} missing" if missing else "incomplete"}
    return {"state": "done", "text": "ready"}


# Workers and jobs

REFRESH_S = 2.0  # seconds between refreshes
JOB_COLUMNS = ("Job", "Progress", "Parts", "Workers", "Time left", "Status")
STATUS_STATES = {"running": "running", "queued": "waiting"}


def show_jobs(wb: Workbench, stalled: int) -> None:
    """Show workers and jobs; run as a fragment that refreshes itself.

    If the number of stalled jobs differs from ``stalled``, redraw the page, whose checks depend on it.
    """
    work = wb.health.work()
    if len(work.stalled) != stalled:
        st.rerun()
    if work.jobs:  # the checks count them too
        st.header("Jobs", anchor=False)
        rows = {job.id: _make_job_cells(job) for job in work.jobs}
        for job in work.stalled:
            st.warning(f"**{escape_markdown(job.title, 120)}** · {escape_markdown(job.stalled or '')}")
        show_rows("work", JOB_COLUMNS, rows, label="Queued and running jobs", noun="jobs")


def _make_job_cells(job: JobLoad) -> list[RowCell]:
    stalled = {"state": "failed", "text": "stalled"}
    return [
        job.title,
        Figure(progress_text(job.share, job.done, job.total), job.done),
        Figure(f"{job.parts_done} of {job.parts}" if job.parts else "–", job.parts),
        job.workers,
        duration_text(job.seconds_left) or "–",
        stalled if job.stalled else {"state": STATUS_STATES.get(job.status, job.status), "text": job.state},
    ]


CHECK_COLUMNS = (
    Column("name", "Check", narrow=True),
    Column("outcome", "Outcome", "state", narrow=True),
    Column("detail", "Detail"),
)


VIEWS = {"status": "Status", "setup": "Set up"}


def page() -> None:
    """Show the status (health first, then jobs, indexes and facts), or the set-up of the models."""
    wb = OPENING.workbench
    st.title("System", anchor=False)
    show_notice()
    if choose_in_url("View", VIEWS, "view", "system_view") == "setup":
        show_setup(wb)
    else:
        _show_status(wb)


def _show_status(wb: Workbench) -> None:
    replica = wb.health.replica()
    _show_health(wb, replica)
    work = wb.health.work()
    st.fragment(show_jobs, run_every=REFRESH_S)(wb, len(work.stalled))
    status = wb.health.status(replica, work)
    show_indexes(wb, status["indexes"])
    left, right = st.columns(2, gap="large")
    with left:
        st.header("Database and disk", anchor=False)
        show_facts(_list_database_facts(status))
        st.header("Models", anchor=False)
        show_facts(_list_model_facts(wb))
    with right:
        st.header("Corpus", anchor=False)
        show_facts({name.capitalize(): f"{count:,}" for name, count in status["corpus"].items()})
        st.header("Versions", anchor=False)
        show_facts({"RAG Workbench": status["version"], "Python": status["python"], **status["packages"]})


def _show_health(wb: Workbench, replica: ReplicaState | None) -> None:
    checks = wb.health.doctor(replica)
    bad = [check for check in checks if not check.ok]
    with st.container(horizontal=True, vertical_alignment="center"):
        summary = "All systems OK" if not bad else f"{len(bad)} of {len(checks)} checks failed. Details are below."
        st.markdown(f"**{summary}**", width="stretch")
        st.button("Check again", icon=":material/refresh:")
    rows = [
        {
            "id": check.name,
            "name": check.name,
            "cells": {
                "name": check.name.capitalize().replace("Pgvector", "pgvector"),
                "outcome": {"state": "done", "text": "OK"} if check.ok else {"state": "failed", "text": "failed"},
                "detail": check.detail,
            },
        }
        for check in checks
    ]
    show_table("checks", CHECK_COLUMNS, rows, label="Health checks", noun="checks", filters=False)


def _list_database_facts(status: Status) -> dict[str, str]:
    """Return facts about the database; the checks report the state of the replica."""
    database = status["database"]
    return {
        "Server": "Embedded, in the data folder" if database["embedded"] else "Server of WORKBENCH_DATABASE_URL",
        "Size": size_text(database["bytes"]),
        "Data folder": status["home"],
    }


def _list_model_facts(wb: Workbench) -> dict[str, str]:
    settings = wb.settings
    answers = settings.llm_model or "None (answers are cited extracts)"
    if settings.llm_base_url:
        answers += f" at {settings.llm_base_url}"
    return {
        "Embedding": settings.embedding_model,
        "Threads": str(settings.embedding_threads or "One per core"),
        "Reranker": settings.reranker,
        "Language model": answers,
        "State": "Loaded" if OPENING.is_warm else "Loading",
    }


def show_facts(values: Mapping[str, str]) -> None:
    """Show names and values as a definition list."""
    items = "".join(f"<dt>{escape(name)}</dt><dd>{escape(str(value))}</dd>" for name, value in values.items())
    st.html(f'<dl class="wb-facts">{items}</dl>')

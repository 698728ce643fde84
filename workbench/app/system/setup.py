"""The view "Set up" of the System page: language model, API keys, embedding model and reranker, stored in .env."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, NamedTuple

import streamlit as st

from workbench.app.state.shared import OPENING
from workbench.app.widgets.looks import escape_markdown
from workbench.app.widgets.notices import report_errors, run_change
from workbench.errors import Conflict, InvalidInput
from workbench.models.cross_encoder import RERANK_FAMILIES
from workbench.models.endpoints import EMBEDDING_PROVIDERS, RERANK_PROVIDERS
from workbench.models.model_names import find_price, format_dollars
from workbench.models.registry import MODELS
from workbench.settings import (
    DEFAULT,
    ENVIRONMENT,
    Settings,
    SettingValue,
    list_settings,
    load_settings,
    write_settings,
)
from workbench.workbench import try_model

if TYPE_CHECKING:
    from workbench.workbench import Workbench

URL, MODEL, KEY = "WORKBENCH_LLM_BASE_URL", "WORKBENCH_LLM_MODEL", "WORKBENCH_LLM_API_KEY"
EMBEDDING, RERANKER = "WORKBENCH_EMBEDDING_MODEL", "WORKBENCH_RERANKER"
_SAVES = "setup_saves"  # part of the keys of inputs for secrets, so that a saved one leaves the session


class Field(NamedTuple):
    """An input for a setting."""

    variable: str
    label: str
    choices: tuple[str, ...] = ()  # offered values; others can be entered


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
            Field(URL, "URL of an OpenAI-compatible endpoint"),
            Field(MODEL, "Model, or the path of a GGUF file"),
            Field(KEY, "API key"),
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
    with st.form(f"setup_{section.part}"):
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
    elif saves:
        run_change(lambda: _save(find_changes(given, rows)))
    elif tries:
        with report_errors(), st.spinner("Testing…"):
            st.success(escape_markdown(try_model(_apply(find_changes(given, rows)), section.part)))


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
        text = st.text_input(field.label, row.value, key=key, disabled=fixed)
    st.caption(escape_markdown(_describe_origin(row)))
    return (text or "").strip()


def _describe_origin(row: SettingValue) -> str:
    if row.origin == ENVIRONMENT:
        return f"From the environment variable {row.variable}, which takes precedence. Change it there."
    return f"From {row.origin}" if row.origin != DEFAULT else "Default" if row.value else "Not set"


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
            raise Conflict(f"{KEY} comes from the environment and belongs to another endpoint; change both there.")
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
    if part == "llm":
        if not given[URL]:
            return "Nothing: it runs on this machine, or is not set."
        return "What its provider charges. An answer sends up to 6 passages, at most about 1,600 tokens."
    name = given[EMBEDDING if part == "embedding" else RERANKER]
    if name.partition(":")[0] not in (*EMBEDDING_PROVIDERS, *RERANK_FAMILIES):
        return "Nothing: it runs on this machine."
    if part == "reranker":
        price = find_price(name)
        return (
            f"{format_dollars(price)} per 1,000 searches."
            if price
            else "Unknown; add ?price=DOLLARS per 1,000 searches."
        )
    costs = wb.indexes.describe_cost("", name)
    return costs or "Unknown; add ?price=DOLLARS per million tokens to its name."


# Keys of providers


def _show_keys(rows: Mapping[str, SettingValue]) -> None:
    providers = {**EMBEDDING_PROVIDERS, **RERANK_PROVIDERS}
    names = {provider.key: family for family, provider in providers.items() if provider.key}
    st.header("API keys of providers", anchor=False)
    held = [row for row in rows.values() if row.variable in names]
    if held:
        st.html(
            '<dl class="wb-facts">'
            + "".join(f"<dt>{row.variable}</dt><dd>Set. {escape(_describe_origin(row))}</dd>" for row in held)
            + "</dl>"
        )
    with st.form("setup_keys"):
        variable = st.selectbox("Provider", list(names), format_func=lambda key: f"{names[key].capitalize()} ({key})")
        row = rows.get(variable, SettingValue(variable, "", DEFAULT, is_secret=True))
        entered = st.text_input(
            "API key", type="password", key=f"setup_key{st.session_state.get(_SAVES, 0)}", autocomplete="new-password"
        ).strip()
        st.html('<dl class="wb-facts"><dt>Changes</dt><dd>Models of this provider can be used.</dd></dl>')
        with st.container(horizontal=True):
            saves = st.form_submit_button("Save", type="primary", key="save_key")
            tries = st.form_submit_button("Test", key="test_key")
            removes = st.form_submit_button("Remove", key="remove_key")
    if saves or removes:
        run_change(lambda: _save_key(row, "" if removes else entered, removes=removes))
    elif tries:
        with report_errors(), st.spinner("Testing…"):
            st.success(escape_markdown(_try_key(variable, entered)))


def _save_key(row: SettingValue, entered: str, *, removes: bool) -> str:
    if not entered and not removes:
        raise InvalidInput("Enter a key.")
    return _save({row.variable: entered})


def _try_key(variable: str, entered: str) -> str:
    """Test the models that use a key, with the one that was entered or else the stored one."""
    from workbench.settings import add_provider_key

    settings = load_settings()
    parts = {
        "embedding": (settings.embedding_model, EMBEDDING_PROVIDERS),
        "reranker": (settings.reranker, RERANK_PROVIDERS),
    }
    used = [
        part
        for part, (name, providers) in parts.items()
        if (provider := providers.get(name.partition(":")[0])) and provider.key == variable
    ]
    if not used:
        raise InvalidInput("No model of this provider is set. Save the key, enter a model of it above, and test that.")
    chosen = add_provider_key(settings, variable, entered) if entered else settings
    return " ".join(try_model(chosen, part) for part in used)

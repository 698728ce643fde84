"""The extras of the package, and the sentence that names the one which a piece of work needs."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec

from workbench.errors import ConfigurationError


@dataclass(frozen=True, slots=True)
class Extra:
    """An extra: the work that needs it, as the subject of a sentence, and the modules that it brings."""

    name: str
    work: str
    modules: tuple[str, ...]

    @property
    def is_installed(self) -> bool:
        """True when its first module is there; the others come with it."""
        return find_spec(self.modules[0]) is not None

    @property
    def sentence(self) -> str:
        """The sentence for a person without it."""
        return f"{self.work} needs the extra '{self.name}'; run: pip install 'rag-workbench[{self.name}]'."


EXTRAS: dict[str, Extra] = {
    extra.name: extra
    for extra in (
        Extra(
            "app",
            "The app (and results as tables or plots)",
            ("streamlit", "altair", "pandas", "latex2mathml", "markdown_it", "mdit_py_plugins"),
        ),
        Extra("crawl", "Reading web pages", ("crawl4ai", "playwright", "protego")),
        Extra(
            "eval",
            "Measuring quality or speed",
            ("ir_measures", "ragas", "langchain_core", "langchain_community", "tiktoken", "bm25s", "matplotlib"),
        ),
        Extra("local-llm", "A language model on this machine", ("xllamacpp",)),
        Extra("otel", "Telemetry", ("opentelemetry.sdk", "opentelemetry.exporter")),
        Extra("llm", "A language model", ("openai", "llama_index.llms", "llama_index.embeddings")),
    )
}


def check_extra(name: str) -> None:
    """Let work begin that needs an extra.

    Raises:
        ConfigurationError: the extra is not installed; the sentence says how to install it.
    """
    extra = EXTRAS[name]
    if not extra.is_installed:
        raise ConfigurationError(extra.sentence)


def missing_extra(error: ModuleNotFoundError) -> ConfigurationError | None:
    """Return the error that names the extra of a module that could not be imported; None for any other module."""
    module = f"{error.name or ''}."
    brings = (extra for extra in EXTRAS.values() if module.startswith(tuple(f"{name}." for name in extra.modules)))
    extra = next(brings, None)
    return ConfigurationError(extra.sentence) if extra else None

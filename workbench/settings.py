"""All settings in one typed, frozen object; only entry points and the composition root read it."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from io import StringIO
from pathlib import Path

import platformdirs
from dotenv import dotenv_values
from dotenv.parser import parse_stream
from pydantic import AliasChoices, Field, SecretStr, ValidationError
from pydantic_settings import BaseSettings, DotEnvSettingsSource, PydanticBaseSettingsSource, SettingsConfigDict

from workbench.errors import ConfigurationError


def default_home() -> Path:
    """Return the platform's user data folder; ``/var/lib`` for root, since the server's user must enter its parents."""
    if sys.platform != "win32" and os.geteuid() == 0:
        return Path("/var/lib/rag-workbench")
    return Path(platformdirs.user_data_dir("rag-workbench", appauthor=False))


class Settings(BaseSettings):
    """All settings, from ``WORKBENCH_*`` variables or ``.env``; see ``.env.example``."""

    model_config = SettingsConfigDict(
        env_prefix="WORKBENCH_",
        env_file="",  # .env, which only our own source reads; None for no file
        extra="ignore",
        frozen=True,
        env_ignore_empty=True,
        populate_by_name=True,
    )

    home: Path = Field(default_factory=default_home, description="Data folder: database, model files, crawl cache.")
    database_url: SecretStr | None = Field(
        None, description="URL of Postgres 16+ with pgvector; empty means the embedded server under HOME."
    )
    read_database_url: SecretStr | None = Field(
        None, description="URL of a replica for searches; empty means the primary database."
    )
    pool_size: int = Field(8, ge=1, le=200, description="Maximum database connections per process.")

    embedding_model: str = Field(
        "minilm",
        description="'minilm' (built in, English), 'multilingual' (100 languages, needs the extra multilingual), "
        "'hash' (for tests), a Hugging Face id, 'onnx:FOLDER', 'fastembed:MODEL', 'python:PACKAGE.MODULE.ATTRIBUTE', "
        "or 'PROVIDER:MODEL?option=value' with openai, cohere, voyage, jina, mistral, gemini, ollama, tei or endpoint "
        "(any OpenAI-compatible URL); see docs/models.md.",
    )
    embedding_threads: int = Field(0, ge=0, description="Threads for the embedding model; 0 means one per core.")
    reranker: str = Field(
        "late-interaction",
        description="'late-interaction' (built in) or a cross-encoder: a Hugging Face id, a local folder, or "
        "'PROVIDER:MODEL' with cohere, jina, voyage, tei or endpoint.",
    )
    llm_base_url: str = Field(
        "", description="URL of an OpenAI-compatible endpoint; empty means a local model, or extractive answers."
    )
    llm_model: str = Field(
        "",
        description="Model name at that endpoint; without an endpoint, the path of a GGUF file to run locally "
        "(needs the extra local-llm).",
    )
    llm_api_key: SecretStr | None = Field(None, description="API key for that endpoint, if required.")
    llm_timeout: float = Field(60.0, gt=0, description="Timeout of a request to the language model, in seconds.")

    config_file: Path | None = Field(
        None, description="File that declares your own strategies; empty means HOME/workbench.toml."
    )
    strategy_seconds: float = Field(
        30.0, gt=0, le=3600, description="Time limit for a question to one of your own strategies, in seconds."
    )
    strategy_headers: SecretStr | None = Field(
        None,
        description="HTTP headers for strategies that are endpoints, as JSON keyed by URL prefix: "
        '{"https://host/": {"Authorization": "Bearer TOKEN"}}.',
    )

    judge_seconds: float = Field(600.0, gt=0, description="Maximum seconds of LLM judging per evaluation.")
    judge_calls: int = Field(2_000, ge=1, description="Maximum LLM calls for judging per evaluation.")
    judge_tokens: int = Field(1_000_000, ge=1, description="Maximum LLM tokens for judging per evaluation.")

    file_roots: str = Field(
        "",
        description="Folders that MCP tools may read files from, separated by ':'; empty means the working directory.",
    )
    crawl_allow_hosts: str = Field(
        "", description="Hosts on private or loopback networks that may be crawled, separated by ','."
    )
    crawl_browser_url: str = Field(
        "",
        description="CDP URL of a Chromium on this machine, for pages that need JavaScript; "
        "empty means the workbench starts its own.",
    )
    run_worker: bool = Field(
        True, description="Run jobs inside the app and the MCP server; 'workbench worker' runs them in any process."
    )
    articles_dir: Path | None = Field(
        None, description="Folder for the articles tools; empty means the sample articles."
    )
    archives_dir: Path | None = Field(None, description="Folder for the tool searchLocalArchives.")
    mcp_token: SecretStr | None = Field(None, description="Bearer token for MCP over HTTP.")
    app_password: SecretStr | None = Field(
        None, description="Password of the app under 'workbench serve'; empty means MCP_TOKEN, or none without one."
    )
    mcp_log_calls: bool = Field(True, description="Log tool calls (never the token) in the database.")
    mcp_allowed_hosts: str = Field(
        "", description="Additional allowed Host headers for MCP over HTTP, such as 'wiki.lan:8765', separated by ','."
    )
    mcp_allowed_origins: str = Field(
        "", description="Additional allowed origins for MCP over HTTP, such as 'https://wiki.lan', separated by ','."
    )
    mcp_call_seconds: float = Field(30.0, gt=0, description="Time limit of a read-only tool call, in seconds.")
    mcp_write_seconds: float = Field(600.0, gt=0, description="Time limit of a tool call that writes, in seconds.")
    telemetry: bool = Field(
        False,
        description="Send traces by OTLP to OTEL_EXPORTER_OTLP_ENDPOINT, by default port 4318 of this "
        "machine (needs the extra otel).",
    )
    telemetry_content: bool = Field(
        False, description="Also record the texts of questions, passages, prompts and answers in traces."
    )
    search_db_path: Path | None = Field(
        None,
        validation_alias=AliasChoices("SEARCH_DB_PATH", "search_db_path"),
        description="Folder of the embedded database, instead of HOME/postgres. Ignored in .env unless a WORKBENCH_ "
        "variable is set there too, since the file may belong to another project.",
    )

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Read arguments first, then the environment, then the workbench's variables in ``.env``."""
        del file_secret_settings
        assert isinstance(dotenv_settings, DotEnvSettingsSource)
        file = ".env" if dotenv_settings.env_file == "" else dotenv_settings.env_file
        return init_settings, env_settings, _OwnDotEnvVariables(settings_cls, file)

    @property
    def postgres_dir(self) -> Path:
        """Folder of the embedded server's data files."""
        return self.search_db_path or self.home / "postgres"

    @property
    def has_llm(self) -> bool:
        """True if a language model is configured, at an endpoint or on this machine."""
        return bool(self.llm_base_url or self.llm_model)

    @property
    def models_dir(self) -> Path:
        """Folder of model files that are built or downloaded once."""
        return self.home / "models"


class _OwnDotEnvVariables(DotEnvSettingsSource):
    """The workbench's variables in ``.env``: those with its prefix, and SEARCH_DB_PATH if there is any of those."""

    def _read_env_file(self, file_path: Path) -> Mapping[str, str | None]:
        content = file_path.read_bytes()  # once: a password manager makes it a pipe
        if b"\0" in content:  # such as UTF-16 without a byte order mark
            raise UnicodeDecodeError("utf-8", b"\0", 0, 1, "a NUL byte")
        lines = list(parse_stream(StringIO(content.decode("utf-8-sig"))))
        for line in lines:
            if line.error and "workbench_" in line.original.string.lower():
                place = f"Line {line.original.line} of {file_path.absolute()}"
                raise ConfigurationError(f"{place} is not NAME=VALUE with closed quotes; correct it.")
        text = "".join(line.original.string for line in lines if not line.error)
        values = {name.lower(): value for name, value in dotenv_values(stream=StringIO(text)).items() if value}
        own = {name: value for name, value in values.items() if name.lower().startswith("workbench_")}
        if own and (path := values.get("search_db_path")):
            own["search_db_path"] = path
        return own


def load_settings(**overrides: object) -> Settings:
    """Read the environment and ``.env``; keyword arguments take precedence.

    Raises:
        ConfigurationError: A value is invalid; the message names the variable and the problem.
    """
    values = {name: value for name, value in overrides.items() if value is not None}
    try:
        return Settings(**values)  # pyright: ignore[reportArgumentType]
    except (UnicodeDecodeError, OSError) as error:
        reason = "is not UTF-8" if isinstance(error, UnicodeDecodeError) else f"is not readable ({error.strerror})"
        raise ConfigurationError(
            f"The file {Path('.env').absolute()} {reason}; save it as UTF-8 text, or run the command in another folder."
        ) from error
    except ValidationError as error:
        first = error.errors()[0]
        name = str(first["loc"][0]) if first["loc"] else "settings"
        variable = name if name == "SEARCH_DB_PATH" else f"WORKBENCH_{name.upper()}"
        raise ConfigurationError(
            f"{variable} is not valid: {first['msg']}. Correct it in the environment or in .env."
        ) from error


def provider_variables() -> dict[str, str]:
    """Return the environment variables from which models behind HTTP take keys and URLs, such as VOYAGE_API_KEY."""
    wanted = ("_API_KEY", "_API_BASE", "_BASE_URL", "OLLAMA_HOST")
    return {name: value for name, value in os.environ.items() if name.endswith(wanted)}  # noqa: TID251 - as below


def make_environment(settings: Settings) -> dict[str, str]:
    """Return this process's environment plus variables that give a child process the same settings."""
    environment = dict(os.environ)  # noqa: TID251 - this module owns access to the environment
    for name in Settings.model_fields:
        value = getattr(settings, name)
        variable = "SEARCH_DB_PATH" if name == "search_db_path" else f"WORKBENCH_{name.upper()}"
        if value is None:
            environment.pop(variable, None)
        else:
            environment[variable] = value.get_secret_value() if isinstance(value, SecretStr) else str(value)
    return environment

"""One typed, frozen object with everything that can be set; only entry points and the composition root read it."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

import platformdirs
from pydantic import AliasChoices, Field, SecretStr, ValidationError
from pydantic_settings import BaseSettings, DotEnvSettingsSource, PydanticBaseSettingsSource, SettingsConfigDict

from workbench.errors import ConfigurationError


def default_home() -> Path:
    """Return the platform's user data folder; for root ``/var/lib``, as the embedded server opens its parents."""
    if sys.platform != "win32" and os.geteuid() == 0:
        return Path("/var/lib/rag-workbench")
    return Path(platformdirs.user_data_dir("rag-workbench", appauthor=False))


class Settings(BaseSettings):
    """Everything that can be set, from ``WORKBENCH_*`` variables or ``.env``; see ``.env.example``."""

    model_config = SettingsConfigDict(
        env_prefix="WORKBENCH_",
        env_file=".env",
        extra="ignore",
        frozen=True,
        env_ignore_empty=True,
        populate_by_name=True,
    )

    home: Path = Field(default_factory=default_home, description="Data folder: database, model files, crawl cache.")
    database_url: SecretStr | None = Field(
        None, description="Postgres 16+ with pgvector; empty means the embedded server under HOME."
    )
    read_database_url: SecretStr | None = Field(
        None, description="A replica for searches; empty means the same database."
    )
    pool_size: int = Field(8, ge=1, le=200, description="Connections a process may hold open.")

    embedding_model: str = Field(
        "minilm",
        description="'minilm' (built in, English), 'multilingual' (a hundred languages, the extra of that name), "
        "'hash' (for tests), a Hugging Face id, 'openai:MODEL' (at OPENAI_API_BASE, with "
        "OPENAI_API_KEY) or 'ollama:MODEL'.",
    )
    embedding_threads: int = Field(0, ge=0, description="Threads for the embedding model; 0 means one per core.")
    reranker: str = Field(
        "late-interaction",
        description="'late-interaction' (built in), or a cross-encoder: a Hugging Face id or a local folder.",
    )
    llm_base_url: str = Field(
        "", description="Any OpenAI-compatible endpoint; empty means a model of this machine, or answers as extracts."
    )
    llm_model: str = Field(
        "",
        description="The model's name at that endpoint; without one the path of a GGUF file, which runs in a process "
        "of its own (the extra local-llm).",
    )
    llm_api_key: SecretStr | None = Field(None, description="The key for that endpoint, where it wants one.")
    llm_timeout: float = Field(60.0, gt=0, description="Seconds to wait for the language model.")

    judge_seconds: float = Field(600.0, gt=0, description="Seconds that an LLM may judge one evaluation.")
    judge_calls: int = Field(2_000, ge=1, description="Calls to the LLM that judging one evaluation may take.")
    judge_tokens: int = Field(1_000_000, ge=1, description="Tokens that judging one evaluation may take.")

    file_roots: str = Field(
        "",
        description="Folders the MCP tools may read files from, separated by ':'; empty means the working directory.",
    )
    crawl_allow_hosts: str = Field(
        "", description="Hosts on private or loopback networks that may be crawled, separated by ','."
    )
    crawl_browser_url: str = Field(
        "",
        description="CDP address of a Chromium that runs on this machine, for pages that need JavaScript; "
        "empty means one of our own.",
    )
    run_worker: bool = Field(
        True, description="Run jobs inside the app and the MCP server; 'workbench worker' runs them anywhere."
    )
    articles_dir: Path | None = Field(
        None, description="Folder of articles for the articles tools; empty means the sample's."
    )
    archives_dir: Path | None = Field(None, description="Folder of archives for searchLocalArchives.")
    mcp_token: SecretStr | None = Field(None, description="Bearer token for MCP over HTTP.")
    app_password: SecretStr | None = Field(
        None, description="Password of the app under 'workbench serve'; empty means the token, and none without one."
    )
    mcp_log_calls: bool = Field(True, description="Keep a log of tool calls (never the token) in the database.")
    mcp_allowed_hosts: str = Field(
        "", description="Further Host headers that MCP over HTTP answers to, such as 'wiki.lan:8765', separated by ','."
    )
    mcp_allowed_origins: str = Field(
        "", description="Further web origins that may call MCP over HTTP, such as 'https://wiki.lan', separated by ','."
    )
    mcp_call_seconds: float = Field(30.0, gt=0, description="Longest that a tool call that only reads may take.")
    mcp_write_seconds: float = Field(600.0, gt=0, description="Longest that a tool call that writes may take.")
    telemetry: bool = Field(
        False,
        description="Send traces and metrics by OTLP to OTEL_EXPORTER_OTLP_ENDPOINT, by default this machine's port "
        "4318 (the extra otel).",
    )
    search_db_path: Path | None = Field(
        None,
        validation_alias=AliasChoices("SEARCH_DB_PATH", "search_db_path"),
        description="Folder of the embedded database, in place of HOME/postgres. In .env it counts only if a "
        "WORKBENCH_ variable is set there too: the file may be another project's.",
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
        """Read arguments first, then the environment, then our variables of ``.env``."""
        del file_secret_settings
        assert isinstance(dotenv_settings, DotEnvSettingsSource)
        return init_settings, env_settings, _OwnVariables(settings_cls, dotenv_settings.env_file)

    @property
    def postgres_dir(self) -> Path:
        """Folder of the embedded server's data."""
        return self.search_db_path or self.home / "postgres"

    @property
    def has_llm(self) -> bool:
        """True when a language model is named, at an endpoint or on this machine."""
        return bool(self.llm_base_url or self.llm_model)

    @property
    def models_dir(self) -> Path:
        """Folder of model files that are built or downloaded once."""
        return self.home / "models"


class _OwnVariables(DotEnvSettingsSource):
    """The variables of ``.env`` that are ours: those with our prefix, and with one of these SEARCH_DB_PATH."""

    def _read_env_file(self, file_path: Path) -> Mapping[str, str | None]:
        values = super()._read_env_file(file_path)
        own = {name: value for name, value in values.items() if name.lower().startswith("workbench_")}
        if own and (path := values.get("search_db_path")):
            own["search_db_path"] = path
        return own


def load_settings(**overrides: object) -> Settings:
    """Read the environment and ``.env``; keyword arguments win.

    Raises:
        ConfigurationError: a value is not valid; the message names the variable and says what is.
    """
    values = {name: value for name, value in overrides.items() if value is not None}
    try:
        return Settings(**values)  # pyright: ignore[reportArgumentType]
    except (UnicodeDecodeError, OSError) as error:
        reason = "is not UTF-8" if isinstance(error, UnicodeDecodeError) else f"cannot be read ({error.strerror})"
        raise ConfigurationError(
            f"The file {Path('.env').absolute()} {reason}; save it as a text in UTF-8, or run the command in another "
            "folder."
        ) from error
    except ValidationError as error:
        first = error.errors()[0]
        name = str(first["loc"][0]) if first["loc"] else "settings"
        variable = name if name == "SEARCH_DB_PATH" else f"WORKBENCH_{name.upper()}"
        raise ConfigurationError(
            f"{variable} is not valid: {first['msg']}. Correct it in the environment or in .env."
        ) from error


def environment_of(settings: Settings) -> dict[str, str]:
    """Return this process's environment with the variables that make another process read the same settings."""
    environment = dict(os.environ)  # noqa: TID251 - this is the module that knows the environment
    for name in Settings.model_fields:
        value = getattr(settings, name)
        variable = "SEARCH_DB_PATH" if name == "search_db_path" else f"WORKBENCH_{name.upper()}"
        if value is None:
            environment.pop(variable, None)
        else:
            environment[variable] = value.get_secret_value() if isinstance(value, SecretStr) else str(value)
    return environment

"""One typed, frozen object with everything that can be set; only entry points and the composition root read it."""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs
from pydantic import AliasChoices, Field, SecretStr, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from workbench.errors import ConfigurationError


def default_home() -> Path:
    """The platform's user data folder; for root ``/var/lib``, as the embedded server opens its parents to others."""
    if hasattr(os, "geteuid") and os.geteuid() == 0:
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
        description="'minilm' (built in), 'hash' (for tests), a Hugging Face id, or 'openai:MODEL' / 'ollama:MODEL'.",
    )
    embedding_threads: int = Field(0, ge=0, description="Threads for the embedding model; 0 means one per core.")
    reranker: str = Field(
        "late-interaction",
        description="'late-interaction' (built in), or a cross-encoder: a Hugging Face id or a local folder.",
    )
    llm_base_url: str = Field("", description="Any OpenAI-compatible endpoint; empty means answers are cited extracts.")
    llm_model: str = Field("", description="The model's name at that endpoint.")
    llm_api_key: SecretStr | None = Field(None, description="The key for that endpoint, where it wants one.")
    llm_timeout: float = Field(60.0, gt=0, description="Seconds to wait for the endpoint.")

    file_roots: str = Field(
        "",
        description="Folders the MCP tools may read files from, separated by ':'; empty means the working directory.",
    )
    crawl_allow_hosts: str = Field(
        "", description="Hosts on private or loopback networks that may be crawled, separated by ','."
    )
    crawl_browser_url: str = Field(
        "", description="CDP address of a running Chromium for pages that need JavaScript; empty means one of our own."
    )
    run_worker: bool = Field(
        True, description="Run jobs inside the app and the MCP server; 'workbench worker' runs them anywhere."
    )
    articles_dir: Path | None = Field(
        None, description="Folder of articles for the articles tools; empty means the sample's."
    )
    archives_dir: Path | None = Field(None, description="Folder of archives for searchLocalArchives.")
    mcp_token: SecretStr | None = Field(None, description="Bearer token for MCP over HTTP.")
    mcp_log_calls: bool = Field(True, description="Keep a log of tool calls (never the token) in the database.")
    mcp_allowed_hosts: str = Field(
        "", description="Further Host headers that MCP over HTTP answers to, such as 'wiki.lan:8765', separated by ','."
    )
    mcp_allowed_origins: str = Field(
        "", description="Further web origins that may call MCP over HTTP, such as 'https://wiki.lan', separated by ','."
    )
    mcp_call_seconds: float = Field(30.0, gt=0, description="Longest that a tool call that only reads may take.")
    mcp_write_seconds: float = Field(600.0, gt=0, description="Longest that a tool call that writes may take.")
    search_db_path: Path | None = Field(
        None,
        validation_alias=AliasChoices("SEARCH_DB_PATH", "search_db_path"),
        description="Folder of the embedded database, in place of HOME/postgres.",
    )

    @property
    def postgres_dir(self) -> Path:
        """Folder of the embedded server's data."""
        return self.search_db_path or self.home / "postgres"

    @property
    def models_dir(self) -> Path:
        """Folder of model files that are built or downloaded once."""
        return self.home / "models"


def load_settings(**overrides: object) -> Settings:
    """Read the environment and ``.env``; keyword arguments win.

    Raises:
        ConfigurationError: a value is not valid; the message names the variable and says what is.
    """
    given = {name: value for name, value in overrides.items() if value is not None}
    try:
        return Settings(**given)  # pyright: ignore[reportArgumentType]
    except ValidationError as error:
        first = error.errors()[0]
        name = str(first["loc"][0]) if first["loc"] else "settings"
        variable = name if name == "SEARCH_DB_PATH" else f"WORKBENCH_{name.upper()}"
        raise ConfigurationError(
            f"{variable} is not valid: {first['msg']}. Correct it in the environment or in .env."
        ) from error

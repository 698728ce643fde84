"""All settings in one typed, frozen object; only entry points and the composition root read it."""

from __future__ import annotations

import json
import os
import re
import sys
import threading
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from io import StringIO
from pathlib import Path
from typing import get_args

import platformdirs
from dotenv import dotenv_values
from dotenv.parser import parse_stream
from pydantic import AliasChoices, Field, SecretStr, ValidationError, field_validator
from pydantic_settings import BaseSettings, DotEnvSettingsSource, PydanticBaseSettingsSource, SettingsConfigDict

from workbench.errors import ConfigurationError, Conflict, InvalidInput
from workbench.runtime import replace_file


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
        "",
        description="URL of an OpenAI-compatible endpoint; empty means a model that WORKBENCH_LLM_MODEL names in full, "
        "or extractive answers.",
    )
    llm_model: str = Field(
        "",
        description="Model name at that endpoint; without one, 'PROVIDER:MODEL' with openai, anthropic, cohere, "
        "gemini, mistral, ollama or endpoint, 'python:PACKAGE.MODULE:ATTRIBUTE' for a LlamaIndex LLM, or the path of a "
        "GGUF file to run here (needs the extra local-llm).",
    )
    llm_api_key: SecretStr | None = Field(None, description="API key for that endpoint, if required.")
    llm_price: str = Field(
        "",
        description="Dollars per million tokens of that model, 'INPUT' or 'INPUT/OUTPUT' such as '0.15/0.60', for the "
        "cost of evaluations.",
    )
    machine_price: float = Field(
        0.0, ge=0, description="Dollars per hour of the machine that searches, for the cost of evaluations."
    )
    llm_timeout: float = Field(60.0, gt=0, description="Timeout of a request to the language model, in seconds.")

    provider_keys: SecretStr | None = Field(
        None,
        description="API keys of model providers, as JSON: "
        '{"VOYAGE_API_KEY": "KEY"}. An environment variable VOYAGE_API_KEY takes precedence.',
    )

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

    @field_validator("provider_keys")
    @classmethod
    def _check_keys(cls, keys: SecretStr | None) -> SecretStr | None:
        _parse_keys(keys)
        return keys

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
        return _read_own_variables(file_path)


def _read_own_variables(file: Path) -> dict[str, str]:
    """Return the workbench's variables in a .env file, in small letters."""
    content = file.read_bytes()  # once: a password manager makes it a pipe
    if b"\0" in content:  # such as UTF-16 without a byte order mark
        raise UnicodeDecodeError("utf-8", b"\0", 0, 1, "a NUL byte")
    lines = list(parse_stream(StringIO(content.decode("utf-8-sig"))))
    for line in lines:
        if line.error and "workbench_" in line.original.string.lower():
            place = f"Line {line.original.line} of {file.absolute()}"
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
        raise ConfigurationError(
            f"{variable_name(name)} is not valid: {first['msg']}. Correct it in the environment or in .env."
        ) from error


def variable_name(name: str) -> str:
    """Return the environment variable of a setting."""
    return name.upper() if name.upper() == "SEARCH_DB_PATH" else f"WORKBENCH_{name.upper()}"


def _parse_keys(keys: SecretStr | None) -> dict[str, str]:
    """Return the keys of providers by variable; raises ValueError, without the value, if they are not valid."""
    try:
        parsed = json.loads(keys.get_secret_value()) if keys else {}
    except ValueError:
        parsed = None
    if not isinstance(parsed, dict) or not all(isinstance(key, str) for key in parsed.values()):
        raise ValueError('use JSON such as {"VOYAGE_API_KEY": "KEY"}')
    return parsed


def _read_environment() -> dict[str, str]:
    return {name.upper(): value for name, value in os.environ.items() if value}  # noqa: TID251 - as below


def provider_variables(settings: Settings) -> dict[str, str]:
    """Return the keys and URLs of models behind HTTP, such as VOYAGE_API_KEY; the environment takes precedence."""
    wanted = ("_API_KEY", "_API_BASE", "_BASE_URL", "OLLAMA_HOST")
    named = {name: value for name, value in _read_environment().items() if name.endswith(wanted)}
    return _parse_keys(settings.provider_keys) | named


def add_provider_key(settings: Settings, variable: str, key: str) -> Settings:
    """Return the settings with the key of a provider."""
    keys = _parse_keys(settings.provider_keys) | {variable: key}
    return settings.model_copy(update={"provider_keys": SecretStr(json.dumps(keys))})


def make_environment(settings: Settings) -> dict[str, str]:
    """Return this process's environment plus variables that give a child process the same settings."""
    environment = dict(os.environ)  # noqa: TID251 - this module owns access to the environment
    for name in Settings.model_fields:
        value = getattr(settings, name)
        if value is None:
            environment.pop(variable_name(name), None)
        else:
            environment[variable_name(name)] = _format_value(value)
    return environment


def _format_value(value: object) -> str:
    return value.get_secret_value() if isinstance(value, SecretStr) else "" if value is None else str(value)


# Where values come from, and writing them to .env

SECRET_SHOWN = "••••••"
ENVIRONMENT, DEFAULT = "environment", "default"
_PROVIDER_KEY = re.compile(r"[A-Z][A-Z0-9_]*_API_KEY")
_PROVIDER_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]*_API_(KEY|BASE)")
_PLAIN = re.compile(r"[\w:/.@?=&%+,~-]*")  # needs no quotes in .env
_WRITING = threading.Lock()


@dataclass(frozen=True, slots=True)
class SettingValue:
    """The value of a setting, and its origin."""

    variable: str
    value: str  # of a secret only dots, or "" if it is not set
    origin: str  # ENVIRONMENT, the path of .env, or DEFAULT
    is_secret: bool


def is_secret(variable: str) -> bool:
    """Return whether a variable is a secret setting or a provider's key."""
    secret = {
        variable_name(name) for name, field in Settings.model_fields.items() if SecretStr in get_args(field.annotation)
    }
    return variable.upper() in secret or _PROVIDER_KEY.fullmatch(variable.upper()) is not None


def list_settings() -> list[SettingValue]:
    """Return all settings, then the providers' keys, with their origins; the values of secrets are left out.

    Raises:
        ConfigurationError: A setting is invalid.
    """
    settings, environment, file = load_settings(), _read_environment(), Path(".env").absolute()
    stored = {name.upper() for name in _read_own_variables(file)} if file.is_file() else set[str]()
    rows: list[SettingValue] = []
    for name in Settings.model_fields:
        variable, value = variable_name(name), _format_value(getattr(settings, name))
        origin = ENVIRONMENT if variable in environment else str(file) if variable in stored else DEFAULT
        hides = is_secret(variable)
        rows.append(SettingValue(variable, SECRET_SHOWN if hides and value else value, origin, hides))
    held = next(row.origin for row in rows if row.variable == variable_name("provider_keys"))
    for name, value in sorted(provider_variables(settings).items()):
        if _PROVIDER_VARIABLE.fullmatch(name) and name != "WORKBENCH_LLM_API_KEY":
            origin, hides = ENVIRONMENT if name in environment else held, is_secret(name)
            rows.append(SettingValue(name, SECRET_SHOWN if hides else value, origin, hides))
    return rows


def write_settings(changes: Mapping[str, str]) -> Path:
    """Write settings to .env in the working directory, in one step and readable by its owner only; "" removes one.

    Comments and other variables are kept. A provider's VOYAGE_API_KEY or VOYAGE_API_BASE is put into PROVIDER_KEYS.

    Raises:
        InvalidInput: There is no such setting, or a file cannot hold its value.
        Conflict: The environment has the variable, so that the file would have no effect.
        ConfigurationError: The value is not valid, or the file is not writable.
    """
    file = Path(".env").resolve()  # a link stays a link
    if file.exists() and not file.is_file():
        raise ConfigurationError(f"{file} is not a regular file; set the variables at its origin.")
    environment, wanted = _read_environment(), {name.upper(): value for name, value in changes.items()}
    for variable, value in wanted.items():
        _check_change(variable, value, environment)
    try:
        with _lock_folder(file.parent):
            own = {name.upper(): value for name, value in _read_own_variables(file).items()} if file.exists() else {}
            wanted = _merge_keys(wanted, own)
            fields = {
                name: wanted[variable_name(name)] for name in Settings.model_fields if wanted.get(variable_name(name))
            }
            load_settings(**fields)
            text = file.read_text(encoding="utf-8-sig") if file.exists() else ""
            replace_file(file, _replace_variables(text, wanted).encode("utf-8"), mode=0o600)
    except OSError as error:
        raise ConfigurationError(
            f"Cannot write {file} ({error.strerror}). Set the variables in the environment instead."
        ) from error
    return file


def _check_change(variable: str, value: str, environment: Mapping[str, str]) -> None:
    known = [variable_name(name) for name in Settings.model_fields]
    is_key = _PROVIDER_VARIABLE.fullmatch(variable) is not None and not variable.startswith("WORKBENCH_")
    if variable not in known and not is_key and variable not in ("WORKBENCH_MODEL_API_KEY", "WORKBENCH_MODEL_API_BASE"):
        near = get_close_matches(variable, known, n=1) or get_close_matches(f"WORKBENCH_{variable}", known, n=1)
        hint = f"did you mean {near[0]}?" if near else "'workbench settings list' shows all."
        raise InvalidInput(f"Unknown setting {variable}; {hint}")
    if variable in environment:
        raise Conflict(f"{variable} is set in the environment, which takes precedence over .env. Change it there.")
    if any(not char.isprintable() for char in value) or "${" in value:
        raise InvalidInput(f"The value of {variable} has a line break or '${{', which .env cannot hold; correct it.")


def _merge_keys(wanted: Mapping[str, str], own: Mapping[str, str]) -> dict[str, str]:
    """Return the changes with the providers' keys merged into PROVIDER_KEYS."""
    holder = variable_name("provider_keys")
    given = {name: value for name, value in wanted.items() if name not in map(variable_name, Settings.model_fields)}
    others = {name: value for name, value in wanted.items() if name not in given}
    if not given:
        return others
    held = others.get(holder, own.get(holder, ""))
    try:
        merged = _parse_keys(SecretStr(held) if held else None) | given
    except ValueError as error:
        raise ConfigurationError(f"{holder} is not valid: {error}. Correct it in .env.") from None
    kept = {name: value for name, value in merged.items() if value}
    return others | {holder: json.dumps(kept) if kept else ""}


def _replace_variables(text: str, wanted: Mapping[str, str]) -> str:
    """Return the text of a .env file with the variables set at their first place, or at the end."""
    lines = {name: f"{name}={_quote(value)}\n" if value else "" for name, value in wanted.items()}
    made, written = list[str](), set[str]()
    for binding in parse_stream(StringIO(text)):
        name = (binding.key or "").upper()
        if name not in lines or binding.error:
            made.append(binding.original.string)
            continue
        made.append(lines[name] if name not in written else "")
        written.add(name)
    if made and made[-1] and not made[-1].endswith("\n"):
        made.append("\n")
    return "".join([*made, *(line for name, line in lines.items() if name not in written)])


def _quote(value: str) -> str:
    if _PLAIN.fullmatch(value):
        return value
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


@contextmanager
def _lock_folder(folder: Path) -> Generator[None]:
    """Let one thread of one process at a time write .env in a folder."""
    with _WRITING:
        if sys.platform == "win32":
            yield
            return
        import fcntl

        descriptor = os.open(folder, os.O_RDONLY)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

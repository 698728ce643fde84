"""Settings: documented, validated, and with masked secrets."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest
from pydantic import ValidationError
from written_tables import ROOT, env_example, variable

from workbench.errors import ConfigurationError, Conflict, InvalidInput
from workbench.settings import Settings, list_settings, load_settings, provider_variables, write_settings


def test_env_example_lists_every_setting_with_its_default() -> None:
    assert (ROOT / ".env.example").read_text(encoding="utf-8") == env_example(), "run: make docs"


def test_the_example_as_it_is_changes_nothing(tmp_path: Path) -> None:
    text = (ROOT / ".env.example").read_text(encoding="utf-8").replace("# WORKBENCH_", "WORKBENCH_")
    (tmp_path / ".env").write_text(text.replace("# SEARCH_DB_PATH", "SEARCH_DB_PATH"), encoding="utf-8")
    assert Settings(_env_file=tmp_path / ".env") == Settings(_env_file=None)  # pyright: ignore[reportCallIssue]


@pytest.mark.parametrize("name", Settings.model_fields)
def test_every_setting_has_a_description(name: str) -> None:
    description = Settings.model_fields[name].description
    assert description is not None and description.endswith(".")


def test_the_environment_wins_over_the_file_and_arguments_over_both(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".env").write_text("WORKBENCH_POOL_SIZE=3\nWORKBENCH_LLM_MODEL=from-file\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WORKBENCH_POOL_SIZE", "5")
    assert (load_settings().pool_size, load_settings().llm_model) == (5, "from-file")
    assert load_settings(pool_size=7).pool_size == 7


def test_an_empty_variable_is_the_default(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WORKBENCH_DATABASE_URL", "")
    assert load_settings().database_url is None


@pytest.mark.parametrize(("name", "value"), [("pool_size", "many"), ("pool_size", "0"), ("llm_timeout", "-1")])
def test_a_wrong_value_is_named_with_its_variable(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(variable(name), value)
    with pytest.raises(ConfigurationError, match=f"{variable(name)} is not valid"):
        load_settings()


def test_the_search_database_may_lie_elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SEARCH_DB_PATH", "/somewhere/else")
    assert load_settings().postgres_dir == Path("/somewhere/else")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("search_db_path=/other\nHOME=/x\n", None),
        ("SEARCH_DB_PATH=/other\nDATABASE_URL=x\n", None),
        ("SEARCH_DB_PATH=/ours\nWORKBENCH_POOL_SIZE=3\n", Path("/ours")),
        ("search_db_path=/ours\nworkbench_pool_size=3\n", Path("/ours")),
    ],
)
def test_the_env_file_of_another_project_does_not_move_the_database(
    text: str, expected: Path | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".env").write_text(text)
    assert load_settings().search_db_path == expected


@pytest.mark.parametrize(
    "content",
    [
        b"WORKBENCH_LLM_MODEL=caf\xe9\n",
        "WORKBENCH_POOL_SIZE=3\n".encode("utf-16"),
        "WORKBENCH_POOL_SIZE=3\n".encode("utf-16-le"),
    ],
)
def test_an_env_file_that_is_not_utf_8_is_named(
    content: bytes, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".env").write_bytes(content)
    with pytest.raises(ConfigurationError, match=f"The file {tmp_path / '.env'} is not UTF-8; save it as UTF-8 text"):
        load_settings()


def test_an_env_file_with_a_byte_order_mark_or_through_a_pipe_is_read(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    content = "WORKBENCH_POOL_SIZE=3\n".encode("utf-8-sig")
    (tmp_path / ".env").write_bytes(content)
    assert load_settings().pool_size == 3
    assert Settings(_env_file=None).pool_size != 3  # pyright: ignore[reportCallIssue]
    (tmp_path / ".env").unlink()
    os.mkfifo(tmp_path / ".env")  # as a password manager makes it
    writer = threading.Thread(target=(tmp_path / ".env").write_bytes, args=(content,))
    writer.start()
    assert load_settings().pool_size == 3
    writer.join()


def test_a_line_of_an_env_file_that_cannot_be_read_is_named_if_it_is_ours(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".env").write_text("if x; then\nWORKBENCH_POOL_SIZE=3\n")
    assert (load_settings().pool_size, caplog.text) == (3, "")
    (tmp_path / ".env").write_text('A=1\nWORKBENCH_LLM_MODEL="open\n')
    with pytest.raises(ConfigurationError) as refused:
        load_settings()
    place = tmp_path / ".env"
    assert str(refused.value) == f"Line 2 of {place} is not NAME=VALUE with closed quotes; correct it."


def test_secrets_do_not_show() -> None:
    settings = Settings(database_url="postgresql://u:hidden@h/d", llm_api_key="hidden", mcp_token="hidden")  # pyright: ignore
    assert "hidden" not in repr(settings) and "hidden" not in str(settings.model_dump())


def test_settings_cannot_be_changed() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        Settings().pool_size = 2


def _origins(*variables: str) -> list[tuple[str, str]]:
    found = {row.variable: (row.value, row.origin) for row in list_settings()}
    return [found[variable] for variable in variables]


def test_written_settings_are_read_again_and_the_rest_of_the_file_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    before = "# mine\nOTHER='1'\nexport WORKBENCH_POOL_SIZE=3\nWORKBENCH_POOL_SIZE=4"
    (tmp_path / ".env").write_text(before)
    secret = 'it\'s #1, \\ and "two"'
    write_settings({"WORKBENCH_LLM_API_KEY": secret, "WORKBENCH_POOL_SIZE": "5"})
    settings = load_settings()
    assert settings.llm_api_key is not None
    assert (settings.llm_api_key.get_secret_value(), settings.pool_size) == (secret, 5)
    text = (tmp_path / ".env").read_text()
    assert text.startswith("# mine\nOTHER='1'\nWORKBENCH_POOL_SIZE=5\nWORKBENCH_LLM_API_KEY=")
    assert (tmp_path / ".env").stat().st_mode & 0o777 == 0o600
    file = str(tmp_path / ".env")
    assert _origins("WORKBENCH_LLM_API_KEY", "WORKBENCH_POOL_SIZE") == [("••••••", file), ("5", file)]
    write_settings({"WORKBENCH_LLM_API_KEY": "", "WORKBENCH_POOL_SIZE": ""})
    assert (tmp_path / ".env").read_text() == "# mine\nOTHER='1'\n"
    assert _origins("WORKBENCH_LLM_API_KEY", "WORKBENCH_POOL_SIZE") == [("", "default"), ("8", "default")]


def test_keys_of_providers_are_stored_together_and_the_environment_takes_precedence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("VOYAGE_API_KEY", raising=False)
    write_settings({"VOYAGE_API_KEY": "pa-1"})
    write_settings({"JINA_API_KEY": "jina-1"})
    keys = provider_variables(load_settings())
    assert (keys["VOYAGE_API_KEY"], keys["JINA_API_KEY"]) == ("pa-1", "jina-1")
    assert _origins("VOYAGE_API_KEY") == [("••••••", str(tmp_path / ".env"))]
    monkeypatch.setenv("VOYAGE_API_KEY", "pa-2")
    assert provider_variables(load_settings())["VOYAGE_API_KEY"] == "pa-2"
    assert _origins("VOYAGE_API_KEY") == [("••••••", "environment")]
    with pytest.raises(Conflict, match="VOYAGE_API_KEY is set in the environment"):
        write_settings({"VOYAGE_API_KEY": "pa-3"})
    write_settings({"JINA_API_KEY": ""})
    assert "JINA_API_KEY" not in provider_variables(load_settings())


@pytest.mark.parametrize(
    ("variable", "value", "message"),
    [
        ("WORKBENCH_POOL_SIZ", "5", "did you mean WORKBENCH_POOL_SIZE"),
        ("POOL_SIZE", "5", "did you mean WORKBENCH_POOL_SIZE"),
        ("WORKBENCH_LLM_MODEL", "two\nlines", "line break"),
        ("WORKBENCH_LLM_API_KEY", "a${HOME}b", "cannot hold"),
        ("WORKBENCH_POOL_SIZE", "many", "WORKBENCH_POOL_SIZE is not valid"),
        ("WORKBENCH_PROVIDER_KEYS", "sk-secret", "use JSON such as"),
    ],
)
def test_a_setting_that_cannot_be_stored_is_refused_and_nothing_is_written(
    variable: str, value: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises((InvalidInput, ConfigurationError), match=message) as raised:
        write_settings({variable: value})
    assert "sk-secret" not in str(raised.value)
    assert list(tmp_path.iterdir()) == []


def test_writers_at_the_same_time_lose_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names = [f"PROVIDER_{number}_API_KEY" for number in range(12)]
    threads = [threading.Thread(target=write_settings, args=({name: name.lower()},)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert provider_variables(load_settings()).items() >= {name: name.lower() for name in names}.items()
    assert [path.name for path in tmp_path.iterdir()] == [".env"]

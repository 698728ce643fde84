"""Settings: documented, validated, and with masked secrets."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest
from pydantic import ValidationError
from written_tables import ROOT, env_example, variable

from workbench.errors import ConfigurationError
from workbench.settings import Settings, load_settings


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

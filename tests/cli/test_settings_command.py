"""``workbench settings``: where values come from, and what is written to .env."""

from __future__ import annotations

import subprocess
from pathlib import Path

from commands import COMMAND


def run(environment: dict[str, str], folder: Path, *words: str, given: str = "") -> tuple[int, str]:
    command = [*COMMAND, "settings", *words]
    ran = subprocess.run(
        command, env=environment, cwd=folder, input=given, capture_output=True, text=True, timeout=200, check=False
    )
    return ran.returncode, ran.stdout + ran.stderr


def test_a_key_is_read_from_stdin_stored_and_not_shown(environment: dict[str, str], tmp_path: Path) -> None:
    assert run(environment, tmp_path, "set", "VOYAGE_API_KEY", "pa-secret")[0] == 2
    code, out = run(environment, tmp_path, "set", "VOYAGE_API_KEY", given="pa-secret\n")
    assert (code, "written to" in out, "pa-secret" in out) == (0, True, False)
    assert 'WORKBENCH_PROVIDER_KEYS=\'{"VOYAGE_API_KEY": "pa-secret"}\'' in (tmp_path / ".env").read_text()
    code, out = run(environment, tmp_path, "list", "--json")
    assert (code, '"variable": "VOYAGE_API_KEY"' in out, "pa-secret" in out) == (0, True, False)


def test_a_model_of_the_settings_is_used_once(environment: dict[str, str], tmp_path: Path) -> None:
    code, out = run(environment | {"WORKBENCH_EMBEDDING_MODEL": "hash"}, tmp_path, "test", "embedding")
    assert (code, out.startswith("hash returned ")) == (0, True)

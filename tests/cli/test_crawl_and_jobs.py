"""``workbench crawl``, ``jobs`` and ``worker``."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from commands import COMMAND, Ran

Workbench = Callable[..., Ran]
PAGE = "<html><title>{0}</title><main><h1>{0}</h1><p>The page {0} speaks of {0} alone.</p>{1}</main></html>"


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Two pages and a dead link, served on loopback by a separate process."""
    monkeypatch.setenv("WORKBENCH_CRAWL_ALLOW_HOSTS", "127.0.0.1")
    root = tmp_path / "site"
    root.mkdir()
    links = '<a href="/next.html">next</a> <a href="/dead.html">dead</a>'
    (root / "index.html").write_text(PAGE.format("Home", links))
    (root / "next.html").write_text(PAGE.format("Next", ""))
    code = (
        "import functools, http.server, sys;"
        "handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=sys.argv[1]);"
        "server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), handler);"
        "print(server.server_address[1], flush=True); server.serve_forever()"
    )
    command = [COMMAND[0], "-c", code, str(root)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        yield f"http://127.0.0.1:{int(process.stdout.readline())}/"
        process.kill()


def test_a_crawl_that_is_waited_for_shows_its_counts(workbench: Workbench, site: str) -> None:
    ran = workbench("crawl", site, "--recursive", "--wait", "--no-browser", "--source", "My site", "--json")
    crawl = json.loads(ran.out)
    assert (ran.code, crawl["status"], crawl["error_message"]) == (0, "completed_with_errors", None)
    assert (crawl["pages_crawled"], crawl["pages_failed"], crawl["documents_created"]) == (2, 1, 2)
    shown = json.loads(workbench("jobs", "show", crawl["id"], "--json").out)
    assert shown["failures"] == [{"url": f"{site}dead.html", "reason": "It answered 404."}]
    assert "Home" in workbench("search", "home alone", "--source", "My site").out


def test_a_dry_run_stores_nothing(workbench: Workbench, site: str) -> None:
    ran = workbench("crawl", site, "--recursive", "--dry-run", "--exclude", "dead", "--no-browser")
    assert ran.code == 0
    assert "Would fetch 2 pages" in ran.out and "excluded by the pattern 'dead'" in ran.out
    assert json.loads(workbench("sources", "list", "--json").out)["total"] == 0


def test_a_crawl_without_a_worker_waits_and_can_be_stopped_and_resumed(workbench: Workbench, site: str) -> None:
    job = json.loads(workbench("crawl", site, "--no-browser", "--json").out)
    assert job["status"] == "queued"
    assert json.loads(workbench("jobs", "cancel", job["id"], "--json").out)["status"] == "cancelled"
    assert "is already" in workbench("jobs", "cancel", job["id"]).err
    ran = workbench("jobs", "resume", job["id"], "--wait", "--json")
    assert (ran.code, json.loads(ran.out)["status"]) == (0, "completed")
    again = json.loads(workbench("jobs", "recrawl", job["id"], "--wait", "--json").out)
    assert again["crawl"]["report"]["unchanged"] == 1
    listed = json.loads(workbench("jobs", "list", "--kind", "crawl", "--json").out)
    assert [entry["id"] for entry in listed["jobs"]] == [again["id"], job["id"]]


def test_a_worker_apart_runs_jobs_and_stops_when_asked(
    workbench: Workbench, site: str, environment: dict[str, str]
) -> None:
    job = json.loads(workbench("crawl", site, "--no-browser", "--json").out)
    allowed = environment | {"WORKBENCH_CRAWL_ALLOW_HOSTS": "127.0.0.1"}
    with subprocess.Popen([*COMMAND, "worker"], stderr=subprocess.PIPE, env=allowed) as process:
        while json.loads(workbench("jobs", "show", job["id"], "--json").out)["status"] != "completed":
            assert process.poll() is None
            time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        assert process.stderr is not None
        said = process.stderr.read().decode()
        assert (process.wait(), "running jobs return" in said) == (0, True)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("crawl", "ftp://example.com"), "must start with http:// or https://"),
        (("crawl", "http://10.0.0.1/"), "not on the public internet"),
        (("crawl", "http://localhost:1/"), "localhost resolves to this machine"),
        (("crawl", "http://example.com", "--max-pages", "0"), "Invalid max_pages 0"),
        (("crawl", "http://example.com", "--rate", "x"), "Invalid rate 'x': expected a number from 0.01 to 1000"),
        (("crawl", "http://example.com", "--max-depth", "deep"), "Invalid max_depth 'deep': expected an integer from"),
        (("crawl", "http://example.com", "--browser", "--no-browser"), "not allowed with argument --browser"),
        (("crawl", "http://example.com", "--max-depth", "-1"), "Invalid max_depth -1"),
        (("crawl", "http://example.com", "--rate", "-1"), "Invalid rate -1"),
        (("crawl", "http://example.com", "--rate", "nan", "--dry-run"), "Invalid rate nan"),
        (("crawl", "http://example.com", "--dry-run", "--wait", "--tag", "a"), "omit --wait and --tag"),
        (("crawl", "http://example.com", "--concurrency", "0"), "Invalid concurrency 0"),
        (("jobs", "show", "job_none"), "Job not found: job_none"),
        (("jobs", "retry-failed", "job_none"), "Job not found"),
        (("jobs", "accept-removals", "job_none"), "Job not found"),
        (("jobs", "list", "--kind", "x"), "'crawl', 'ingest', 'index_build'"),
        (("worker", "--concurrency", "0"), "from 1 to 32"),
    ],
)
def test_what_cannot_be_done_gets_a_sentence(workbench: Workbench, words: tuple[str, ...], sentence: str) -> None:
    ran = workbench(*words)
    assert ran.code in (1, 2)
    assert sentence in ran.err and "Traceback" not in ran.err and ran.out == ""

"""A crawl in telemetry: the ingests of its pages are within its job."""

from __future__ import annotations

import subprocess
import sys

from tests.crawling.site import TestSite
from tests.mcp_app.processes import environment
from tests.otlp_collector import collecting
from workbench import Workbench


def test_a_crawl_that_is_waited_for_reports_its_job_and_the_ingests_within(wb: Workbench, site: TestSite) -> None:
    site.put({"/": "<html><title>Home</title><p>The start page of a wiki about lighthouses.</p></html>"})
    command = [sys.executable, "-m", "workbench.cli", "crawl", f"{site.url}/", "--wait", "--no-browser"]
    with collecting() as collector:
        told = environment(wb.settings, WORKBENCH_CRAWL_ALLOW_HOSTS="127.0.0.1", **collector.environment)
        subprocess.run(command, env=told, check=True, timeout=120, stdout=subprocess.DEVNULL)
    [job] = [span for span in collector.spans if span.name == "job crawl"]
    ingests = [span for span in collector.spans if span.name.startswith("ingest ")]
    assert ingests and {span.parent_span_id for span in ingests} == {job.span_id}
    assert b"lighthouses" not in b"".join(request.SerializeToString() for request in collector.sent)

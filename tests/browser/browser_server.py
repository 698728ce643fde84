"""The server of the app under test and its port, and what its tests have in common."""

import socket
from pathlib import Path

from urllib3 import PoolManager, Retry

ROOT = Path(__file__).parents[2]
ARTIFACTS = ROOT / "artifacts"
FIRST = 200_000  # ms: the first search of a process imports the framework, which is slow on a busy machine
ASKED = {
    "How is the level of the sea recorded?": "Tide gauge",
    "What keeps waves from the record?": "Stilling well",
    "How do I bake?": "Bread",
    "When is the float calibrated?": "Tide gauge",
}


def free_port() -> int:
    """Return a port that is currently free."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_until_up(address: str) -> None:
    """Wait for the server's own health check, by retrying requests, since the port may not be open yet."""
    patient = Retry(total=None, connect=60, read=60, backoff_factor=0.2, backoff_max=1)
    assert PoolManager(retries=patient).request("GET", f"{address}/_stcore/health").status == 200

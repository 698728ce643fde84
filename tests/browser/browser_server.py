"""The server of the app under test, and its port."""

import socket

from urllib3 import PoolManager, Retry


def free_port() -> int:
    """Return a port that is currently free."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_until_up(address: str) -> None:
    """Wait for the server's own health check, by retrying requests, since the port may not be open yet."""
    patient = Retry(total=None, connect=60, read=60, backoff_factor=0.2, backoff_max=1)
    assert PoolManager(retries=patient).request("GET", f"{address}/_stcore/health").status == 200

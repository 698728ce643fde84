"""The state of the replica: queried once per refresh, and reported by doctor while it is unavailable."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.storage.replica import Replica
from tests.storage.test_read_replica import opened
from workbench.cli import main
from workbench.storage.postgres import start_embedded_server


class Refusing:
    """A server on loopback that closes every connection at once, and counts them."""

    def __init__(self) -> None:
        self.asked = 0
        self._socket = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self._refuse, daemon=True).start()

    @property
    def url(self) -> str:
        """Its address as a database URL."""
        return f"postgresql://nobody@127.0.0.1:{self._socket.getsockname()[1]}/none?sslmode=disable"

    def close(self) -> None:
        """Stop listening."""
        self._socket.close()

    def _refuse(self) -> None:
        while True:
            try:
                near, _ = self._socket.accept()
            except OSError:
                return
            self.asked += 1
            near.close()


@pytest.fixture
def refusing() -> Iterator[Refusing]:
    server = Refusing()
    yield server
    server.close()


def test_status_asks_a_replica_that_is_away_once(
    refusing: Refusing, shared_home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("WORKBENCH_HOME", str(shared_home))
    monkeypatch.setenv("WORKBENCH_EMBEDDING_MODEL", "hash")
    monkeypatch.setenv("WORKBENCH_READ_DATABASE_URL", refusing.url)
    assert main(["status"]) == 0
    assert "is unreachable; searches use the primary" in capsys.readouterr().out
    assert refusing.asked == 1


def test_doctor_reports_of_a_replica_that_is_away_what_to_do(shared_home: Path) -> None:
    away = Replica(start_embedded_server(shared_home / "postgres"), "postgresql://nobody@127.0.0.1:1/none")
    with opened(shared_home, away) as wb:
        (check,) = [check for check in wb.health.doctor() if check.name == "replica"]
    assert not check.ok
    assert check.detail.endswith("searches use the primary. Start it, or correct WORKBENCH_READ_DATABASE_URL.")

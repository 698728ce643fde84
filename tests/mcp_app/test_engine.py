"""The workbench behind the server: opened once, tried again after a failure, closed at the end."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from mcp_app.engine import Engine
from workbench import Workbench
from workbench.errors import StorageError
from workbench.settings import Settings


def test_closing_waits_for_an_opening_on_its_way(
    make_settings: Callable[..., Settings],
) -> None:
    begun, go = threading.Event(), threading.Event()
    opened: list[Workbench] = []

    def opening() -> Workbench:
        begun.set()
        assert go.wait(60)
        opened.append(Workbench.open(settings=make_settings()))
        return opened[0]

    engine = Engine(opening)
    engine.start()
    assert begun.wait(60)
    with ThreadPoolExecutor(1) as pool:
        closing = pool.submit(engine.close)
        go.set()
        assert closing.result(60) is True
        assert opened
    assert not engine.is_ready


def test_an_opening_that_failed_is_tried_again_by_the_next_call(wb: Workbench) -> None:
    openings = iter([StorageError("The database is away."), wb])

    def opening() -> Workbench:
        found = next(openings)
        if isinstance(found, StorageError):
            raise found
        return found

    engine = Engine(opening)
    with pytest.raises(StorageError, match="away"):
        engine.wait()
    assert not engine.is_ready
    assert engine.wait() is wb
    assert engine.is_ready

"""The workbench behind the app and the server: opened once, retried after a failure, closed at the end."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable

import pytest

from workbench import Workbench
from workbench.errors import ModelError, StorageError
from workbench.opening import Opening, open_configured
from workbench.settings import Settings


def test_closing_does_not_wait_for_a_slow_opening() -> None:
    begun, go = threading.Event(), threading.Event()

    def opener() -> Workbench:
        begun.set()
        assert go.wait(60)
        raise StorageError("The database is away.")

    opening = Opening(opener)
    opening.start()
    assert begun.wait(60)
    started = time.monotonic()
    assert opening.close() is False  # its thread is still running
    assert time.monotonic() - started < 5
    assert not opening.is_ready
    go.set()


def test_an_opening_that_failed_is_tried_again_by_the_next_call(wb: Workbench) -> None:
    openings = iter([StorageError("The database is away."), wb])

    def opener() -> Workbench:
        result = next(openings)
        if isinstance(result, StorageError):
            raise result
        return result

    opening = Opening(opener)
    with pytest.raises(StorageError, match="away"):
        asyncio.run(opening.ready())
    assert opening.is_settled
    assert not opening.is_ready
    with pytest.raises(StorageError, match="away"):
        opening.wait(60)  # a page shows the error until a person tries again
    assert asyncio.run(opening.ready()) is wb
    assert opening.is_ready


def test_waiting_ends_after_its_seconds_while_the_workbench_still_opens(wb: Workbench) -> None:
    go = threading.Event()

    def opener() -> Workbench:
        assert go.wait(60)
        return wb

    opening = Opening(opener)
    assert opening.wait(0) is None
    go.set()
    assert opening.wait(60) is wb


def test_lists_are_served_before_the_model_is_loaded(wb: Workbench) -> None:
    go, loaded = threading.Event(), threading.Event()

    def warmer(workbench: Workbench) -> None:
        assert go.wait(60)
        workbench.warm()
        loaded.set()

    opening = Opening(lambda: wb, warmer)
    assert opening.wait(60) is wb
    assert not opening.is_warm
    assert opening.workbench.sources.count() == 0
    go.set()
    assert loaded.wait(60)
    assert opening.close() is True


def test_the_model_waits_for_the_first_page(wb: Workbench) -> None:
    warmed: list[Workbench] = []
    opening = Opening(lambda: wb, warmed.append, patience=600)
    assert opening.wait(60) is wb
    assert not opening.is_warm
    assert not warmed
    opening.warm_now()
    until = time.monotonic() + 60
    while not opening.is_warm and time.monotonic() < until:
        time.sleep(0.01)
    assert warmed == [wb]
    assert opening.close() is True


def test_a_workbench_that_is_closed_loads_no_model_that_waited(make_settings: Callable[..., Settings]) -> None:
    warmed: list[Workbench] = []
    opening = Opening(lambda: Workbench.open(settings=make_settings()), warmed.append, patience=600)
    assert opening.wait(60) is not None
    assert opening.close() is True
    assert not warmed


def test_a_model_that_cannot_be_loaded_leaves_the_rest_served(wb: Workbench) -> None:
    def warmer(workbench: Workbench) -> None:
        raise ModelError(f"No model for {workbench!r}.")

    opening = Opening(lambda: wb, warmer)
    assert opening.wait(60) is wb
    assert opening.close() is True
    assert not opening.is_warm


def test_an_opening_takes_its_settings_from_its_opener(make_settings: Callable[..., Settings]) -> None:
    settings = make_settings(run_worker=False)
    opening = Opening()
    opening.configure(lambda: open_configured(settings=settings))
    workbench = opening.wait(60)
    assert workbench is not None
    assert workbench.settings is settings
    assert opening.close() is True

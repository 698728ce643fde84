"""The pytest fixture ``workbench_check``, which every pytest finds if the workbench is installed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture
def workbench_check() -> Callable[..., None]:
    """Run the experiments of a configuration file; the test fails if a bar is missed.

    ``workbench_check("workbench.toml")`` opens the workbench that the environment configures. With ``apply=True`` the
    file is applied first.
    """

    def check(file: str | Path, *, apply: bool = False) -> None:
        from workbench import Workbench

        with Workbench.open() as wb:
            if apply:
                wb.apply(file)
            report = wb.check(file)
        if not report.is_passed:
            lines = [f"{one.experiment}, {one.run}, {one.metric}, {one.bar}: {one.detail}" for one in report.failures]
            pytest.fail("\n".join([f"{report.file}: {report.summary}", *lines]), pytrace=False)

    return check

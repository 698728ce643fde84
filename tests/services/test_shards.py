"""The shards of a database that has none."""

from __future__ import annotations

import pytest

from workbench import Workbench
from workbench.errors import Conflict


def test_without_a_shard_there_is_nothing_to_spread_over(wb: Workbench) -> None:
    with pytest.raises(Conflict, match="There is no shard to spread buckets over; add one: workbench cluster add URL"):
        wb.shards.rebalance()

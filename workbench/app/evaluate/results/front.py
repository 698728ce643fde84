"""Quality against time as a picture on a page: what a better answer costs."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from workbench.app.evaluate.results.charts import Spot, quality_latency
from workbench.app.state.one_run import theme_of_run

TALL = 340  # pixels


def front_chart(spots: Sequence[Spot], key: str) -> None:
    """Show runs by median time and quality, and say which of them none beats in both."""
    best = ", ".join(spot.name for spot in spots if spot.on_front)
    sentence = f"Quality against median time of {len(spots)} runs; none is both better and faster than {best}."
    st.echarts_chart(quality_latency(spots, theme_of_run()), key=key, height=TALL, renderer="svg", alt=sentence)

"""Widgets whose value is in the URL."""

from streamlit.testing.v1 import AppTest


def _show_settings() -> None:
    from workbench.app.compare.columns import show_settings, show_strategy_bar

    show_strategy_bar(with_llm=False, with_reranker=False)
    show_settings(["hybrid"], ["main"])


def test_a_widget_has_its_value_as_default_for_a_slow_browser_that_draws_only_a_later_run() -> None:
    """Only the first run sends the value; without the default, the page showed no strategy and weights of 0."""
    page = AppTest.from_function(_show_settings, default_timeout=30)
    page.query_params["s"] = "hybrid"
    page.query_params["set"] = "hybrid.vector_weight=0.7"
    page.run().run()
    assert not page.exception
    weight = next(one for one in page.slider if one.label == "Vector weight")
    assert (weight.value, list(weight.proto.default), weight.proto.set_value) == (0.7, [0.7], False)
    strategies = next(one for one in page.button_group if one.label == "Strategies")
    assert [strategies.proto.options[place].content for place in strategies.proto.default] == ["Hybrid"]

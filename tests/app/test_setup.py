"""The set-up of models: what is changed, and where a stored key may be sent."""

import pytest

from workbench.app.system.page import KEY, MODEL, URL, describe_key, find_changes
from workbench.errors import Conflict
from workbench.settings import DEFAULT, ENVIRONMENT, SettingValue


def rows(url="http://a/v1", key_origin="/home/me/.env"):
    return {
        URL: SettingValue(URL, url, "/home/me/.env", is_secret=False),
        MODEL: SettingValue(MODEL, "small", ENVIRONMENT, is_secret=False),
        KEY: SettingValue(KEY, "" if key_origin == DEFAULT else "••••••", key_origin, is_secret=True),
    }


def test_only_what_differs_is_written_and_never_what_the_environment_sets():
    assert find_changes({URL: "http://a/v1", MODEL: "large", KEY: ""}, rows()) == {}
    assert find_changes({URL: "http://a/v1", MODEL: "large", KEY: "new"}, rows()) == {KEY: "new"}
    assert find_changes({URL: "", MODEL: "", KEY: ""}, rows(key_origin=DEFAULT)) == {URL: ""}


def test_a_stored_key_is_not_sent_to_another_endpoint():
    assert find_changes({URL: "http://b/v1", MODEL: "", KEY: ""}, rows()) == {URL: "http://b/v1", KEY: ""}
    assert find_changes({URL: "http://b/v1", MODEL: "", KEY: "new"}, rows()) == {URL: "http://b/v1", KEY: "new"}
    with pytest.raises(Conflict, match="belongs to another endpoint"):
        find_changes({URL: "http://b/v1", MODEL: "", KEY: ""}, rows(key_origin=ENVIRONMENT))


def test_a_provider_key_names_the_models_it_allows_and_what_they_cost():
    effect, costs = describe_key("VOYAGE_API_KEY")
    assert effect == "Makes voyage:MODEL available as embedding model or reranker."
    assert (
        costs == "Nothing until you choose one; then the provider charges for each new passage and search, each search."
    )

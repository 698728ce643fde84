"""Arguments: strict if a guess could hide a mistake, lenient if clients differ."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mcp_app.arguments import MAX_ARGUMENT_BYTES, Argument, Refused, read_arguments, select_repeated
from tests.mcp_app.agent import Agent

DECLARED = (
    Argument("query", "string", "What.", required=True),
    Argument("count", "integer", "How many.", 10, low=1, high=50),
    Argument("share", "number", "How much.", 0.5, low=0, high=1),
    Argument("deep", "boolean", "Whether.", False),
    Argument("mode", "string", "Which.", "a", choices=("a", "b")),
    Argument("tags", "array", "Some.", []),
    Argument("facts", "object", "More."),
)


def read(**given: Any) -> dict[str, Any]:
    return read_arguments("tool", DECLARED, given)


def test_null_and_absent_give_the_default() -> None:
    nulls = read(query="q", count=None, share=None, deep=None, mode=None, tags=None, facts=None)
    assert nulls == read(query="q")
    assert nulls == {"query": "q", "count": 10, "share": 0.5, "deep": False, "mode": "a", "tags": [], "facts": None}


def test_lists_and_objects_also_come_as_json_strings() -> None:
    found = read(query="q", tags='["x", "y"]', facts='{"year": 2024}')
    assert (found["tags"], found["facts"]) == (["x", "y"], {"year": 2024})


def test_a_text_that_looks_like_json_stays_a_text() -> None:
    assert read(query='{"a": 1}')["query"] == '{"a": 1}'
    assert read(query="null")["query"] == "null"


@pytest.mark.parametrize(
    ("name", "value", "valid"),
    [
        ("count", 0, "a whole number from 1 to 50"),
        ("count", 51, "a whole number from 1 to 50"),
        ("count", "five", "a whole number from 1 to 50"),
        ("count", 2.5, "a whole number from 1 to 50"),
        ("count", True, "a whole number from 1 to 50"),
        ("share", 1.01, "a number from 0 to 1"),
        ("share", float("nan"), "a number from 0 to 1"),
        ("deep", "yes", "true or false"),
        ("query", True, "a text"),
        ("query", float("nan"), "a text"),
        ("query", 10**400, "a text"),
        ("query", ["a"], "a text"),
        ("tags", "react", "a list of texts"),
        ("tags", [1], "a list of texts"),
        ("facts", "[]", "an object"),
    ],
)
def test_a_wrong_value_is_refused_with_its_name_and_what_is_valid(name: str, value: Any, valid: str) -> None:
    with pytest.raises(Refused, match=f"^Invalid {name}: .* is not {valid}$"):
        read(**{"query": "q", name: value})


@pytest.mark.parametrize("value", [5.0, "5", " 5 "])
def test_a_whole_number_may_come_as_a_float_or_a_text(value: Any) -> None:
    count = read(query="q", count=value)["count"]
    assert (count, type(count)) == (5, int)


def test_numbers_and_truth_may_come_as_texts() -> None:
    found = read(query="q", share="0.25", deep="true")
    assert (found["share"], found["deep"]) == (0.25, True)


@pytest.mark.parametrize(("value", "text"), [(404, "404"), (-3, "-3"), (4.5, "4.5"), (0, "0")])
def test_a_text_may_come_as_a_number(value: Any, text: str) -> None:
    assert read(query=value)["query"] == text


def test_arguments_that_clients_add_are_ignored_and_others_are_errors() -> None:
    added = {"task_progress": "- [x] search", "thought": "I search.", "explanation": "To find it.", "sessionId": "s1"}
    added |= {"toolCallId": "c1", "_meta": {"progressToken": 1}, "tool-call-id": "c1", "Task_Progress": "", "meta": {}}
    added |= {"random_string": "x", "security_risk": "LOW", "wait_for_previous": False, "TraceId": "t"}
    assert read(query="q", **added) == read(query="q")
    assert select_repeated(DECLARED, {"query": "q", **added}) == {"query": "q"}
    with pytest.raises(Refused, match=r"^Unknown argument: limt$"):
        read(query="q", limt=5, **added)


@pytest.mark.parametrize(
    "tool", ["search_knowledge_base", "manage_source", "list_articles", "rag_get_available_sources"]
)
def test_an_answer_reports_which_arguments_were_ignored(agent: Agent, tool: str) -> None:
    own = {"manage_source": {"action": "list"}, "search_knowledge_base": {"query": 404}}.get(tool, {})
    answer = json.loads(agent.text(tool, **own, task_progress="- [ ] all", thought="I list.", sessionId="s1"))
    holder = answer[0] if isinstance(answer, list) else answer
    assert holder["ignored_arguments"] == f"{tool} has no task_progress, thought, sessionId; ignored."
    plain = json.loads(agent.text(tool, **own))
    assert "ignored_arguments" not in (plain[0] if isinstance(plain, list) else plain)


def test_a_wrong_choice_names_the_choices() -> None:
    with pytest.raises(Refused) as refused:
        read(query="q", mode="c")
    assert (refused.value.error, refused.value.suggestion) == ("Invalid mode: c", "Use 'a' or 'b'")


def test_what_is_too_large_is_refused_before_it_is_read() -> None:
    with pytest.raises(Refused, match=r"The arguments have 4,\d+,\d+ bytes; the limit is 4,000,000"):
        read(query="x" * MAX_ARGUMENT_BYTES)


@pytest.mark.parametrize("depth", [101, 900])
def test_what_is_nested_too_deep_is_refused(agent: Agent, depth: int) -> None:
    values = {"action": "create", "content": "Words."}
    deep = '{"a":' * depth + "1" + "}" * depth
    assert "100 levels" in agent.failure("manage_document", **values, metadata=deep)["error"]
    assert agent("manage_document", **values, metadata='{"a":' * 100 + "1" + "}" * 100)["outcome"] == "created"


def test_half_a_character_is_refused() -> None:
    with pytest.raises(Refused, match="unpaired surrogate"):
        read(query="\ud83d")


def test_a_missing_argument_reads_as_the_contract_reports(agent: Agent) -> None:
    assert agent.failure("search_knowledge_base")["error"] == "Missing required parameter: query"
    assert agent.failure("search_knowledge_base", query=None)["error"] == "Missing required parameter: query"


def test_an_unknown_argument_is_named_with_the_known_ones(agent: Agent) -> None:
    found = agent.failure("rag_list_project_folders", project_id="p", folder="x")
    assert found["error"] == "Unknown argument: folder"
    assert found["suggestion"] == "The arguments of rag_list_project_folders are project_id, offset"


@pytest.mark.parametrize(
    ("tool", "given"),
    [
        ("manage_source", {"action": "get", "source_id": "x\n" * 50_000}),
        ("search_knowledge_base", {"query": "q", "x" * 100_000: 1}),
        ("rag_list_project_folders", {"project_id": "知" * 50_000}),
        ("embed_document", {"path": "x" * 5000}),
        ("search_semantic", {"query": "q", "workspace_path": "知" * 200}),
        ("manage_document", {"action": "create", "file_path": "x" * 300}),
    ],
)
def test_an_overlong_argument_gets_a_short_sentence(agent: Agent, tool: str, given: dict[str, Any]) -> None:
    found = agent.failure(tool, **given)
    assert "unexpectedly" not in found["error"]
    assert all(len(found[name]) <= 1000 and "\n" not in found[name] for name in ("error", "suggestion"))


def test_an_unknown_tool_is_reported_as_unknown(agent: Agent) -> None:
    result = agent.talk(lambda client: client.call_tool("no_such_tool", {}))
    assert result.is_error
    assert result.content[0].text == "Unknown tool: no_such_tool"

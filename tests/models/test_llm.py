"""The chat model with a real endpoint on loopback, including its failures."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from evals.judges.endpoint import Endpoint
from workbench import Workbench
from workbench.errors import ConfigurationError, ModelError
from workbench.models.endpoints import LLM_PROVIDERS
from workbench.models.llm import Llm, load_llm
from workbench.models.model_names import LLM_FAMILIES
from workbench.settings import Settings
from workbench.workbench import try_model

Ask = Callable[..., Llm]


@pytest.fixture
def llm(llm_url: str) -> Iterator[Ask]:
    """Models of the endpoint by name, closed at the end."""
    llms: list[Llm] = []

    def model(name: str, url: str = llm_url, timeout: float = 60.0) -> Llm:
        llms.append(Llm(url, name, timeout=timeout))
        return llms[-1]

    yield model
    for llm in llms:
        llm.close()


def test_an_answer_comes_whole_or_piece_by_piece_and_is_the_same(llm: Ask) -> None:
    plain = llm("plain")
    pieces = list(plain.stream("system", "Question: where do cats sleep?"))
    assert len(pieces) > 3
    assert "".join(pieces) == plain.complete("system", "Question: where do cats sleep?") != ""


@pytest.mark.parametrize("kind", ["busy", "down"])
def test_a_busy_endpoint_is_asked_again(llm: Ask, kind: str) -> None:
    assert llm(f"{kind}-2").complete("system", f"Question: {kind}?") == f"I was asked: {kind}?"
    assert list(llm(f"{kind}-1").stream("system", f"Question: {kind} stream?"))


@pytest.mark.parametrize(
    ("model", "says"),
    [
        ("slow", r"did not answer within 0\.3 s; raise WORKBENCH_LLM_TIMEOUT"),
        ("busy-9", r"too many requests \(429\), 3 times"),
        ("down-9", r"failed \(500\)"),
        ("locked", "correct WORKBENCH_LLM_API_KEY"),
        ("garbled", "did not return a chat message"),
        ("empty", "did not return a chat message"),
    ],
)
def test_each_failure_is_one_sentence_that_explains_what_to_do(llm: Ask, model: str, says: str) -> None:
    failing = llm(model, timeout=0.3)
    with pytest.raises(ModelError, match=says) as whole:
        failing.complete("system", f"Question: {model}?")
    with pytest.raises(ModelError, match=says):
        list(failing.stream("system", f"Question: {model} in pieces?"))
    assert str(whole.value).count("\n") == 0 and str(whole.value).endswith(".")


def test_an_endpoint_that_is_not_there_is_named(llm: Ask) -> None:
    with pytest.raises(ModelError, match=r"127\.0\.0\.1:9/v1 is unreachable.*WORKBENCH_LLM_BASE_URL"):
        llm("plain", url="http://127.0.0.1:9/v1").complete("system", "hello")


def test_a_stream_that_breaks_off_reports_it_after_what_came(llm: Ask) -> None:
    pieces = llm("cut").stream("system", "Question: a rather long question with many words?")
    got = []
    with pytest.raises(ModelError, match="closed the connection"):
        got.extend(iter(pieces))
    assert next(llm("cut").stream("system", "Question: a rather long one?")) == "I "


def test_json_is_found_in_prose_and_prose_without_any_is_refused(llm: Ask) -> None:
    prompt = "Answer with a JSON object.\n\nQuestion: cats sleep\n\n[1]\nCats sleep.\n\n[2]\nDogs bark."
    assert llm("plain").read_json("system", prompt) == {"1": 6, "2": 0}
    with pytest.raises(ModelError, match="did not return the requested JSON but 'With pleasure"):
        llm("chatty").read_json("system", prompt)


def test_an_endpoint_without_a_model_is_refused(make_settings) -> None:
    with Workbench.open(settings=make_settings(llm_base_url="http://127.0.0.1:9/v1")) as wb:
        with pytest.raises(ConfigurationError, match="set WORKBENCH_LLM_MODEL too"):
            wb.ask("anything?")
        assert len(wb.search("anything?")) == 0


@pytest.mark.parametrize(
    ("name", "variables", "url", "key"),
    [
        ("openai:gpt-5-mini", {"OPENAI_API_KEY": "a"}, "https://api.openai.com/v1", "a"),
        ("anthropic:claude", {"ANTHROPIC_API_KEY": "b"}, "https://api.anthropic.com/v1", "b"),
        ("cohere:command", {"COHERE_API_KEY": "c"}, "https://api.cohere.ai/compatibility/v1", "c"),
        ("gemini:flash", {"GEMINI_API_KEY": "d"}, "https://generativelanguage.googleapis.com/v1beta/openai", "d"),
        ("mistral:small", {"MISTRAL_API_KEY": "e"}, "https://api.mistral.ai/v1", "e"),
        ("ollama:llama3:8b", {"OLLAMA_HOST": "10.0.0.5:11434"}, "http://10.0.0.5:11434/v1", ""),
        ("endpoint:a/b?url=http://localhost:9/v1/", {"WORKBENCH_MODEL_API_KEY": "f"}, "http://localhost:9/v1", "f"),
        ("llama3:8b", {}, "http://configured/v1", "own"),
    ],
)
def test_a_name_has_the_address_and_the_key_of_its_provider(
    name: str, variables: dict[str, str], url: str, key: str
) -> None:
    llm = load_llm(name, "http://configured/v1", "own", 60.0, variables)
    model = name if name == "llama3:8b" else name.partition("?")[0].partition(":")[2]
    assert (llm.base_url(), llm.name, llm.api_key) == (url, model, key)
    assert (*LLM_PROVIDERS, "python") == LLM_FAMILIES


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("openai:gpt-5-mini", "set OPENAI_API_KEY"),
        ("endpoint:x", r"needs a URL: add \?url="),
        ("openai:x?api_key=secret", "names are stored; set keys as environment"),
        ("openai:x?rate=3", "has no parameter 'rate'"),
        ("python:json.dumps", "was not loaded|must be a LlamaIndex LLM"),
        ("gpt-5", "is not a GGUF file; set WORKBENCH_LLM_BASE_URL .* or use FAMILY:MODEL with one of 'openai'"),
    ],
)
def test_a_name_that_cannot_be_used_is_answered_with_what_to_do(name: str, says: str) -> None:
    with pytest.raises(ConfigurationError, match=says):
        load_llm(name, "", "", 60.0, {})


@pytest.fixture
def own_llm(tmp_path: Path, llm_url: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a real LlamaIndex LLM in a user's module, which calls the endpoint."""
    (tmp_path / "my_llms.py").write_text(
        "from llama_index.llms.openai import OpenAI\n"
        f"plain = OpenAI(model='gpt-4o', api_base={llm_url!r}, api_key='k', max_retries=0)\n"
        "gone = OpenAI(model='gpt-4o', api_base='http://127.0.0.1:9/v1', api_key='k', max_retries=0)\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    return "python:my_llms:plain"


def test_an_llm_of_llamaindex_answers_and_judges_by_its_dotted_path(
    own_llm: str, make_settings: Callable[..., Settings], tmp_path: Path
) -> None:
    own = load_llm(own_llm, "", "", 60.0, {})
    asked = own.complete("system", "Question: which cats sleep?")
    assert asked == "I was asked: which cats sleep?" == "".join(own.stream("system", "Question: which cats sleep?"))
    with pytest.raises(ModelError, match=r"'python:my_llms:gone' failed \(APIConnectionError.*; correct it or use"):
        load_llm("python:my_llms:gone", "", "", 60.0, {}).complete("system", "hello")
    assert "replied 'I was asked" in try_model(make_settings(llm_model=own_llm), "llm")
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "cats.md").write_text("Cats sleep on warm roofs.")
    with Workbench.open(settings=make_settings(llm_model=own_llm)) as wb:
        wb.ingest(tmp_path / "docs", source="Cats")
        answer = wb.ask("Which animals sleep on roofs?")
        assert answer.kind == "llm" and answer.model == own_llm and answer.citations

        async def judge() -> str:
            async with Endpoint.from_workbench(wb) as endpoint:
                return await endpoint.complete("Question: which cats sleep?")

        assert asyncio.run(judge()) == "I was asked: which cats sleep?"


def test_two_llms_are_compared_in_one_experiment_and_a_configured_one_is_part_of_a_run(
    own_llm: str, llm_url: str, make_settings: Callable[..., Settings], tmp_path: Path
) -> None:
    (tmp_path / "docs").mkdir()
    for name, text in {"cat": "A cat sleeps on warm roofs.", "car": "A car has four wheels."}.items():
        (tmp_path / "docs" / f"{name}.md").write_text(text)
    named = f"endpoint:chatty?url={llm_url}&price=1/4"
    with Workbench.open(settings=make_settings()) as wb:
        wb.ingest(tmp_path / "docs", source="Things")
        wb.test_sets.from_pairs("Things", [("Which feline sleeps?", "cat.md"), ("What has an automobile?", "car.md")])
        sets = {"llm-rerank": [{"llm": own_llm}, {"llm": named}], "hyde": [{"llm": named}]}
        made = wb.experiments.create("LLMs", "Things", ["llm-rerank", "hyde"], parameters=sets)
        wb.experiments.run(made.id)
        runs = {one.cell.label: one for one in wb.experiments.results(made.id)}
        assert list(runs) == [f"llm-rerank llm={own_llm}", f"llm-rerank llm={named}", f"hyde llm={named}"]
        assert [one.error for one in runs.values()] == [None] * 3
        assert all(one.run and one.run.means["hit@1"] == 1.0 for one in runs.values())
        notes = [str([answer.degraded for answer in one.run.answers.values()]) for one in runs.values() if one.run]
        assert ["did not return the requested JSON" in note for note in notes] == [False, True, False]  # chatty: prose
        with pytest.raises(ConfigurationError, match="It needs an LLM"):
            wb.search("Which feline sleeps?", "hyde")
    keys = []
    for model in ("plain", "plain-2", "plain"):
        with Workbench.open(settings=make_settings(llm_base_url=llm_url, llm_model=model)) as wb:
            made = wb.experiments.create("Configured", "Things", ["hyde"])
            wb.experiments.run(made.id)
            keys.append(wb.experiments.results(made.id)[0].run_id)
    assert keys[0] == keys[2] != keys[1]  # answers of another model are not reused

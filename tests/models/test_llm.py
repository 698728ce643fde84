"""The chat model with a real endpoint on loopback, including its failures."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from workbench import Workbench
from workbench.errors import ConfigurationError, ModelError
from workbench.models.llm import Llm

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

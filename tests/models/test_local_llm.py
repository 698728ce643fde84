"""A chat model in a separate process: a real small model, run by llama.cpp."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import psutil
import pytest

from workbench.errors import ConfigurationError, ModelError
from workbench.models.llm import LocalLlm
from workbench.retrieval.llm_prompts import GRADE, RETRIEVAL_SYSTEM, grades_schema, questions_schema

pytestmark = pytest.mark.slow
PATIENT = 240.0  # seconds: two busy cores write a few words a second
TOKENS = 512  # the most that an answer has
ESSAY = ("You write essays.", "Write a long essay on the history of Rome, in twelve chapters.")  # as long as it may be
OWNER = """
import os, sys
from workbench.models.llm import LocalLlm
llm = LocalLlm(sys.argv[1])
llm.base_url()
print(llm.process_id, flush=True)
os.kill(os.getpid(), 9)
"""


@pytest.fixture(scope="module")
def llm(gguf: Path) -> Iterator[LocalLlm]:
    """The model, closed at the end."""
    model = LocalLlm(str(gguf), timeout=PATIENT)
    yield model
    model.close()
    assert model.process_id is None


def test_it_is_not_started_before_it_is_asked_and_answers_in_a_process_of_its_own(gguf: Path, llm: LocalLlm) -> None:
    assert llm.name == gguf.stem and llm.process_id is None
    assert "blue" in llm.complete("Answer in three words.", "What colour is a clear sky?").lower()
    assert llm.process_id not in (None, os.getpid()) and psutil.pid_exists(llm.process_id or 0)


def test_an_answer_comes_piece_by_piece(llm: LocalLlm) -> None:
    pieces = list(llm.stream("Answer in one sentence.", "Where do cats sleep?"))
    assert len(pieces) > 3 and "".join(pieces).strip()


def writing(llm: LocalLlm) -> list[int]:
    """Return the number of tokens of each answer that is being written."""
    slots = httpx.get(llm.base_url().removesuffix("/v1") + "/slots").json()
    return [slot["next_token"][0]["n_decoded"] for slot in slots if slot["is_processing"]]


def test_a_reader_who_leaves_stops_the_writing(llm: LocalLlm) -> None:
    pieces = llm.stream(*ESSAY)
    next(pieces)
    assert writing(llm) != []
    pieces.close()
    for _ in range(200):
        if not (written := writing(llm)):
            break
        assert max(written) < TOKENS // 2, "it still writes"
        time.sleep(0.05)
    else:
        pytest.fail("it still writes")


def test_grades_and_lists_are_held_to_their_schema_by_a_grammar(llm: LocalLlm) -> None:
    """Without the grammar, this model answers in prose."""
    passages = "[1]\nCats sleep on sofas.\n\n[2]\nDogs bark.\n\n[3]\nA sofa has legs."
    prompt = GRADE.format(query="Where do cats sleep?", passages=passages)
    grades = llm.read_json(RETRIEVAL_SYSTEM, prompt, grades_schema(3))
    assert isinstance(grades, dict) and list(grades) == ["1", "2", "3"]
    assert all(isinstance(grade, int) and 0 <= grade <= 10 for grade in grades.values())
    questions = llm.read_json(RETRIEVAL_SYSTEM, "Write two short questions about cats.", questions_schema(2))
    assert isinstance(questions, list) and len(questions) == 2 and all(questions)


def test_a_model_whose_process_died_is_started_again_for_the_next_question(llm: LocalLlm) -> None:
    llm.base_url()
    first = llm.process_id
    os.kill(first or 0, signal.SIGKILL)
    psutil.wait_procs([psutil.Process(first)] if psutil.pid_exists(first or 0) else [], timeout=20)
    assert llm.complete("Answer with one word.", "Say yes.").strip()
    assert llm.process_id != first


def test_a_model_whose_port_was_taken_in_the_meantime_answers_on_another(llm: LocalLlm) -> None:
    first = llm.base_url()
    model = psutil.Process(llm.process_id or 0)
    model.kill()
    psutil.wait_procs([model], timeout=20)
    with socket.create_server(("127.0.0.1", int(first.rsplit(":", 1)[1].removesuffix("/v1")))):
        assert llm.complete("Answer with one word.", "Say yes.").strip()
        assert llm.base_url() != first


def test_an_answer_that_is_broken_off_by_the_end_of_the_process_explains_what_to_do(llm: LocalLlm) -> None:
    pieces = llm.stream(*ESSAY)
    next(pieces)
    os.kill(llm.process_id or 0, signal.SIGKILL)
    with pytest.raises(ModelError, match="exited while writing the answer; try again, which restarts it"):
        list(pieces)


def test_its_process_ends_with_the_one_that_started_it_even_when_that_was_killed(gguf: Path) -> None:
    owner = subprocess.run([sys.executable, "-c", OWNER, str(gguf)], capture_output=True, text=True, check=False)
    assert owner.returncode == -signal.SIGKILL, owner.stderr
    model = int(owner.stdout)
    _gone, alive = psutil.wait_procs([psutil.Process(model)] if psutil.pid_exists(model) else [], timeout=60)
    assert alive == []


def test_a_file_that_is_no_model_and_one_that_is_not_there_are_reported_in_a_sentence(
    tmp_path: Path, gguf: Path
) -> None:
    cut = tmp_path / "cut.gguf"
    with gguf.open("rb") as whole:
        cut.write_bytes(whole.read(100_000))
    broken = LocalLlm(str(cut))
    with pytest.raises(ModelError, match=r"^llama\.cpp cannot load cut\.gguf; download it again"):
        broken.complete("", "hello")
    broken.close()
    with pytest.raises(ConfigurationError, match=r"^File not found: .*nowhere\.gguf\. Correct WORKBENCH_LLM_MODEL\.$"):
        LocalLlm(str(tmp_path / "nowhere.gguf"))
    with pytest.raises(ConfigurationError, match=r"is 'gpt-4', which is not a GGUF file; set WORKBENCH_LLM_BASE_URL"):
        LocalLlm("gpt-4")

"""Telemetry: a real collector receives searches, jobs and tool calls, but none of their words; only if enabled."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from urllib3 import PoolManager, Retry

from evals.background import enqueue_experiment
from tests.mcp_app.processes import environment, over_stdio, serving
from tests.otlp_collector import Collector, attributes, collecting
from workbench import Workbench
from workbench.settings import Settings
from workbench.telemetry import EXPORT_FAILED
from workbench.types import TimedStep

QUESTION = "purring contentment"
DOCS = {
    "cats.md": "# Cats\n\nPurring is how a cat shows contentment. A cat sleeps most of the day.",
    "dogs.md": "# Dogs\n\nDogs bark at strangers. A dog guards the house.",
}


def ran(settings: Settings, told: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    """Run the command in a separate process, which sends its telemetry before it ends."""
    command = [sys.executable, "-m", "workbench.cli", *words]
    process = subprocess.run(command, env=environment(settings, **told), capture_output=True, text=True, timeout=120)
    assert process.returncode == 0, process.stderr
    return process


def named(collector: Collector, name: str) -> Any:
    """Return the only span with a name."""
    [span] = [span for span in collector.spans if span.name == name]
    return span


def test_a_search_reports_its_strategy_its_steps_and_times_and_no_word_of_it(
    minilm_wb: Workbench, folder: Callable[..., Path]
) -> None:
    minilm_wb.ingest([folder(DOCS)])
    with collecting() as collector:
        ran(minilm_wb.settings, collector.environment, "search", QUESTION, "--strategy", "hybrid")
    search = named(collector, "search hybrid")
    told = attributes(search)
    assert (told["workbench.strategy"], told["workbench.index"]) == ("hybrid", minilm_wb.status()["indexes"][0]["name"])
    assert (told["workbench.results"], told["workbench.limit"], told["workbench.notes"]) == (2, 10, 0)
    steps = [span for span in collector.spans if span.name.startswith("step ")]
    assert {f"step {step}" for step in (TimedStep.EMBED, TimedStep.VECTOR)} <= {span.name for span in steps}
    assert {span.parent_span_id for span in steps} == {search.span_id}
    assert all(search.start_time_unix_nano <= s.start_time_unix_nano <= s.end_time_unix_nano for s in steps)
    assert "step keyword" in {span.name for span in steps}
    assert collector.services() == {"rag-workbench"}
    everything = b"".join(request.SerializeToString() for request in collector.sent).lower()
    assert not [word for word in (*QUESTION.split(), "cats", "sleeps") if word.encode() in everything]


def work(wb: Workbench, collector: Collector, job_id: str) -> None:
    """Run a worker in a separate process until it has done a job."""
    environment_of_worker = environment(wb.settings, **collector.environment)
    worker = subprocess.Popen([sys.executable, "-m", "workbench.cli", "worker"], env=environment_of_worker)
    try:
        assert wb.jobs.wait(job_id, timeout=60).status == "completed"
    finally:
        worker.terminate()
        worker.wait(60)


def test_a_job_reports_its_kind_and_how_it_ended(wb: Workbench, folder: Callable[..., Path]) -> None:
    queued = ran(wb.settings, {}, "ingest", str(folder(DOCS)), "--background", "--json")
    job = wb.jobs.get(json.loads(queued.stdout)["job"])
    with collecting() as collector:
        work(wb, collector, job.id)
    span = named(collector, "job ingest")
    told = attributes(span)
    assert (told["workbench.kind"], told["workbench.job"], told["workbench.with_errors"]) == ("ingest", job.id, False)
    assert {s.parent_span_id for s in collector.spans if s.name.startswith("ingest ")} == {span.span_id}


def test_the_answers_of_an_experiment_are_in_the_trace_of_its_job(wb: Workbench, folder: Callable[..., Path]) -> None:
    texts = [{"_id": name, "text": text} for name, text in DOCS.items()]
    files = {"corpus.jsonl": texts, "queries.jsonl": [{"_id": "q1", "text": QUESTION}]}
    test_set = folder({name: "\n".join(map(json.dumps, rows)) for name, rows in files.items()} | {
        "qrels.tsv": "q1\tcats.md\t1"}, "set")  # fmt: skip
    made = wb.experiments.create("", wb.test_sets.from_folder(test_set).id, ["keyword"], answers=True)
    with collecting() as collector:
        work(wb, collector, enqueue_experiment(wb, made.id).id)
    job, asked = named(collector, "job experiment"), named(collector, "ask keyword")
    assert (asked.trace_id, asked.parent_span_id) == (job.trace_id, job.span_id)


def test_an_ingest_and_a_build_report_their_index_and_counts_and_no_word_of_a_document(
    wb: Workbench, folder: Callable[..., Path]
) -> None:
    wb.indexes.create("small", chunker="sentence")
    with collecting() as collector:
        ran(wb.settings, collector.environment, "ingest", str(folder({**DOCS, "broken.pdf": b"%PDF-"})))
        ran(wb.settings, collector.environment, "indexes", "build", "small")
    [ingest] = [attributes(span) for span in collector.spans if span.name.startswith("ingest ")]
    counts = {name: ingest[f"workbench.{name}"] for name in ("items", "added", "updated", "unchanged", "failed")}
    assert counts == {"items": 3, "added": 2, "updated": 0, "unchanged": 0, "failed": 1}
    assert ingest["workbench.passages"] == ingest["workbench.embedded"] > 0
    assert attributes(named(collector, "build small"))["workbench.documents"] == 2
    everything = b"".join(request.SerializeToString() for request in collector.sent).lower()
    assert not [word for word in ("cats", "purring", "broken", "docs") if word.encode() in everything]


def test_a_tool_call_holds_its_search_and_one_that_fails_reports_the_kind_of_error(
    wb: Workbench, folder: Callable[..., Path]
) -> None:
    wb.ingest([folder(DOCS)])

    async def script(told: dict[str, str]) -> None:
        async with Client(over_stdio(wb.settings, **told)) as client:
            assert not (await client.call_tool("search_knowledge_base", {"query": QUESTION})).is_error
            assert (await client.call_tool("search_knowledge_base", {"query": ""})).is_error

    with collecting() as collector:
        asyncio.run(script(collector.environment))
    calls = [span for span in collector.spans if span.name == "tool search_knowledge_base"]
    [failed] = [attributes(span)["error.type"] for span in calls if "error.type" in attributes(span)]
    [search] = [span for span in collector.spans if span.name.startswith("search ")]
    assert (len(calls), failed) == (2, "InvalidInput")
    assert search.parent_span_id in {span.span_id for span in calls}
    assert all(span.parent_span_id for span in calls)  # the MCP SDK's own


def test_the_search_by_which_the_app_warms_up_is_not_reported(wb: Workbench, folder: Callable[..., Path]) -> None:
    wb.ingest([folder(DOCS)])
    with collecting() as collector, serving(wb.settings, **collector.environment) as address:
        asked = PoolManager(retries=Retry(total=None, connect=60, backoff_factor=0.2, backoff_max=1))
        while not asked.request("GET", f"{address}/health").json()["warm"]:
            time.sleep(0.05)
        assert b"contentment" in asked.request("POST", f"{address}/api/rag/query", json={"query": "cats"}).data
    [told] = [span for span in collector.spans if span.name.startswith("search ")]
    assert attributes(told)["workbench.limit"] > 1


def test_nothing_is_sent_unless_it_is_requested(wb: Workbench, folder: Callable[..., Path]) -> None:
    wb.ingest([folder(DOCS)])
    with collecting() as collector:
        ran(wb.settings, {**collector.environment, "WORKBENCH_TELEMETRY": ""}, "search", QUESTION)
    assert collector.sent == []


def test_a_search_answers_though_no_collector_does(wb: Workbench, folder: Callable[..., Path]) -> None:
    wb.ingest([folder(DOCS)])
    nowhere = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "WORKBENCH_TELEMETRY": "true"}
    told = ran(wb.settings, nowhere, "search", QUESTION)
    assert "cats.md" in told.stdout
    assert [line for line in told.stderr.splitlines() if "OTEL" in line or "rror" in line] == [EXPORT_FAILED]


def test_a_job_that_was_stopped_is_reported_by_its_class_and_is_no_failure() -> None:
    code = f"""
from workbench.errors import Cancelled
from workbench.telemetry import JOB, export, measure
export()
for kind in (Cancelled, ValueError):
    try:
        with measure(JOB, kind.__name__):
            raise kind("{QUESTION}")
    except kind:
        pass
"""
    with collecting() as collector:
        subprocess.run([sys.executable, "-c", code], env={**os.environ, **collector.environment}, check=True)
    stopped, failed = named(collector, "job Cancelled"), named(collector, "job ValueError")
    assert [attributes(span)["error.type"] for span in (stopped, failed)] == ["Cancelled", "ValueError"]
    assert (stopped.status.code, failed.status.code) == (0, 2)  # unset, error


@pytest.mark.parametrize("kind", [ValueError, KeyboardInterrupt])
def test_what_a_block_raises_continues(kind: type[BaseException]) -> None:
    from workbench.telemetry import JOB, measure

    with pytest.raises(kind), measure(JOB, "ingest"):
        raise kind("a sentence that may repeat a question")


# OpenInference's conventions (openinference-semantic-conventions 0.1.42); numbers of lists are replaced by N
OPENINFERENCE = {
    "openinference.span.kind",
    "input.value",
    "input.mime_type",
    "output.value",
    "output.mime_type",
    "retrieval.documents.N.document.id",
    "retrieval.documents.N.document.score",
    "retrieval.documents.N.document.content",
    "llm.model_name",
    "llm.system",
    "embedding.model_name",
    "reranker.model_name",
    "llm.input_messages.N.message.role",
    "llm.input_messages.N.message.content",
    "llm.output_messages.N.message.role",
    "llm.output_messages.N.message.content",
    "llm.token_count.prompt",
    "llm.token_count.completion",
    "llm.token_count.total",
    "tool.name",
}


def test_a_search_with_many_results_keeps_its_own_attributes(wb: Workbench, folder: Callable[..., Path]) -> None:
    wb.ingest([folder({f"{number}.md": f"Cat number {number} sleeps." for number in range(70)})])
    with collecting() as collector:
        content = {"WORKBENCH_TELEMETRY_CONTENT": "true"}
        ran(wb.settings, content | collector.environment, "search", "cat", "--strategy", "keyword", "--limit", "70")
    told = attributes(named(collector, "search keyword"))
    assert (told["openinference.span.kind"], told["workbench.strategy"]) == ("RETRIEVER", "keyword")
    assert len(json.loads(told["gen_ai.retrieval.documents"])) == 70
    ids = [name for name in told if name.endswith(".document.id")]
    assert len(ids) == 30 and "retrieval.documents.0.document.content" in told


def answered_over_mcp(wb: Workbench, llm_url: str, **told: str) -> list[dict[str, Any]]:
    """Return the attributes of the spans of a command that asks the LLM, and of a tool call."""
    told |= {"WORKBENCH_LLM_BASE_URL": llm_url, "WORKBENCH_LLM_MODEL": "good"}

    async def script(environment_of_server: dict[str, str]) -> None:
        async with Client(over_stdio(wb.settings, **environment_of_server)) as client:
            assert not (await client.call_tool("search_knowledge_base", {"query": QUESTION})).is_error

    with collecting() as collector:
        ran(wb.settings, told | collector.environment, "ask", QUESTION)
        asyncio.run(script(told | collector.environment))
    return [attributes(span) for span in collector.spans]


@pytest.mark.parametrize("with_content", [False, True])
def test_spans_follow_the_conventions_and_have_texts_only_if_requested(
    wb: Workbench, folder: Callable[..., Path], llm_url: str, with_content: bool
) -> None:
    from opentelemetry.semconv._incubating.attributes import gen_ai_attributes as gen_ai

    wb.ingest([folder(DOCS)])
    spans = answered_over_mcp(wb, llm_url, WORKBENCH_TELEMETRY_CONTENT=str(with_content).lower())
    names = {re.sub(r"\.\d+\.", ".N.", name) for span in spans for name in span}
    foreign = {name for name in names if not name.startswith(("workbench.", "error."))}
    assert foreign <= OPENINFERENCE | {name for key, name in vars(gen_ai).items() if key.startswith("GEN_AI_")}
    kinds = {span["openinference.span.kind"] for span in spans}
    assert kinds == {"RETRIEVER", "EMBEDDING", "CHAIN", "LLM", "TOOL", "RERANKER"}
    [chats, searches] = [[s for s in spans if s["openinference.span.kind"] == kind] for kind in ("LLM", "RETRIEVER")]
    assert {(chat["gen_ai.operation.name"], chat["gen_ai.request.model"]) for chat in chats} == {("chat", "good")}
    assert {(chat["gen_ai.provider.name"], chat["llm.system"]) for chat in chats} == {("openai", "openai")}
    assert {(search["gen_ai.data_source.id"], search["gen_ai.request.top_k"]) for search in searches} == {
        ("main", 8), ("main", 11)
    }  # fmt: skip
    for search in searches:
        found = json.loads(search["gen_ai.retrieval.documents"])
        assert [one["score"] for one in found] == sorted((one["score"] for one in found), reverse=True)
        assert search["retrieval.documents.0.document.id"] == found[0]["id"]
    said = [str(value) for span in spans for value in span.values()]
    assert any(QUESTION in text for text in said) is any("Purring is how" in text for text in said) is with_content
    embedded = [span for span in spans if span["openinference.span.kind"] == "EMBEDDING"]
    own = {"gen_ai.request.model": "hash", "embedding.model_name": "hash", "gen_ai.provider.name": "rag-workbench"}
    assert all(own.items() <= one.items() for one in embedded)
    if with_content:
        assert {search["input.value"] for search in searches} == {QUESTION}
        [answer] = [
            span for span in spans if "workbench.strategy" in span and span["openinference.span.kind"] == "CHAIN"
        ]
        assert answer["input.value"] == QUESTION
        assert answer["output.value"].startswith("Purring is how")
        [call] = [span for span in spans if span["openinference.span.kind"] == "TOOL"]
        assert call["gen_ai.tool.call.result"] == call["output.value"]
        assert (call["gen_ai.tool.type"], call["output.mime_type"]) == ("function", "application/json")
        assert all(json.loads(chat["gen_ai.input.messages"])[1]["role"] == "user" for chat in chats)


DROPPED_ANSWERS = """
from workbench import Workbench

with Workbench.open() as wb:
    unread, begun = wb.answers.ask({question!r}), wb.answers.ask({question!r})
    next(iter(begun))
    del unread, begun
"""


def test_an_answer_that_is_not_read_to_its_end_ends_its_spans(
    wb: Workbench, folder: Callable[..., Path], llm_url: str
) -> None:
    wb.ingest([folder(DOCS)])
    with collecting() as collector:
        told = {"WORKBENCH_LLM_BASE_URL": llm_url, "WORKBENCH_LLM_MODEL": "good"} | collector.environment
        code = [sys.executable, "-W", "error", "-c", DROPPED_ANSWERS.format(question=QUESTION)]
        done = subprocess.run(code, env=environment(wb.settings, **told), capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    names = [span.name.split()[0] for span in collector.spans]
    assert (names.count("ask"), names.count("search"), names.count("chat")) == (2, 2, 2)


def test_an_answer_is_one_trace_with_a_call_of_the_model_as_a_client(
    wb: Workbench, folder: Callable[..., Path], llm_url: str
) -> None:
    wb.ingest([folder(DOCS)])
    told = {"WORKBENCH_LLM_BASE_URL": llm_url, "WORKBENCH_LLM_MODEL": "good"}
    with collecting() as collector:
        ran(wb.settings, told | collector.environment, "ask", QUESTION)
    [asked] = [span for span in collector.spans if span.name.startswith("ask ")]
    chat, search = (next(s for s in collector.spans if s.name.startswith(f"{name} ")) for name in ("chat", "search"))
    assert (chat.parent_span_id, search.parent_span_id) == (asked.span_id, asked.span_id)
    assert {span.trace_id for span in collector.spans} == {asked.trace_id}
    assert chat.kind == chat.SPAN_KIND_CLIENT


def test_each_call_of_a_judge_is_one_of_a_model(wb: Workbench, folder: Callable[..., Path], llm_url: str) -> None:
    lines = {"corpus.jsonl": {"_id": "d1", "text": DOCS["cats.md"]}, "queries.jsonl": {"_id": "q1", "text": QUESTION}}
    files = {name: json.dumps(line) for name, line in lines.items()} | {"qrels.tsv": "q1\td1\t1"}
    told = {"WORKBENCH_LLM_BASE_URL": llm_url, "WORKBENCH_LLM_MODEL": "good"}
    with collecting() as collector:
        ran(
            wb.settings, told | collector.environment, "eval", str(folder(files)), "--strategies", "keyword",
            "--ragas", "llm",
        )  # fmt: skip
    calls = [attributes(span) for span in collector.spans if span.name == "chat good"]
    assert len(calls) >= 3  # an answer, its scores, and a grade
    assert {(one["openinference.span.kind"], one["gen_ai.usage.input_tokens"] > 0) for one in calls} == {("LLM", True)}

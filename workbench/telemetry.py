"""OpenTelemetry traces: a span for each search, its steps, LLM calls, ingests, jobs and tool calls.

Nothing is recorded until ``export`` is called or the embedding program sets a provider. Names of strategies, indexes,
models, tools and kinds of jobs are recorded, and ids and scores of the passages found. Words of questions, passages,
prompts and answers are recorded only after ``record_content(True)``.

Besides our own attributes, spans have those of OpenInference (read by Phoenix) and of OpenTelemetry's ``gen_ai``
conventions (read by Langfuse and others).
"""

from __future__ import annotations

import atexit
import json
import logging
import os
import platform
import threading
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from opentelemetry import trace

from workbench.errors import Cancelled
from workbench.runtime import __version__, check_extra

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider

SERVICE_NAME = "rag-workbench"  # instrumentation scope, and the service unless OTEL_SERVICE_NAME is set
ATTRIBUTE_PREFIX = "workbench."
SHUTDOWN_TIMEOUT_S = 2.5  # seconds that an exiting process waits for a collector
MAX_DOCUMENTS = 30  # of a search as attributes, three each: a span keeps 128 and drops the oldest, such as its kind

EXPORT_FAILED = "Traces could not be sent to OTEL_EXPORTER_OTLP_ENDPOINT (default: port 4318 of this machine)."
EXPORTER_LOGGERS = ("opentelemetry.exporter", "opentelemetry.sdk._shared_internal")

logger = logging.getLogger(__name__)

AttributeValue = str | int | float | bool

_export_lock = threading.Lock()
_is_suppressed: ContextVar[bool] = ContextVar("suppressed", default=False)
_has_content = threading.Event()  # whether texts are recorded


class Operation(NamedTuple):
    """A kind of work that is measured."""

    name: str  # first word of the span's name
    target: str  # attribute that distinguishes operations of this kind, and second word of the span's name
    kind: str = "CHAIN"  # OpenInference's kind of span
    fixed: Mapping[str, str] = MappingProxyType({})  # further attributes of these conventions
    copied: Mapping[str, tuple[str, ...]] = MappingProxyType({})  # their names for our own attributes, by those
    span_kind: trace.SpanKind = trace.SpanKind.INTERNAL


SEARCH = Operation(
    "search", "strategy", "RETRIEVER", {"gen_ai.operation.name": "retrieval"},
    {"index": ("gen_ai.data_source.id",), "limit": ("gen_ai.request.top_k",)},
)  # fmt: skip
STEP = Operation("step", "step")
EMBED = Operation(
    "step", "step", "EMBEDDING", {"gen_ai.operation.name": "embeddings"},
    {"model": ("gen_ai.request.model", "embedding.model_name"), "provider": ("gen_ai.provider.name",)},
)  # fmt: skip
RERANK = Operation("step", "step", "RERANKER", copied={"model": ("reranker.model_name",)})
ASK = Operation("ask", "strategy")
CHAT = Operation(
    "chat", "model", "LLM",
    # whose protocol the endpoints have
    {"gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai", "llm.system": "openai"},
    {"model": ("gen_ai.request.model", "llm.model_name"), "stream": ("gen_ai.request.stream",)},
    trace.SpanKind.CLIENT,
)  # fmt: skip
INGEST, BUILD = Operation("ingest", "index"), Operation("build", "index")
JOB = Operation("job", "kind")
TOOL = Operation(
    "tool", "tool", "TOOL", {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.type": "function"},
    {"tool": ("gen_ai.tool.name", "tool.name")},
)  # fmt: skip


class Measurement:
    """A running operation, to which attributes known only at its end can be added."""

    def __init__(self, span: trace.Span) -> None:
        self._span = span
        self.is_kept = False  # whether the span continues after its block, until ``end``

    def add_attributes(self, **attributes: AttributeValue) -> None:
        """Add attributes to the span."""
        self._span.set_attributes({ATTRIBUTE_PREFIX + name: value for name, value in attributes.items()})

    def add_retrieval(self, question: str, passages: Iterable[tuple[str, float, str]]) -> None:
        """Add (id, score, text) of the passages found, best first; texts only if content is recorded."""
        if not self._span.is_recording():
            return
        told: dict[str, AttributeValue] = {}
        found: list[dict[str, AttributeValue]] = []
        for rank, (key, score, text) in enumerate(passages):
            place = f"retrieval.documents.{rank}.document."
            found.append({"id": key, "score": score})
            if rank >= MAX_DOCUMENTS:
                continue
            told |= {f"{place}id": key, f"{place}score": score}
            if _has_content.is_set():
                told[f"{place}content"] = text
        self._span.set_attributes({**told, "gen_ai.retrieval.documents": json.dumps(found)})
        self.add_text("gen_ai.retrieval.query.text", question)
        self.add_text("input.value", question)

    def add_chat(self, system: str, prompt: str, answer: str, tokens: tuple[int, int]) -> None:
        """Add the tokens of prompt and answer, and the messages if content is recorded."""
        for name, count in zip(("input", "output"), tokens, strict=True):
            self._span.set_attribute(f"gen_ai.usage.{name}_tokens", count)
        for name, count in zip(("prompt", "completion", "total"), (*tokens, sum(tokens)), strict=True):
            self._span.set_attribute(f"llm.token_count.{name}", count)
        messages = (("system", system), ("user", prompt), ("assistant", answer))
        for place, (role, text) in zip(("input.0", "input.1", "output.0"), messages, strict=True):
            side, number = place.split(".")
            self.add_text(f"llm.{side}_messages.{number}.message.role", role)
            self.add_text(f"llm.{side}_messages.{number}.message.content", text)
        as_parts = [{"role": role, "parts": [{"type": "text", "content": text}]} for role, text in messages]
        self.add_text("gen_ai.input.messages", json.dumps(as_parts[:2], ensure_ascii=False))
        answered = [{**as_parts[2], "finish_reason": "stop"}]
        self.add_text("gen_ai.output.messages", json.dumps(answered, ensure_ascii=False))

    def add_call(self, arguments: Mapping[str, object], answer: str) -> None:
        """Add the arguments and the answer of a tool call, if content is recorded."""
        given = json.dumps(arguments, ensure_ascii=False, default=str)
        for name, text in (("input", given), ("output", answer)):
            self.add_text(f"{name}.value", text)
            self.add_text(f"{name}.mime_type", "application/json")
        self.add_text("gen_ai.tool.call.arguments", given)
        self.add_text("gen_ai.tool.call.result", answer)

    def end(self) -> None:
        """End a span that was kept."""
        self._span.end()

    def add_text(self, name: str, text: str) -> None:
        """Add a text if content is recorded."""
        if _has_content.is_set():
            self._span.set_attribute(name, text)

    def record_failure(self, error_type: str, *, is_error: bool = True) -> None:
        """Record what ended the operation early.

        Args:
            error_type: Name of an error class. Its message may repeat a question and is never recorded.
            is_error: False if a person or the worker's shutdown stopped it.
        """
        self._span.set_attribute("error.type", error_type)
        if is_error:
            self._span.set_status(trace.StatusCode.ERROR)


def is_enabled() -> bool:
    """Return whether traces are recorded: ``export`` was called, or the embedding program set a provider."""
    return not isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider)


def record_content(wanted: bool) -> None:
    """Record texts of questions, passages, prompts and answers from now on, or stop it."""
    (_has_content.set if wanted else _has_content.clear)()


@contextmanager
def suppress_telemetry() -> Generator[None]:
    """Record nothing inside the block, such as a warm-up search."""
    before = _is_suppressed.set(True)
    try:
        yield
    finally:
        _is_suppressed.reset(before)


@contextmanager
def measure(
    operation: Operation, target: str, *, is_parent: bool = True, **attributes: AttributeValue
) -> Generator[Measurement]:
    """Record a block as a span such as "search hybrid".

    Without a provider no span is created, because a search takes only a few milliseconds and has ten steps.

    Args:
        operation: The kind of work.
        target: What it works with, such as a strategy.
        is_parent: Whether spans within the block are below this one; False in a generator, whose steps may run in
            different contexts.
        attributes: Our own attributes, without their prefix; empty ones are left out.
    """
    if _is_suppressed.get() or not is_enabled():
        yield Measurement(trace.INVALID_SPAN)
        return
    named = {name: value for name, value in {operation.target: target, **attributes}.items() if value != ""}
    own = {ATTRIBUTE_PREFIX + name: value for name, value in named.items()}
    own |= {"openinference.span.kind": operation.kind, **operation.fixed}
    for name, value in named.items():
        own |= dict.fromkeys(operation.copied.get(name, ()), value)
    tracer = trace.get_tracer(SERVICE_NAME, __version__)
    span = tracer.start_span(f"{operation.name} {target}", kind=operation.span_kind, attributes=own)
    block = Measurement(span)
    current = trace.use_span(span, record_exception=False, set_status_on_exception=False)
    try:
        with current if is_parent else nullcontext():
            yield block
    except Exception as error:
        block.record_failure(type(error).__name__, is_error=not isinstance(error, Cancelled))
        block.is_kept = False
        raise
    finally:
        if not block.is_kept:
            span.end()


class _WarnOnce(logging.Handler):
    """Logs one warning per process instead of the exporter's lines for each attempt at each batch."""

    has_warned = False

    def emit(self, record: logging.LogRecord) -> None:
        if not self.has_warned:
            self.has_warned = True
            logger.warning(EXPORT_FAILED)


def export() -> None:
    """Send everything by OTLP over HTTP, once per process; the standard variables (``OTEL_*``) configure the export.

    The default is port 4318 of this machine. A provider that the program has already set is kept.

    Raises:
        ConfigurationError: The extra ``otel`` is not installed.
    """
    check_extra("otel")
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import OTELResourceDetector, Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    with _export_lock:
        if isinstance(trace.get_tracer_provider(), TracerProvider):
            return
        handler = _WarnOnce(logging.WARNING)
        for name in EXPORTER_LOGGERS:
            logging.getLogger(name).addHandler(handler)
            logging.getLogger(name).propagate = False
        os.environ.setdefault("OTEL_EXPORTER_OTLP_TIMEOUT", "2")  # seconds for each batch
        instance = f"{platform.node()}/{os.getpid()}"
        own = {"service.name": SERVICE_NAME, "service.version": __version__, "service.instance.id": instance}
        resource = Resource.create().merge(Resource(own)).merge(OTELResourceDetector().detect())
        tracers = TracerProvider(resource=resource, shutdown_on_exit=False)
        tracers.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        trace.set_tracer_provider(tracers)
        _shut_down_at_exit(tracers)


def _shut_down_at_exit(tracers: TracerProvider) -> None:
    """Send what is left when the process exits, for at most ``SHUTDOWN_TIMEOUT_S`` seconds.

    The exporter's timeout is per batch, and a collector that answers one byte at a time never exceeds them. The
    thread is started now because an exiting interpreter cannot start one.
    """
    exiting = threading.Event()

    def shut_down() -> None:
        exiting.wait()
        tracers.shutdown()

    thread = threading.Thread(target=shut_down, name="end-telemetry", daemon=True)
    thread.start()

    def wait() -> None:
        exiting.set()
        thread.join(SHUTDOWN_TIMEOUT_S)

    atexit.register(wait)

"""OpenTelemetry traces: a span for each search, its steps, ingests, jobs and tool calls.

Nothing is recorded until ``export`` is called or the embedding program sets a provider. Names of strategies, indexes,
tools and kinds of jobs are recorded, but never words of questions or documents.
"""

from __future__ import annotations

import atexit
import logging
import os
import platform
import threading
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, NamedTuple

from opentelemetry import trace

from workbench.errors import Cancelled
from workbench.runtime import __version__, check_extra

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider

SERVICE_NAME = "rag-workbench"  # instrumentation scope, and the service unless OTEL_SERVICE_NAME is set
ATTRIBUTE_PREFIX = "workbench."
SHUTDOWN_TIMEOUT_S = 2.5  # seconds that an exiting process waits for a collector

EXPORT_FAILED = "Traces could not be sent to OTEL_EXPORTER_OTLP_ENDPOINT (default: port 4318 of this machine)."
EXPORTER_LOGGERS = ("opentelemetry.exporter", "opentelemetry.sdk._shared_internal")

logger = logging.getLogger(__name__)

AttributeValue = str | int | float | bool

_export_lock = threading.Lock()
_is_suppressed: ContextVar[bool] = ContextVar("suppressed", default=False)


class Operation(NamedTuple):
    """A kind of work that is measured."""

    name: str  # first word of the span's name
    target: str  # attribute that distinguishes operations of this kind, and second word of the span's name


SEARCH, STEP = Operation("search", "strategy"), Operation("step", "step")
INGEST, BUILD = Operation("ingest", "index"), Operation("build", "index")
JOB, TOOL = Operation("job", "kind"), Operation("tool", "tool")


class Measurement:
    """A running operation, to which attributes known only at its end can be added."""

    def __init__(self, span: trace.Span) -> None:
        self._span = span

    def add_attributes(self, **attributes: AttributeValue) -> None:
        """Add attributes to the span."""
        self._span.set_attributes({ATTRIBUTE_PREFIX + name: value for name, value in attributes.items()})

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


@contextmanager
def suppress_telemetry() -> Generator[None]:
    """Record nothing inside the block, such as a warm-up search."""
    before = _is_suppressed.set(True)
    try:
        yield
    finally:
        _is_suppressed.reset(before)


@contextmanager
def measure(operation: Operation, target: str, **attributes: AttributeValue) -> Generator[Measurement]:
    """Record a block as a span such as "search hybrid".

    Without a provider no span is created, because a search takes only a few milliseconds and has ten steps.
    """
    if _is_suppressed.get() or not is_enabled():
        yield Measurement(trace.INVALID_SPAN)
        return
    named = {operation.target: target, **attributes}
    own = {ATTRIBUTE_PREFIX + name: value for name, value in named.items()}
    tracer = trace.get_tracer(SERVICE_NAME, __version__)
    with tracer.start_as_current_span(
        f"{operation.name} {target}", attributes=own, record_exception=False, set_status_on_exception=False
    ) as span:
        block = Measurement(span)
        try:
            yield block
        except Exception as error:
            block.record_failure(type(error).__name__, is_error=not isinstance(error, Cancelled))
            raise


class _WarnOnce(logging.Handler):
    """Logs one warning per process instead of the exporter's lines for each attempt at each batch."""

    has_warned = False

    def emit(self, record: logging.LogRecord) -> None:
        del record
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

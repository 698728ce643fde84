"""OpenTelemetry traces and metrics: a span and a duration for searches, their steps, ingests, jobs and tool calls.

Nothing is recorded until ``export`` is called or the embedding program sets a provider. Names of strategies, indexes,
tools and kinds of jobs are recorded, but never words of questions or documents.
"""

from __future__ import annotations

import atexit
import logging
import os
import platform
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from opentelemetry import metrics, trace

from workbench.errors import Cancelled
from workbench.runtime import __version__, check_extra

if TYPE_CHECKING:
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.trace import TracerProvider

SERVICE_NAME = "rag-workbench"  # instrumentation scope, and the service unless OTEL_SERVICE_NAME is set
ATTRIBUTE_PREFIX = "workbench."  # of attributes and metrics
DURATION_BUCKETS_S = (
    0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 20.0, 60.0, 300.0, 1800.0, 7200.0,
)  # fmt: skip
SHUTDOWN_TIMEOUT_S = 2.5  # seconds that an exiting process waits for a collector

EXPORT_FAILED = (
    "Traces or metrics could not be sent to OTEL_EXPORTER_OTLP_ENDPOINT (default: port 4318 of this machine)."
)
EXPORTER_LOGGERS = (
    "opentelemetry.exporter",
    "opentelemetry.sdk._shared_internal",
    "opentelemetry.sdk.metrics._internal.export",
)

logger = logging.getLogger(__name__)

AttributeValue = str | int | float | bool

_export_lock = threading.Lock()
_is_suppressed: ContextVar[bool] = ContextVar("suppressed", default=False)


@dataclass(frozen=True, slots=True)
class Operation:
    """A kind of work that is measured."""

    name: str  # first word of the span's name
    target: str  # attribute that distinguishes operations of this kind, and second word of the span's name
    description: str  # of the metric


SEARCH = Operation("search", "strategy", "Duration of a search by one strategy.")
STEP = Operation("step", "step", "Duration of one step of a search or an answer.")
INGEST = Operation("ingest", "index", "Duration of adding documents to an index.")
BUILD = Operation("build", "index", "Duration of updating an index from the stored documents.")
JOB = Operation("job", "kind", "Duration of one worker's run of a job.")
TOOL = Operation("tool", "tool", "Duration of a tool call over MCP or HTTP.")


class Measurement:
    """A running operation, to which attributes known only at its end can be added."""

    def __init__(self, span: trace.Span) -> None:
        self._span = span
        self.outcome: dict[str, str] = {}  # the attribute ``error.type`` of span and metric, if it did not succeed

    def add_attributes(self, **attributes: AttributeValue) -> None:
        """Add attributes to the span, not to the metric."""
        self._span.set_attributes({ATTRIBUTE_PREFIX + name: value for name, value in attributes.items()})

    def record_failure(self, error_type: str, *, is_error: bool = True) -> None:
        """Record what ended the operation early.

        Args:
            error_type: Name of an error class. Its message may repeat a question and is never recorded.
            is_error: False if a person or the worker's shutdown stopped it.
        """
        self.outcome = {"error.type": error_type}
        self._span.set_attributes(self.outcome)
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
    """Record a block as a span such as "search hybrid" and as ``workbench.search.duration`` in seconds.

    Without a provider no span is created, because a search takes only a few milliseconds and has ten steps.
    """
    if _is_suppressed.get() or not is_enabled():
        yield Measurement(trace.INVALID_SPAN)
        return
    key = ATTRIBUTE_PREFIX + operation.target
    own = {key: target, **{ATTRIBUTE_PREFIX + name: value for name, value in attributes.items()}}
    tracer = trace.get_tracer(SERVICE_NAME, __version__)
    began = time.perf_counter()
    with tracer.start_as_current_span(
        f"{operation.name} {target}", attributes=own, record_exception=False, set_status_on_exception=False
    ) as span:
        block = Measurement(span)
        try:
            yield block
        except Exception as error:
            block.record_failure(type(error).__name__, is_error=not isinstance(error, Cancelled))
            raise
        finally:
            _durations(operation).record(time.perf_counter() - began, {key: target, **block.outcome})


@cache
def _durations(operation: Operation) -> metrics.Histogram:
    return metrics.get_meter(SERVICE_NAME, __version__).create_histogram(
        f"{ATTRIBUTE_PREFIX}{operation.name}.duration",
        unit="s",
        description=operation.description,
        explicit_bucket_boundaries_advisory=DURATION_BUCKETS_S,
    )


class _WarnOnce(logging.Handler):
    """Logs one warning per process instead of the exporters' lines for each attempt at each batch."""

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
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
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
        reader = PeriodicExportingMetricReader(OTLPMetricExporter())
        meters = MeterProvider(resource=resource, metric_readers=[reader], shutdown_on_exit=False)
        metrics.set_meter_provider(meters)
        _shut_down_at_exit(tracers, meters)


def _shut_down_at_exit(tracers: TracerProvider, meters: MeterProvider) -> None:
    """Send what is left when the process exits, for at most ``SHUTDOWN_TIMEOUT_S`` seconds.

    The exporters' timeouts are per batch, and a collector that answers one byte at a time never exceeds them. The
    thread is started now because an exiting interpreter cannot start one.
    """
    exiting = threading.Event()

    def shut_down() -> None:
        exiting.wait()
        tracers.shutdown()
        meters.shutdown()

    thread = threading.Thread(target=shut_down, name="end-telemetry", daemon=True)
    thread.start()

    def wait() -> None:
        exiting.set()
        thread.join(SHUTDOWN_TIMEOUT_S)

    atexit.register(wait)

"""Traces and metrics by OpenTelemetry: a span and a duration for searches, their steps, ingests, jobs and tool calls.

Nobody is told until a program says where to: ``export``, or a provider that the program around the workbench has set.
Names of strategies, indexes, tools and kinds of jobs are told; words of questions and documents never are.
"""

from __future__ import annotations

import atexit
import logging
import os
import platform
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache

from opentelemetry import metrics, trace

from workbench.errors import Cancelled
from workbench.runtime import __version__, check_extra

NAME = "rag-workbench"  # of the service, where OTEL_SERVICE_NAME names none, and of the instrumentation
PREFIX = "workbench."  # of our attributes and metrics
BUCKETS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 20.0, 60.0, 300.0, 1800.0, 7200.0)  # s
PATIENCE = 2.5  # s that an ending process waits for a collector, traces and metrics together, however many there are

UNHEARD = "Traces or metrics do not arrive where OTEL_EXPORTER_OTLP_ENDPOINT says (port 4318 here); work goes on."
SENDERS = ("opentelemetry.exporter", "opentelemetry.sdk._shared_internal", "opentelemetry.sdk.metrics._internal.export")

logger = logging.getLogger(__name__)

AttributeValue = str | int | float | bool

_exporting = threading.Lock()
_is_untold: ContextVar[bool] = ContextVar("untold", default=False)


@dataclass(frozen=True, slots=True)
class Operation:
    """A kind of work that is told: ``target`` is the attribute that says which one of its kind it was."""

    name: str
    target: str
    description: str


SEARCH = Operation("search", "strategy", "Time of a search by one strategy.")
STEP = Operation("step", "step", "Time of one step of a search or an answer.")
INGEST = Operation("ingest", "index", "Time of bringing documents into an index.")
BUILD = Operation("build", "index", "Time of bringing an index up to date with the stored documents.")
JOB = Operation("job", "kind", "Time that one worker was at a job.")
TOOL = Operation("tool", "tool", "Time of a tool call, by MCP or HTTP.")


class Measured:
    """An operation that goes on: it takes what is known only at its end."""

    def __init__(self, span: trace.Span) -> None:
        """Take its span."""
        self._span = span
        self.error_type: str | None = None

    def tell(self, **attributes: AttributeValue) -> None:
        """Add attributes to the span, not to the metric."""
        self._span.set_attributes({PREFIX + name: value for name, value in attributes.items()})

    def failed(self, error_type: str) -> None:
        """Mark it as failed; ``error_type`` is a class of errors, not a sentence, which may repeat a question."""
        self.ended_early(error_type)
        self._span.set_status(trace.StatusCode.ERROR)

    def ended_early(self, error_type: str) -> None:
        """Name what ended it, such as a person or the end of its worker, which is no failure."""
        self.error_type = error_type
        self._span.set_attribute("error.type", error_type)


def is_heard() -> bool:
    """Tell whether anybody collects traces: ``export`` was called, or the program around the workbench has set who."""
    return not isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider)


@contextmanager
def untold() -> Generator[None]:
    """Leave out what the block does, such as a search that nobody asked for."""
    before = _is_untold.set(True)
    try:
        yield
    finally:
        _is_untold.reset(before)


@contextmanager
def measured(operation: Operation, target: str, **attributes: AttributeValue) -> Generator[Measured]:
    """Tell of a block: a span named "search hybrid", and ``workbench.search.duration`` in seconds.

    Without a provider of traces nothing is made, as a search takes a few milliseconds and has ten steps.
    """
    if _is_untold.get() or not is_heard():
        yield Measured(trace.INVALID_SPAN)
        return
    key = PREFIX + operation.target
    own = {key: target, **{PREFIX + name: value for name, value in attributes.items()}}
    tracer = trace.get_tracer(NAME, __version__)
    began = time.perf_counter()
    with tracer.start_as_current_span(
        f"{operation.name} {target}", attributes=own, record_exception=False, set_status_on_exception=False
    ) as span:
        block = Measured(span)
        try:
            yield block
        except Cancelled as stopped:
            block.ended_early(type(stopped).__name__)
            raise
        except Exception as error:
            block.failed(type(error).__name__)
            raise
        finally:
            ended = {"error.type": block.error_type} if block.error_type else {}
            _durations(operation).record(time.perf_counter() - began, {key: target, **ended})


@cache
def _durations(operation: Operation) -> metrics.Histogram:
    return metrics.get_meter(NAME, __version__).create_histogram(
        f"{PREFIX}{operation.name}.duration",
        unit="s",
        description=operation.description,
        explicit_bucket_boundaries_advisory=BUCKETS,
    )


class _OneSentence(logging.Handler):
    """Says once a process that nothing arrives, in place of the exporters' lines for each try of each batch."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._told = False

    def emit(self, record: logging.LogRecord) -> None:
        """Say it, the first time."""
        del record
        if not self._told:
            self._told = True
            logger.warning(UNHEARD)


def export() -> None:
    """Send everything by OTLP over HTTP, once a process; the standard's variables (``OTEL_*``) say where and how often.

    Without them it goes to port 4318 of this machine. A provider that the program has set already stays.

    Raises:
        ConfigurationError: the extra ``otel`` is not installed.
    """
    check_extra("otel")
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
    from opentelemetry.sdk.resources import OTELResourceDetector, Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    sentence = _OneSentence()
    for name in SENDERS:
        logging.getLogger(name).addHandler(sentence)
        logging.getLogger(name).propagate = False
    os.environ.setdefault("OTEL_EXPORTER_OTLP_TIMEOUT", "2")  # s that a batch waits for a collector
    with _exporting:
        if isinstance(trace.get_tracer_provider(), TracerProvider):
            return
        instance = f"{platform.node()}/{os.getpid()}"
        told = {"service.name": NAME, "service.version": __version__, "service.instance.id": instance}
        resource = Resource.create().merge(Resource(told)).merge(OTELResourceDetector().detect())
        tracers = TracerProvider(resource=resource, shutdown_on_exit=False)
        tracers.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        trace.set_tracer_provider(tracers)
        reader = PeriodicExportingMetricReader(OTLPMetricExporter())
        meters = MeterProvider(resource=resource, metric_readers=[reader], shutdown_on_exit=False)
        metrics.set_meter_provider(meters)
        _send_the_rest_at_the_end(tracers.shutdown, meters.shutdown)


def _send_the_rest_at_the_end(*endings: Callable[[], None]) -> None:
    """Let the process's end wait until all endings are done, or for ``PATIENCE`` seconds.

    Each exporter has a time for each batch, but batches follow each other, traces and metrics too, and a collector that
    says a byte a second is never late. The threads wait from now on, since an interpreter that ends may start none.
    """
    ends = threading.Event()

    def end(ending: Callable[[], None]) -> None:
        ends.wait()
        ending()

    threads = [threading.Thread(target=end, args=(each,), name="end-telemetry", daemon=True) for each in endings]
    for thread in threads:
        thread.start()

    def wait() -> None:
        deadline = time.monotonic() + PATIENCE
        ends.set()
        for thread in threads:
            thread.join(max(0.0, deadline - time.monotonic()))

    atexit.register(wait)

"""An OpenTelemetry collector on loopback, which stores what it receives over HTTP, and one that never answers."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


@dataclass
class Collector:
    """The received requests, and the environment of a process that sends to the collector."""

    url: str
    sent: list[Any] = field(default_factory=list)

    @property
    def environment(self) -> dict[str, str]:
        """The environment variables with which a process sends to this collector."""
        return {
            "OTEL_EXPORTER_OTLP_ENDPOINT": self.url,
            "OTEL_BSP_SCHEDULE_DELAY": "50",  # ms between two batches of spans
            "WORKBENCH_TELEMETRY": "true",
        }

    @property
    def spans(self) -> list[Any]:
        """Return the spans of this project in order of arrival."""
        return [
            span
            for request in self.sent
            for resource in request.resource_spans
            for scope in resource.scope_spans
            if scope.scope.name == "rag-workbench"
            for span in scope.spans
        ]

    def services(self) -> set[str]:
        """Return the names of the services that sent something."""
        resources = [r for request in self.sent for r in request.resource_spans]
        return {attributes(each.resource)["service.name"] for each in resources}


def attributes(told: Any) -> dict[str, Any]:
    """Return the attributes of a span or a resource as a dict."""
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in told.attributes}


@contextmanager
def collecting() -> Iterator[Collector]:
    """Run a collector on a free port on loopback."""
    collector = Collector("")

    class Taking(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            collector.sent.append(ExportTraceServiceRequest.FromString(body))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            del format, args

    server = ThreadingHTTPServer(("127.0.0.1", 0), Taking)
    collector.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield collector
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def never_answering(*, dripping: bool = False) -> Iterator[Collector]:
    """Run a collector that accepts requests and never answers, or sends a byte every half second."""
    ended = Event()

    def answer(connection: socket.socket) -> None:
        with connection, suppress(OSError):
            connection.sendall(b"HTTP/1.1 200 OK\r\nX-Slow: ")
            while not ended.wait(0.5):
                connection.sendall(b"x")

    def accept(listening: socket.socket) -> None:
        with suppress(OSError):
            while True:
                connection, _ = listening.accept()
                if dripping:
                    Thread(target=answer, args=(connection,), daemon=True).start()
                else:
                    kept.append(connection)

    kept: list[socket.socket] = []
    with socket.create_server(("127.0.0.1", 0), backlog=64) as listening:
        Thread(target=accept, args=(listening,), daemon=True).start()
        yield Collector(f"http://127.0.0.1:{listening.getsockname()[1]}")
        ended.set()
        listening.shutdown(socket.SHUT_RDWR)
    for connection in kept:
        connection.close()

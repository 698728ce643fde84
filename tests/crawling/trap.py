"""A listener at a forbidden address, which records every connection and packet that arrives."""

from __future__ import annotations

import contextlib
import selectors
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Trap:
    """TCP and UDP on one port of several addresses of this machine."""

    def __init__(self, *hosts: str) -> None:
        self._heard: list[tuple[int, str]] = []  # the sender's port, and the first line
        self._selector = selectors.DefaultSelector()
        self._sockets: list[socket.socket] = []
        self.port = 0
        for host in hosts:
            self._listen(host, socket.SOCK_STREAM)
            self._listen(host, socket.SOCK_DGRAM)
        self._ending, ended = socket.socketpair()
        self._sockets += [self._ending, ended]
        self._selector.register(ended, selectors.EVENT_READ)
        self._thread = threading.Thread(target=self._serve, args=(ended,))
        self._thread.start()

    def heard(self) -> list[str]:
        """Return what has arrived so far; a connection of the caller's own comes last, so nothing is in transit."""
        with socket.create_connection(self._sockets[0].getsockname()[:2], timeout=20) as own:
            own.shutdown(socket.SHUT_WR)
            assert own.recv(1) == b""
            assert self._heard.pop()[0] == own.getsockname()[1], "the trap does not hear"
        return [line for _, line in self._heard]

    def close(self) -> None:
        """Stop listening."""
        self._ending.sendall(b"x")
        self._thread.join()
        self._selector.close()
        for each in self._sockets:
            each.close()

    def _listen(self, host: str, kind: socket.SocketKind) -> None:
        made = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, kind)
        made.bind((host, self.port))
        self.port = made.getsockname()[1]
        if kind is socket.SOCK_STREAM:
            made.listen()
        self._sockets.append(made)
        self._selector.register(made, selectors.EVENT_READ)

    def _serve(self, ended: socket.socket) -> None:
        while True:
            for key, _ in self._selector.select():
                listener = key.fileobj
                assert isinstance(listener, socket.socket)
                if listener is ended:
                    return
                if listener.type is socket.SOCK_DGRAM:
                    packet, sender = listener.recvfrom(2000)
                    self._heard.append((sender[1], f"packet {packet[:20]!r}"))
                else:
                    self._accept(listener)

    def _accept(self, listener: socket.socket) -> None:
        connection, sender = listener.accept()
        with connection:
            connection.settimeout(0.2)
            line = b""
            with contextlib.suppress(OSError):  # a connection that sends nothing also counts
                line = connection.recv(200)
            self._heard.append((sender[1], "connection " + line.decode("latin-1").split("\r\n")[0]))


@contextmanager
def trapped(*hosts: str) -> Iterator[Trap]:
    """Set a trap for the duration of a test."""
    trap = Trap(*hosts)
    try:
        yield trap
    finally:
        trap.close()

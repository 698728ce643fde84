"""A connection to a database that can be cut and restored: a TCP port on loopback forwarded to its socket."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path


class Relay:
    """A relay that listens on a port from ``open`` to ``cut``; the port stays the same.

    One that is ``held`` keeps those who connect waiting until ``let_in``. ``before`` is a text and what is to happen
    before a message that has it is handed on.
    """

    def __init__(
        self, target: Path, *, held: bool = False, before: tuple[bytes, Callable[[], None]] | None = None
    ) -> None:
        self._target, self._sockets, self._before = str(target), list[socket.socket](), before
        self.port = 0
        self._listen()
        if not held:
            self.let_in()

    def open(self) -> None:
        """Accept connections again."""
        self._listen()
        self.let_in()

    def let_in(self) -> None:
        """Forward data in both directions."""
        threading.Thread(target=self._accept, args=(self._sockets[0],), daemon=True).start()

    def _listen(self) -> None:
        listening = socket.create_server(("127.0.0.1", self.port))
        self.port = listening.getsockname()[1]
        self._sockets = [listening]

    def cut(self) -> None:
        """Close every connection and accept none."""
        for each in self._sockets:
            with suppress(OSError):  # the other end closed first
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def _accept(self, listening: socket.socket) -> None:
        while True:
            try:
                near, _ = listening.accept()
            except OSError:
                return
            far = socket.socket(socket.AF_UNIX)
            try:
                far.connect(self._target)
            except OSError:  # the connection is gone
                far.close()
                near.close()
                continue
            self._sockets += [near, far]
            for source, sink in ((near, far), (far, near)):
                threading.Thread(target=self._pump, args=(source, sink), daemon=True).start()

    def _pump(self, source: socket.socket, sink: socket.socket) -> None:
        try:
            while data := source.recv(65536):
                if self._before and self._before[0] in data:
                    self._before[1]()
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            return

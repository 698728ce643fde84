"""Serve the app from this process: ``workbench app`` calls ``serve``."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path
from typing import Any

from workbench.app.engine import ENGINE
from workbench.errors import ConfigurationError

LOOPBACK = ("127.0.0.1", "localhost")
MAIN = Path(__file__).parent / "frame" / "main.py"


def serve(
    port: int = 8501,
    *,
    host: str = "127.0.0.1",
    home: Path | str | None = None,
    database_url: str | None = None,
    settings: Any = None,
) -> int:
    """Serve the pages until interrupted; the workbench opens while the first page is painted. Returns the exit code.

    Raises:
        ConfigurationError: the port is taken.
    """
    _check_free(host, port)
    ENGINE.configure(home=home, database_url=database_url, settings=settings)
    ENGINE.start()
    import streamlit as st

    from workbench.app.originals import ROUTES

    app = st.App(MAIN, routes=ROUTES, middleware=_own_names_only(host))
    shown = "localhost" if host in ("127.0.0.1", "::1") else host
    print(f"RAG Workbench: http://{shown}:{port}  (Ctrl+C stops it)", file=sys.stderr, flush=True)
    sys.argv = [str(MAIN)]  # Streamlit takes the script it anchors its settings to from here
    os.environ.setdefault("STREAMLIT_BROWSER_GATHER_USAGE_STATS", "false")
    try:
        app.run(config={"server.address": host, "server.port": port, "server.headless": True, **_QUIET})
    except KeyboardInterrupt:
        return 0
    finally:
        ENGINE.close()
    return 0


def _own_names_only(host: str) -> list[Any]:
    """On loopback, refuse requests under other names: no page elsewhere may reach the app by rebinding its own."""
    from starlette.middleware import Middleware
    from starlette.middleware.trustedhost import TrustedHostMiddleware

    return [Middleware(TrustedHostMiddleware, allowed_hosts=list(LOOPBACK))] if host in LOOPBACK else []


_QUIET = {"browser.gatherUsageStats": False, "browser.serverAddress": "localhost", "logger.hideWelcomeMessage": True}


def _check_free(host: str, port: int) -> None:
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise ConfigurationError(
                f"Port {port} on {host} cannot be used ({error.strerror}); stop what listens "
                "there or choose another port."
            ) from error

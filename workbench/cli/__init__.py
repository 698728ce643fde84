"""The ``workbench`` command: thin, fast to import, one module per command."""

from workbench.cli.main import main

__all__ = ["main"]

"""The ``workbench`` command: thin, light to import, one module a command."""

from workbench.cli.main import main

__all__ = ["main"]

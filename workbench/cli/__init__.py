"""The ``workbench`` command: thin, light to import, one module a command."""

from workbench.cli.entry import main

__all__ = ["main"]

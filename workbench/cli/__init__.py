"""The ``workbench`` command: thin, fast to import, one module per command."""

try:
    from workbench.cli.main import main
except KeyboardInterrupt:  # Ctrl-C during the imports: nothing is open yet
    raise SystemExit(130) from None

__all__ = ["main"]

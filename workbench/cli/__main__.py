"""The ``workbench`` command as ``python -m workbench.cli``."""

from workbench.cli.main import main

raise SystemExit(main())

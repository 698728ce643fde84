"""The ``workbench`` command as ``python -m workbench.cli``."""

from workbench.cli.entry import main

raise SystemExit(main())

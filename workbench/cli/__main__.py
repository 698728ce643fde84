"""``python -m workbench.cli`` is the ``workbench`` command."""

from workbench.cli.entry import main

raise SystemExit(main())

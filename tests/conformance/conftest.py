"""The official suite runs if ``make test``, ``make conformance`` or ``tests/conformance/fetch.py`` fetched it."""

from tests.conformance.fetch import installed

collect_ignore_glob = [] if installed() else ["test_conformance.py"]

"""The official suite runs where ``make test``, ``make conformance`` or ``python tests/conformance/fetch.py`` got it."""

from tests.conformance.fetch import installed

collect_ignore_glob = [] if installed() else ["test_conformance.py"]

"""Human-readable sizes in bytes."""

from __future__ import annotations

import pytest

from workbench.formatting import GB, KB, MB, size_text


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 bytes"),
        (KB - 1, "999 bytes"),
        (KB, "1.0 kB"),
        (52_428_800, "52.4 MB"),
        (50 * MB, "50.0 MB"),
        (1_234 * GB, "1,234.0 GB"),
    ],
)
def test_a_size_is_reported_in_decimal_units(count: int, text: str) -> None:
    assert size_text(count) == text

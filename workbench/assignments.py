"""``name=value``, as people type it behind an option."""

from __future__ import annotations

from collections.abc import Sequence

from workbench.errors import InvalidInput


def assignments(texts: Sequence[str], option: str) -> dict[str, str]:
    """Read ``name=value`` texts. Raises InvalidInput naming the option."""
    pairs = {}
    for text in texts:
        name, sign, value = text.partition("=")
        if not sign or not name.strip():
            raise InvalidInput(f"{option} {text!r} is not of the form name=value.")
        pairs[name.strip()] = value.strip()
    return pairs

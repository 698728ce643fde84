"""The result of running the command."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from typing import Any

COMMAND = [sys.executable, "-m", "workbench.cli"]


@dataclass(frozen=True)
class Ran:
    """The result of a command."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Its one JSON document."""
        return json.loads(self.out)

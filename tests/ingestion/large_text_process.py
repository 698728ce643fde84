"""A process that ingests a short text, then a large one, and prints how much more memory the large one took."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from workbench import Workbench
from workbench.formatting import MB
from workbench.settings import Settings


def memory(field: str) -> float:
    """Return a field of this process's memory in MB: VmRSS (current) or VmHWM (peak)."""
    status = Path("/proc/self/status").read_text()
    match = re.search(rf"{field}:\s+(\d+) kB", status)
    assert match is not None
    return int(match.group(1)) * 1024 / MB


def main(home: str, database_url: str, short: str, large: str) -> None:
    """Print the peak memory of the second ingest above that of the first, in MB, and its number of passages."""
    settings = Settings(home=Path(home), database_url=database_url, embedding_model="hash", _env_file=None)
    with Workbench.open(settings=settings) as wb:
        wb.ingest([short], source="Texts")
        idle = memory("VmRSS")
        Path("/proc/self/clear_refs").write_text("5")  # the highest so far is what it is now
        report = wb.ingest([large], source="Texts")
        print(round(memory("VmHWM") - idle), report.passages)


if __name__ == "__main__":
    main(*sys.argv[1:])

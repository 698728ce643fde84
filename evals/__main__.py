"""``python -m evals``: compare the sample with its stored baseline; with arguments, act like ``workbench eval``."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from evals.command import add_arguments, evaluate
from workbench.errors import InvalidInput, WorkbenchError
from workbench.runtime import check_extra

BASELINE = Path(__file__).parent / "baselines" / "sample.json"


def main() -> int:
    """Evaluate; print JSON on stdout and tables on stderr; return 0, 1 (regression or failure) or 2 (usage error)."""
    from workbench.formatting import progress_bar
    from workbench.workbench import Workbench

    parser = argparse.ArgumentParser(prog="python -m evals", description=__doc__)
    add_arguments(parser)
    arguments = parser.parse_args(sys.argv[1:] or ["sample", "--baseline", str(BASELINE), "--ragas", "none"])

    def say(text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    try:
        check_extra("eval")
        with Workbench.open() as wb, progress_bar("Evaluate", unit="") as show:
            payload, code = evaluate(wb, arguments, say=say, on_progress=show)
    except WorkbenchError as error:
        say(str(error))
        return 2 if isinstance(error, InvalidInput) else 1
    print(json.dumps(payload, ensure_ascii=False, indent=2))
    return code


if __name__ == "__main__":
    sys.exit(main())

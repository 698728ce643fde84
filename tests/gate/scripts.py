"""Lint the components' JavaScript as the browser gets it: ``python tests/gate/scripts.py``.

A component is the shared scripts and its own, joined by name, so only the whole shows that a name is defined, and
defined once. Faults are reported at the line of the file they are in. The linter is oxlint, a binary in a wheel.
"""

from __future__ import annotations

import bisect
import re
import subprocess
import sys
import sysconfig
import tempfile
from collections import Counter
from pathlib import Path

CONFIGURATION = Path(__file__).with_name("oxlint.json")
PLACE = re.compile(r"^(?P<file>[^:]+):(?P<line>\d+):(?P<column>\d+): (?P<message>.*)$")
OXLINT = Path(sysconfig.get_path("scripts")) / "oxlint"


def faults(root: Path) -> list[str]:
    """Return each fault below a root once, as "file:line:column: message".

    A fault of a shared script counts where every component has it: one of them need not use all that is shared. A
    script outside of the components' folders is linted by itself.
    """
    app = root / "workbench" / "app"
    shared = sorted((app / "widgets" / "scripts" / "shared").glob("*.js"))
    folders = [folder for folder in sorted(app.glob("*/scripts/*/")) if folder.name != "shared"]
    components = [own for folder in folders if (own := sorted(folder.glob("*.js")))]
    times = Counter(fault for own in components for fault in _linted([*shared, *own], root))
    joined = {*shared, *(path for own in components for path in own)}
    alone = [path for path in sorted(app.rglob("*.js")) if path not in joined]
    return [
        *(fault for fault, count in times.items() if "/scripts/shared/" not in fault or count == len(components)),
        *(fault for path in alone for fault in _linted([path], root)),
    ]


def _linted(paths: list[Path], root: Path) -> list[str]:
    texts = [path.read_text(encoding="utf-8") for path in paths]
    starts = [0]
    for text in texts:
        starts.append(starts[-1] + text.count("\n") + 1)
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "component.js").write_text("\n".join(texts), encoding="utf-8")
        command = [OXLINT, "-c", CONFIGURATION, "--format=unix", "component.js"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60)
    places = [match for line in done.stdout.splitlines() if (match := PLACE.match(line))]
    if done.returncode and not places:
        raise SystemExit(f"oxlint could not run: {done.stdout}{done.stderr}")
    faults_of_files: list[str] = []
    for match in places:
        line = int(match["line"]) - 1
        at = bisect.bisect_right(starts, line) - 1
        name = paths[at].relative_to(root).as_posix()
        faults_of_files.append(f"{name}:{line - starts[at] + 1}:{match['column']}: {match['message']}")
    return faults_of_files


if __name__ == "__main__":
    wrong = faults(Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve())
    print("\n".join(wrong) or "The components' scripts have no faults.")
    sys.exit(bool(wrong))

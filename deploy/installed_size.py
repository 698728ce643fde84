"""What an installation weighs, package by package: ``python deploy/installed_size.py 'dist/NAME.whl[app]'``.

It is installed by uv into an empty environment, outside of the lock. A package weighs what its files hold together, in
megabytes of a million bytes, as ``du --apparent-size`` would count them; bytecode is not counted, which Python makes
of whatever is imported, or pip of everything, and neither are Python itself and what was there before.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from importlib.metadata import distributions
from pathlib import Path

MEGABYTE = 1_000_000
SMALL = 1.0  # megabytes, below which packages are told together


def installed_sizes(environment: Path) -> dict[str, int]:
    """Return the bytes of each package of an environment, by its name, the largest first."""
    places = [str(place) for place in (*environment.glob("lib/python3*/site-packages"), environment / "Lib")]
    sizes = {
        package.name: sum(
            Path(str(file.locate())).stat().st_size
            for file in package.files or ()
            if file.suffix != ".pyc" and Path(str(file.locate())).is_file()
        )
        for package in distributions(path=places)
    }
    return dict(sorted(sizes.items(), key=lambda item: -item[1]))


def main() -> int:
    """Install what is named, and print what each package weighs; returns the exit code."""
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    uv = Path(sys.executable).with_name("uv")
    with tempfile.TemporaryDirectory() as folder:
        environment = Path(folder) / "env"
        subprocess.run([uv, "venv", "-q", "--python", sys.executable, environment], check=True)
        command = [uv, "pip", "install", "-q", "--link-mode", "copy", "--python", environment / "bin" / "python"]
        subprocess.run([*command, sys.argv[1]], check=True)
        sizes = installed_sizes(environment)
    large = {name: size for name, size in sizes.items() if size >= SMALL * MEGABYTE}
    for name, size in large.items():
        print(f"{size / MEGABYTE:7.1f}  {name}")
    rest = sum(sizes.values()) - sum(large.values())
    print(
        f"{rest / MEGABYTE:7.1f}  {len(sizes) - len(large)} others\n{sum(sizes.values()) / MEGABYTE:7.1f}  MB together"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Report the size of an installation by package: ``python deploy/installed_size.py 'dist/NAME.whl[app]'``.

uv installs it into an empty environment, without the lock. A package's size is that of its files in MB (10**6 bytes),
as ``du --apparent-size`` counts them. Bytecode, which Python creates on import, and Python itself are not counted.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from importlib.metadata import distributions
from pathlib import Path

MB = 1_000_000
MIN_LISTED_MB = 1.0  # MB; smaller packages are reported together


def measure_packages(environment: Path) -> dict[str, int]:
    """Return the bytes of each package of an environment by its name, the largest first."""
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
    """Install the requirements and print the size of each package; return the exit code."""
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    uv = Path(sys.executable).with_name("uv")
    with tempfile.TemporaryDirectory() as folder:
        environment = Path(folder) / "env"
        subprocess.run([uv, "venv", "-q", "--python", sys.executable, environment], check=True)
        command = [uv, "pip", "install", "-q", "--link-mode", "copy", "--python", environment / "bin" / "python"]
        subprocess.run([*command, sys.argv[1]], check=True)
        sizes = measure_packages(environment)
    large = {name: size for name, size in sizes.items() if size >= MIN_LISTED_MB * MB}
    for name, size in large.items():
        print(f"{size / MB:7.1f}  {name}")
    rest = sum(sizes.values()) - sum(large.values())
    print(f"{rest / MB:7.1f}  {len(sizes) - len(large)} others\n{sum(sizes.values()) / MB:7.1f}  MB in total")
    return 0


if __name__ == "__main__":
    sys.exit(main())

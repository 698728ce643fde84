"""Build the files of a release from a tag: ``make release`` checks that all versions agree, and fills dist/.

Version, changelog and tag must agree: ``workbench/runtime.py`` has 0.2.0, CHANGELOG.md starts with the heading
``## 0.2.0 - DATE``, the commit has the tag ``v0.2.0``, and the tree is clean. Then dist/ gets the wheel, the bundle for
desktop clients, an SBOM of the locked packages (CycloneDX 1.6) and the digests of all files.
"""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]


def find_faults(root: Path) -> Iterator[str]:
    """Yield a sentence for each reason why a tree cannot be released."""
    version = read_version(root)
    declared = re.findall(r'^version = "(.*)"', (root / "pyproject.toml").read_text(encoding="utf-8"), re.MULTILINE)
    if declared != [version]:
        yield f"pyproject.toml has version {declared[0]}, workbench/runtime.py {version}."
    manifest = (root / "deploy" / "kubernetes" / "kustomization.yaml").read_text(encoding="utf-8")
    if f'newTag: "{version}"' not in manifest:
        yield f"deploy/kubernetes/kustomization.yaml does not use the image of {version}."
    headings = re.findall(r"^## (.*)$", (root / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    if not re.fullmatch(rf"{re.escape(version)} - \d{{4}}-\d\d-\d\d", headings[0]):
        yield f"CHANGELOG.md starts with '{headings[0]}'; expected '{version} - DATE'."
    if f"v{version}" not in _run_git(root, "tag", "--points-at", "HEAD").split():
        yield f"The commit has no tag v{version}; run: git tag v{version}."
    changed = _run_git(root, "status", "--porcelain")
    if changed:
        yield f"The tree has uncommitted changes: {changed.splitlines()[0].strip()}."


def read_version(root: Path) -> str:
    """Return the version in a tree's runtime module."""
    [version] = re.findall(
        r'^__version__ = "(.*)"', (root / "workbench" / "runtime.py").read_text(encoding="utf-8"), re.MULTILINE
    )
    return version


def write_sbom(root: Path, target: Path) -> None:
    """Write the locked packages with their hashes as CycloneDX JSON; the result is deterministic."""
    tool = Path(sys.executable).with_name("cyclonedx-py")
    command = [tool, "requirements", root / "requirements.lock", "--pyproject", root / "pyproject.toml"]
    options = ["--output-reproducible", "--sv", "1.6", "--of", "JSON", "-o", target]
    subprocess.run([*command, *options], check=True)


def write_digests(folder: Path) -> Path:
    """Write SHA256SUMS of a folder's files, in the format of ``sha256sum --check``."""
    files = sorted(path for path in folder.iterdir() if path.name != "SHA256SUMS")
    rows = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files]
    target = folder / "SHA256SUMS"
    target.write_text("".join(rows), encoding="utf-8")
    return target


def _run_git(root: Path, *words: str) -> str:
    return subprocess.run(["git", *words], cwd=root, check=True, capture_output=True, text=True).stdout


def main() -> int:
    """Check the tree and fill dist/; return the exit code."""
    found = list(find_faults(ROOT))
    if found:
        print("\n".join(found), file=sys.stderr)
        return 1
    folder = ROOT / "dist"
    folder.mkdir(exist_ok=True)
    for path in folder.iterdir():
        path.unlink()
    build = "from hatchling.build import build_wheel; build_wheel('dist')"
    subprocess.run([sys.executable, "-c", build], cwd=ROOT, check=True)
    subprocess.run([sys.executable, "mcpb_build.py", "dist"], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    write_sbom(ROOT, folder / f"rag-workbench-{read_version(ROOT)}.cdx.json")
    print(write_digests(folder).read_text(encoding="utf-8"), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())

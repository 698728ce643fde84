"""Run notebooks and store their new outputs: ``python notebooks/refresh.py [NAME...]`` (all without a name).

``pytest --nbval notebooks`` compares; this is for when a change was meant. Read the difference before committing it.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import nbformat
from jupyter_client.manager import start_new_kernel
from nbformat.v4 import output_from_msg

HERE = Path(__file__).resolve().parent
LONGEST = 600  # seconds a cell may take
SHOWN = ("stream", "display_data", "execute_result", "error")


def refresh(path: Path) -> None:
    """Run a notebook in a new kernel and write it back.

    Raises:
        RuntimeError: A cell failed.
    """
    notebook = nbformat.read(path, as_version=4)
    manager, client = start_new_kernel(kernel_name="python3", cwd=str(HERE))
    try:
        code = [cell for cell in notebook.cells if cell.cell_type == "code"]
        for number, cell in enumerate(code, start=1):
            cell.execution_count, cell.outputs = number, outputs(client, cell.source)
            failed = next((output for output in cell.outputs if output.output_type == "error"), None)
            if failed is not None:
                raise RuntimeError(f"{path.name}, cell {number}: {failed.ename}: {failed.evalue}\n{cell.source}")
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    nbformat.validate(notebook)
    nbformat.write(notebook, path)


def outputs(client: Any, source: str) -> list[Any]:
    """Return the outputs of a cell, without stderr (progress bars) and with adjacent prints joined."""
    found: list[Any] = []

    def collect(message: dict[str, Any]) -> None:
        if message["header"]["msg_type"] not in SHOWN:
            return
        output = output_from_msg(message)
        if output.get("name") == "stderr":
            return
        if found and output.output_type == found[-1].output_type == "stream":
            found[-1].text += output.text
        else:
            found.append(output)

    client.execute_interactive(source, timeout=LONGEST, output_hook=collect, allow_stdin=False, store_history=True)
    return found


if __name__ == "__main__":
    chosen = sorted(
        path for path in HERE.glob("*.ipynb") if not sys.argv[1:] or any(name in path.name for name in sys.argv[1:])
    )
    for path in chosen:
        refresh(path)
        print(f"{path.name}: {path.stat().st_size // 1024} KB")

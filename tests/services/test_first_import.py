"""The framework is imported by one thread at a time, whichever entry point comes first."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.mcp_app.processes import environment
from workbench import Workbench

WATCHED = """
import sys
from workbench import Workbench
from workbench.services import corpus

class Watch:
    def find_spec(self, name, path=None, target=None):
        if name == "llama_index.core":
            print("alone" if corpus._IMPORT_LOCK.locked() else "beside others", flush=True)

sys.meta_path.insert(0, Watch())
with Workbench.open() as wb:
    {first}
"""
FIRST = {
    "create": "wb.documents.create(text='Some words.', title='T')",
    "search": "wb.search('words')",
    "build": "wb.indexes.build(wb.corpus.index().name)",
    "ingest": "wb.ingest(__file__ if '__file__' in globals() else 'README.md', on_progress=lambda progress: None)",
    "warm": "wb.warm()",
    "ask": "wb.ask('words')",
    "explain": "wb.explain('words', document_id=wb.corpus.documents.list()[0].id)",
    "query engine": "wb.query_engine('hybrid')",
    "retriever": "wb.retriever('hybrid')",
    "node parser": "wb.node_parser()",
    "vector store": "wb.vector_store()",
    "embed model": "wb.embed_model()",
}


@pytest.mark.parametrize("first", list(FIRST.values()), ids=list(FIRST))
def test_no_first_step_imports_the_framework_next_to_another_thread(wb: Workbench, first: str) -> None:
    wb.documents.create(text="Words to find.", title="Before")
    code = WATCHED.format(first=first)
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment(wb.settings), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert set(done.stdout.split("\n")) <= {"alone", ""}

"""Every feature that uses a language model, once with a real small one: that it works, not how well."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import cloned_database
from workbench import Settings, Workbench
from workbench.types import ParameterValue

DOCS = {
    "tea.md": "# Tea\n\nGreen tea is steamed soon after harvest. Black tea is oxidised fully before it is dried.\n",
    "coffee.md": "# Coffee\n\nCoffee beans are roasted at two hundred degrees. Espresso needs nine bars of pressure.\n",
    "bread.md": "# Bread\n\nRye bread rises for two hours beside the oven.\n",
}
QUESTION = "How much pressure does espresso need?"


@pytest.fixture(scope="module")
def drinks(
    server_url: str, template_database: str, test_home: Path, gguf: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Workbench]:
    """A workbench whose language model is a file, with three documents and the built-in embedding model."""
    folder = tmp_path_factory.mktemp("drinks")
    for name, text in DOCS.items():
        (folder / name).write_text(text, encoding="utf-8")
    with cloned_database(server_url, template_database) as url:
        values = {"home": test_home, "database_url": url, "llm_model": str(gguf), "llm_timeout": 240.0}
        settings = Settings(**values, _env_file=None)  # pyright: ignore
        with Workbench.open(settings=settings) as workbench:
            workbench.ingest(folder, source="Drinks", on_progress=lambda _: None)
            yield workbench


@pytest.mark.parametrize(
    ("strategy", "parameters"), [("hyde", {}), ("multi-query", {"queries": 1}), ("llm-rerank", {"graded": 2})]
)
def test_a_strategy_that_asks_the_model_serves_with_it(
    drinks: Workbench, strategy: str, parameters: dict[str, ParameterValue]
) -> None:
    result = drinks.search(QUESTION, strategy, 3, parameters=parameters)
    assert "Espresso" in " ".join(hit.text for hit in result)
    assert result.timings_ms["llm"] > 0
    assert not any("LLM" in note for note in result.degraded), result.degraded


def test_an_answer_is_written_by_the_model_piece_by_piece(drinks: Workbench) -> None:
    stream = drinks.ask(QUESTION, stream=True)
    pieces = list(stream)
    assert len(pieces) > 1 and "".join(pieces).strip()
    assert drinks.corpus.llm is not None
    assert stream.answer().model == drinks.corpus.llm.name

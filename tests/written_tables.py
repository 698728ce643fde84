"""The parts of the documentation that are generated from the code; ``make docs`` runs this script to write them."""

from __future__ import annotations

import re
from pathlib import Path

from pydantic_core import PydanticUndefined

from evals.measures.metrics import FAMILIES
from workbench.cli.main import COMMANDS
from workbench.retrieval.strategies import STRATEGIES
from workbench.settings import Settings

ROOT = Path(__file__).parent.parent


def variable(name: str) -> str:
    """Return the environment variable of a setting."""
    return "SEARCH_DB_PATH" if name == "search_db_path" else f"WORKBENCH_{name.upper()}"


def default(name: str) -> str:
    """Return a setting's default as it would appear in .env; empty if there is none or the platform decides."""
    value = Settings.model_fields[name].default
    if value is None or value is PydanticUndefined:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)


def settings_table() -> str:
    """Return the table of settings."""
    rows = [
        f"| `{variable(name)}` | {f'`{default(name)}`' if default(name) else ''} | {field.description} |"
        for name, field in Settings.model_fields.items()
    ]
    return "\n".join(["| Variable | Default | What it sets |", "|---|---|---|", *rows])


def strategies_table() -> str:
    """Return the table of strategies."""
    rows = []
    for strategy in STRATEGIES.values():
        parameters = ", ".join(f"`{parameter.name}`" for parameter in strategy.parameters)
        rows.append(f"| `{strategy.name}` | {strategy.summary} | {parameters} |")
    return "\n".join(["| Strategy | What it does | Parameters |", "|---|---|---|", *rows])


def commands_table() -> str:
    """Return the table of commands."""
    rows = [f"| `workbench {name}` | {purpose} |" for name, (purpose, *_) in COMMANDS.items()]
    return "\n".join(["| Command | What it does |", "|---|---|", *rows])


def env_example() -> str:
    """Return the whole of .env.example."""
    head = "# Every setting with its default; copy this file to .env and take the # away from what you change.\n"
    blocks = [
        f"# {field.description}\n# {variable(name)}={default(name)}\n" for name, field in Settings.model_fields.items()
    ]
    return "\n".join([head, *blocks])


def metrics_table() -> str:
    """Return the table of metrics."""
    names = [(f"{name}@K" if family.cutoffs else name, family.meaning) for name, family in FAMILIES.items()]
    rows = [f"| `{name}` | {meaning} |" for name, meaning in names]
    return "\n".join(["| Metric | What it measures |", "|---|---|", *rows])


TABLES = {
    "settings": settings_table,
    "strategies": strategies_table,
    "commands": commands_table,
    "metrics": metrics_table,
}
REFERENCE = tuple(f"docs/reference/{name}.md" for name in ("commands", "settings", "strategies"))
GUIDES = (*REFERENCE, "docs/evaluation.md")  # the files with tables


def filled(text: str) -> str:
    """Return a document with new tables between ``<!-- NAME -->`` and ``<!-- /NAME -->``."""
    for name, table in TABLES.items():
        between = re.compile(rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)", re.DOTALL)
        text = between.sub(lambda match, table=table: f"{match[1]}{table()}\n{match[2]}", text)
    return text


if __name__ == "__main__":
    for name in GUIDES:
        guide = ROOT / name
        guide.write_text(filled(guide.read_text(encoding="utf-8")), encoding="utf-8")
    (ROOT / ".env.example").write_text(env_example(), encoding="utf-8")

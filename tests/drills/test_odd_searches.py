"""Random questions of signs, codes, spellings and scripts in random scopes, also empty ones: only known errors."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path

from workbench import Scope, Workbench
from workbench.errors import WorkbenchError
from workbench.retrieval.strategies import STRATEGIES

TEXTS = {
    "pump.md": "# Pump\n\nThe e-mail on filter PPR-9087 says 5 mm, by ISO 9001, for C++ and .NET, at 10.0.0.12.",
    "quay.md": "---\nauthor: Mei\ndate: 2030-03-05\n---\n# Kai\n\nDas Tor am Kai öffnet um neun; die Straße ist naß.",
    "gate.md": "# 門\n\n桟橋の門は朝六時に開きます。",
    "sea.md": "# ท่าเรือ\n\nท่าเรือเปิดเวลาเก้าโมง 🐟 and the pier opens at 9.",
}
ASKED = """
the of e-mail email 5mm 5 mm PPR9087 PPR-9087 1.3.2 C++ dotnet .NET 10.0.0.12 Straße strasse ISO9001 2030-03-05
05.03.2030 🐟 ท่าเรือ 門 العربية ﬁsh ＡＢＣ 10⁶ don't A4 #4711 /etc/hosts mia@quay.example \u00ad % _ ' " \\ <b> & | ( ) *
~ ? -1 1,204.5 € ½ ℃ Ⅷ İ ß ſ pump kai pier gate opens
"""
WORDS = ASKED.split()
NAMES = [name for name, row in STRATEGIES.items() if not row.needs]


def make_scope(chance: random.Random, sources: list[str]) -> Scope | None:
    parts = {
        "sources": tuple(chance.sample(sources, chance.randint(0, 1))),
        "documents": chance.choice([(), ("absent",)]),
        "languages": (chance.choice(["en", "de", "cjk", "simple"]),),
        "since": date(chance.choice([1990, 2030, 2999]), 1, 1),
        "metadata": (chance.choice(["author=Mei", "author=nobody"]),),
        "document_types": (chance.choice(["md", "pdf"]),),
        "names": chance.choice(["prefer", "only", "ignore"]),
    }
    return Scope(**{name: parts[name] for name in parts if chance.random() < 0.25}) if chance.random() < 0.7 else None


def test_odd_questions_in_odd_scopes_raise_only_known_errors(
    wb: Workbench, folder: Callable[..., Path], chance: random.Random, rounds: Callable[[], Iterator[int]]
) -> None:
    wb.ingest(folder(TEXTS), source="Harbour")
    sources, answered = [source.id for source in wb.sources.list()], 0
    for _ in rounds():
        for _ in range(10):
            words = chance.choices(WORDS, k=chance.choice([1, 1, 2, 4, 12]))
            question = chance.choice([" ", " ", "", "-"]).join(words)
            asked = (question, chance.choice(NAMES), chance.choice([1, 10, 200]), make_scope(chance, sources))
            try:
                wb.search(*asked)
                answered += 1
            except WorkbenchError as error:
                assert str(error).endswith((".", "?")), asked
            except Exception as error:
                raise AssertionError(f"{asked}") from error
    assert answered

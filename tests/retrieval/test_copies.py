"""Near-equal hits are folded under the best one; texts that differ in a number, name or date are not."""

from __future__ import annotations

from pathlib import Path

import pytest

from workbench import Scope, Workbench
from workbench.retrieval.nodes import ComparedText, are_copies
from workbench.retrieval.options import Ask
from workbench.retrieval.strategies import STRATEGIES

PUMP = (
    "The circulation pump of the greenhouse must be drained before the first frost. Close the inlet, open the drain "
    "valve, and leave the valve open until spring. A pump that freezes with water inside cracks along its seam."
)
SHEET = (
    "# Pump {name}\n\nThe pump {name} lifts water to a height of {height} metres. It needs a fuse of 16 A "
    "and weighs 9 kg."
)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (PUMP, PUMP.upper()),
        (PUMP, f"## {PUMP.replace(' before', chr(10) + 'before')}"),
        (PUMP, PUMP.replace("frost", "fro\u00adst").replace("first", "\ufb01rst")),
        (PUMP, PUMP.replace("drain valve", "**drain** _valve_").replace(". A", " — A")),
        (PUMP, PUMP.replace("must be drained", "must be completely drained")),
        (PUMP.replace("freezes", "colours"), PUMP.replace("freezes", "colors")),
        ("水泵在第一次霜冻之前必须排空。", "水泵在第一次霜冻之前必须排空"),
        (PUMP, f">> {PUMP.replace('. ', f'.{chr(10)}>{chr(10)}> > ')}"),
    ],
    ids=["case", "markup", "invisible", "emphasis", "added word", "spelling", "chinese", "quoted mail"],
)
def test_same_text_is_a_copy(one: str, other: str) -> None:
    assert are_copies(ComparedText(one), ComparedText(other))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (SHEET.format(name="XR", height=12), SHEET.format(name="XR", height=14)),
        (SHEET.format(name="Alder", height=12), SHEET.format(name="Birch", height=12)),
        (f"{PUMP} Reported by Anna Berg.", f"{PUMP} Reported by Nils Berg."),
        (f"{PUMP} Checked on 2030-03-05.", f"{PUMP} Checked on 2030-03-06."),
        (f"{PUMP} Checked in March.", f"{PUMP} Checked in May."),
        (f"{PUMP}\n\nstate: open", f"{PUMP}\n\nstate: closed"),
        (PUMP, PUMP.replace("must be drained", "must not be drained")),
        (f"{PUMP} Keep it below -5 °C.", f"{PUMP} Keep it below 5 °C."),
        (f"{PUMP} Written in C++.", f"{PUMP} Written in C."),
        (f"{PUMP} if p < 0.05", f"{PUMP} if p > 0.05"),
        (PUMP, PUMP.replace("open until", "closed until")),
        (PUMP.replace("first", "minimum"), PUMP.replace("first", "maximum")),
        ("水泵在第一次霜冻之前必须排空。", "水泵在第二次霜冻之前必须排空。"),
        (PUMP, "Something else entirely about the roof of the greenhouse and its windows, which open by themselves."),
    ],
    ids=[
        "number",
        "name",
        "person",
        "date",
        "month",
        "field",
        "negation",
        "sign",
        "symbol",
        "comparison",
        "value",
        "extreme",
        "chinese",
        "other",
    ],
)
def test_other_text_is_no_copy(one: str, other: str) -> None:
    assert not are_copies(ComparedText(one), ComparedText(other))


QUESTION = "how do I protect the pump from frost"


@pytest.fixture
def source(wb: Workbench, tmp_path: Path) -> str:
    folder = tmp_path / "copies"
    folder.mkdir()
    for number in range(30):
        text = PUMP if number % 2 else PUMP.replace(". ", ".\n")
        (folder / f"notice {number}.txt").write_text(text, encoding="utf-8")
    for number in range(8):
        sheet = SHEET.format(name=f"K{number}", height=10 + number)
        (folder / f"sheet {number}.md").write_text(f"{sheet} Protect the pump from frost.", encoding="utf-8")
    return wb.ingest([folder], source="Copies").source_id


def test_copies_do_not_fill_the_page_of_any_strategy(wb: Workbench, source: str) -> None:
    for name, row in STRATEGIES.items():
        if not (row.needs_llm or row.needs_reranker or row.own):
            _check_page(wb, source, name)


def _check_page(wb: Workbench, source: str, strategy: str) -> None:
    ask = Ask(strategy, 6, Scope(sources=(source,)))
    result = wb.search_service.search(QUESTION, ask)
    assert len(result) == 6, (strategy, [hit.document_title for hit in result])
    notices = [hit for hit in result if PUMP[:30] in hit.text]
    assert len(notices) <= 1
    for hit in notices:
        assert len(hit.copies) == 29
        assert {copy.document_title for copy in hit.copies} <= {f"notice {number}" for number in range(30)}
    whole = wb.search_service.search(QUESTION, Ask(strategy, 40, Scope(sources=(source,))))
    assert [hit.passage_id for hit in whole][:6] == [hit.passage_id for hit in result], "pages continue each other"
    found = [hit.document_id for hit in whole] + [copy.document_id for hit in whole for copy in hit.copies]
    assert sorted(found) == sorted(set(found)), "a document is found once"
    plain = wb.search_service.search(QUESTION, Ask(strategy, 40, Scope(sources=(source,)), fold_copies=False))
    assert not any(hit.copies for hit in plain)


def test_documents_that_are_copies_are_folded(wb: Workbench, source: str) -> None:
    result = wb.document_search.search(QUESTION, Ask("hybrid", 9, Scope(sources=(source,))))
    assert len(result.documents) == 9
    [notice] = [hit for hit in result.documents if hit.title.startswith("notice")]
    assert len(notice.copies) == 29


def test_a_long_text_under_other_titles_is_folded_and_a_short_one_is_not(wb: Workbench, tmp_path: Path) -> None:
    for town in ("Bremen", "Erfurt", "Kassel", "Rostock"):
        (tmp_path / f"{town}.txt").write_text(f"{PUMP} Report every crack to the works.", encoding="utf-8")
        (tmp_path / f"{town} hours.md").write_text("The greenhouse opens at nine.", encoding="utf-8")
    source = wb.ingest([tmp_path], source="Towns").source_id
    for strategy in ("keyword", "rerank"):
        result = wb.search_service.search(QUESTION, Ask(strategy, 10, Scope(sources=(source,))))
        assert [len(hit.copies) for hit in result if PUMP[:30] in hit.text] == [3]
        hours = wb.search_service.search("When does the greenhouse open?", Ask(strategy, 10, Scope(sources=(source,))))
        assert sum("opens at nine" in hit.text for hit in hours) == 4


def test_a_long_text_of_two_sources_is_folded_though_its_wording_differs_a_little(
    wb: Workbench, tmp_path: Path
) -> None:
    chinese = "水泵站的操作员在启动水泵之前关闭排水阀，打开吸水阀两圈，并等待压力表显示稳定的数值，" * 2
    texts = {
        "One/pump.md": f"{PUMP} Report every crack.",
        "Two/Handbook.md": f"**{PUMP}** Report every crack soon.",
        "One/水泵.md": chinese,
        "Two/手册.md": chinese,
    }
    for path, text in texts.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text, encoding="utf-8")
    for source in ("One", "Two"):
        wb.ingest([tmp_path / source], source=source)
    for question, stems in ((QUESTION, {"pump", "Handbook"}), ("水泵启动之前做什么", {"水泵", "手册"})):
        best = wb.search(question, strategy="rerank", limit=1)[0]
        [copy] = best.copies
        assert {Path(str(best.path)).stem, Path(str(copy.path)).stem} == stems


def test_a_comparison_shows_the_same_copy_in_every_column(wb: Workbench, tmp_path: Path) -> None:
    for title in ("Frost and pumps", "Handbook", "Winter"):
        (tmp_path / f"{title}.md").write_text(f"# {title}\n\n{PUMP} Report every crack.", encoding="utf-8")
    wb.ingest([tmp_path], source="Notices")
    alone = {name: wb.search(QUESTION, strategy=name, limit=1)[0] for name in ("keyword", "vector", "rerank")}
    comparison = wb.compare(QUESTION, strategies=list(alone), limit=3)
    for name, result in comparison.strategies.items():
        assert result[0].passage_id == alone["keyword"].passage_id
        assert (result[0].score, result[0].attribution) == (alone[name].score, alone[name].attribution)
        assert {result[0].document_title, *(copy.document_title for copy in result[0].copies)} == {
            "Frost and pumps", "Handbook", "Winter",
        }  # fmt: skip

"""Names in a question: years, quarters, titles and their parts prefer the documents that have them."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from workbench import Workbench
from workbench.errors import ScopeError
from workbench.retrieval.names import QUICK_BUILD_S, NamesCache, NamesTable, find_periods
from workbench.storage.documents import DocumentNames
from workbench.storage.ranking import fetch_query_terms
from workbench.types import JsonValue, ResolvedScope, Scope, SearchResult

SAYS = "The harbour was dredged and its cranes were painted. Receipts were higher than in the year before."
COMPANIES = ("ALPINE", "BOREAL", "CASCADE", "DELTA")
PERIODS = ("2021_10K", "2021Q2_10Q", "2022_10K", "2022Q2_10Q")
PAPERS = {
    "one.md": f"---\ntitle: Ledger of a spring\ndate: 2022-05-03\n---\n{SAYS}",
    "two.md": f"---\ntitle: Ledger of an autumn\ndate: 2023-05-03\n---\n{SAYS}",
    "three.md": f"---\ntitle: Ledger of a winter\nfiscal_year: 2021\nquarter: 4\n---\n{SAYS}",
    "ALPINE_2023Q1_10Q.md": f"# Lifts and chairs\n\n{SAYS}",
    "ALPINE_2022_10K.md": f"# Lifts and chairs\n\n{SAYS}",
    "Best Practices.md": f"# Best Practices\n\n{SAYS}",
}


@pytest.fixture
def papers(wb: Workbench, folder: Callable[..., Path]) -> Workbench:
    wb.ingest(folder(PAPERS), source="Papers")
    return wb


def first(result: SearchResult) -> str:
    return Path(result.results[0].path or "").name


def told(result: SearchResult) -> list[str]:
    return [name.text for name in result.preferring]


@pytest.mark.parametrize("strategy", ["hybrid", "rerank"])
@pytest.mark.parametrize(
    ("question", "file", "names"),
    [
        ("does the ledger of a spring mention the cranes?", "one.md", ["Ledger of a spring"]),
        ("which receipts were reported in Q4 of FY2021?", "three.md", ["Q4", "2021"]),
        ("receipts of Alpine in its 10-Q", "ALPINE_2023Q1_10Q.md", ["Alpine", "10-Q"]),
        ("how were Alpine's receipts in the first quarter of 2023?", "ALPINE_2023Q1_10Q.md", ["Alpine", "Q1", "2023"]),
        ("when are cranes painted, according to the Best Practices page?", "Best Practices.md", ["Best Practices"]),
    ],
)
def test_the_document_that_a_question_names_comes_first_and_the_names_are_reported(
    papers: Workbench, strategy: str, question: str, file: str, names: list[str]
) -> None:
    result = papers.search(question, strategy)
    assert first(result) == file
    assert told(result) == names
    assert result.results[0].attribution["document"].contribution > 0
    assert len(result) == len(PAPERS), "a preference leaves nothing out"


def test_an_ignored_name_prefers_nothing_and_the_others_still_do(papers: Workbench) -> None:
    question = "receipts of Alpine in 2023"
    assert first(papers.search(question, "hybrid")) == "ALPINE_2023Q1_10Q.md"
    scope = Scope(ignored_names=("alpine",))
    result = papers.search(question, "hybrid", scope=scope)
    assert told(result) == ["2023"]
    named = {Path(hit.path or "").name for hit in result if "document" in hit.attribution}
    assert named == {"two.md", "ALPINE_2023Q1_10Q.md"}


def test_only_leaves_out_every_other_document_in_each_strategy(papers: Workbench) -> None:
    for strategy in ("vector", "keyword", "hybrid", "rerank"):
        result = papers.search("receipts of Alpine in 2022", strategy, scope=Scope(names="only"))
        assert {Path(hit.path or "").name for hit in result} == {"ALPINE_2022_10K.md"}, strategy


def test_only_without_a_name_searches_everything_and_reports_it(papers: Workbench) -> None:
    result = papers.search("cranes", "hybrid", scope=Scope(names="only"))
    assert len(result) == len(PAPERS)
    assert "the question names no document" in " ".join(result.notes)


def test_ignore_reads_no_names_at_all(papers: Workbench) -> None:
    result = papers.search("receipts of Alpine in 2022", "rerank", scope=Scope(names="ignore"))
    assert not result.preferring
    assert all("document" not in hit.attribution for hit in result)


def test_a_wrong_use_of_names_is_refused(papers: Workbench) -> None:
    with pytest.raises(ScopeError, match="Invalid value for names 'hard'"):
        papers.search("cranes", scope=Scope(names="hard"))  # pyright: ignore[reportArgumentType]


def test_why_reports_the_names_that_were_preferred(papers: Workbench) -> None:
    question = "does the ledger of a spring mention the cranes?"
    [hit, *_] = papers.search(question, "rerank").results
    explained = papers.explain(question, passage_id=hit.passage_id, strategy="rerank")
    assert [name.text for name in explained.preferring] == ["Ledger of a spring"]
    assert explained.legs["document"].contribution == pytest.approx(hit.attribution["document"].contribution)


def test_a_document_that_comes_in_can_be_named_at_once(papers: Workbench, tmp_path: Path) -> None:
    question = "were the cranes of the harbour painted, Cleo?"
    assert not papers.search(question, "hybrid").preferring
    (tmp_path / "CLEO_2024_10K.md").write_text(f"# Lifts and chairs\n\n{SAYS}")
    papers.ingest(tmp_path / "CLEO_2024_10K.md", source="Papers")
    result = papers.search(question, "hybrid")
    assert told(result) == ["Cleo"]
    assert first(result) == "CLEO_2024_10K.md"


def test_a_name_that_most_documents_have_identifies_nothing() -> None:
    table = NamesTable(DocumentNames(f"d{number}", f"Report 2023 {number:02}") for number in range(4))
    assert table.mentions("the report of 2023", {"report", "2023"}) == []


@pytest.mark.parametrize(
    ("question", "said"),
    [("what does may bring in the harbour?", True), ("What may it bring?", False), ("What did May bring?", True)],
)
def test_a_proper_noun_is_written_with_a_capital_unless_all_is_written_small(question: str, said: bool) -> None:
    table = NamesTable([DocumentNames("a", "May 2021"), DocumentNames("b", "y")])
    assert bool(table.mentions(question, {"may"})) is said


def test_a_stop_word_names_nothing() -> None:
    table = NamesTable([DocumentNames("a", "The 2021"), DocumentNames("b", "y")])
    assert table.mentions("who is on the team?", {"team"}) == []


def test_a_stop_word_of_the_question_names_nothing_if_passages_are_in_another_language(
    papers: Workbench, folder: Callable[..., Path]
) -> None:
    german = "Die Straßenbahn fährt im Winter mit beiden Bügeln, damit der Reif auf der Leitung sie nicht aufhält."
    papers.ingest(folder({"Report of the Harbour 2021.md": SAYS, "bahn.md": german}, "more"), source="Mixed")
    assert told(papers.search("were the cranes painted?", "hybrid")) == []
    assert told(papers.search("what says the report of the Harbour?", "hybrid")) == ["Harbour"]


def test_a_table_is_kept_while_the_documents_are_the_same() -> None:
    loads: list[int] = []

    def load() -> list[DocumentNames]:
        loads.append(1)
        return [DocumentNames("a", "x")]

    kept = NamesCache()
    assert kept.table(1, load) is kept.table(1, load)
    kept.table(2, load)
    assert len(loads) == 2


def test_a_table_that_was_made_at_the_start_is_made_again_at_the_first_change() -> None:
    def load() -> list[DocumentNames]:
        time.sleep(2 * QUICK_BUILD_S)  # as long as a start's imports make it wait
        return [DocumentNames("a", "x")]

    kept = NamesCache()
    first = kept.table(1, load)
    second = kept.table(2, load)
    assert second is not first
    assert kept.table(3, load) is second  # a slow one serves for a while although documents have changed


def test_warming_reads_the_names_that_the_first_search_needs(papers: Workbench) -> None:
    with Workbench.open(settings=papers.settings) as opened:
        opened.warm()
        index = opened.corpus.index()
        with opened.corpus.store(index).reading() as connection:
            asked = fetch_query_terms(connection, index.name, "words of a question", ResolvedScope(), 0)
        version = asked.totals.version
        table = opened.corpus.names(index).table(version, lambda: pytest.fail("The names were not read yet."))
        assert table.documents == len(PAPERS)


@pytest.mark.parametrize(
    ("text", "periods"),
    [
        ("FY2018 and FY19", ["2018", "2019"]),
        ("2021Q1", ["2021", "Q1"]),
        ("1Q21", ["Q1", "2021"]),
        ("Q3'23", ["Q3", "2023"]),
        ("the second quarter of fiscal 2022", ["Q2", "2022"]),
        ("im dritten Quartal 2020", ["Q3", "2020"]),
        ("3M_2018_10K", ["2018"]),
        ("12,018 or 2018.5 or 32018 or Q10", []),
    ],
)
def test_years_and_quarters_are_read_as_people_write_them(text: str, periods: list[str]) -> None:
    assert [period.text for period in find_periods(text)] == periods


def test_metadata_name_a_period_and_nothing_else() -> None:
    metadata: dict[str, JsonValue] = {"author": "Ada Brandt", "tags": ["similarity"], "fiscal_year": 2021}
    table = NamesTable([DocumentNames("a", "x", metadata=metadata), DocumentNames("b", "y")])
    mentions = table.mentions("Ada Brandt on similarity in 2021", {"ada", "brandt", "similarity", "2021"})
    assert [mention.name.text for mention in mentions] == ["2021"]


@pytest.fixture
def alpine(minilm_wb: Workbench, folder: Callable[..., Path]) -> Workbench:
    """Reports of companies by year and quarter, with the same wording."""
    names = [f"{company}_{period}.md" for company in COMPANIES for period in PERIODS]
    minilm_wb.ingest(folder(dict.fromkeys(names, f"# Lifts and chairs\n\n{SAYS}")), source="Reports")
    return minilm_wb


@pytest.mark.parametrize("strategy", ["hybrid", "rerank"])
@pytest.mark.parametrize(
    ("question", "file"),
    [
        ("what were the receipts of Alpine in FY2022?", "ALPINE_2022_10K.md"),
        ("what were the receipts of Boreal in 2021?", "BOREAL_2021_10K.md"),
        ("what were the receipts of Alpine in Q2 of FY2022?", "ALPINE_2022Q2_10Q.md"),
        ("what were the receipts of Boreal in Q2 of FY2021?", "BOREAL_2021Q2_10Q.md"),
    ],
)
def test_a_year_means_the_report_of_the_year_and_a_quarter_that_of_the_quarter(
    alpine: Workbench, strategy: str, question: str, file: str
) -> None:
    result = alpine.search(question, strategy, limit=len(COMPANIES) * len(PERIODS))
    assert first(result) == file
    assert len(result) == len(COMPANIES) * len(PERIODS), "a preference leaves nothing out"


def test_documents_of_another_period_are_those_whose_labels_have_one() -> None:
    table = NamesTable(
        DocumentNames(name, "Lifts", file, metadata)
        for name, file, metadata in (
            ("year", "ALPINE_2022_10K", {}),
            ("quarter", "ALPINE_2022Q2_10Q", {}),
            ("dated", "letter", {"date": "2022-05-03"}),
        )
    )
    assert table.of_other_periods("Alpine in FY2022") == {"quarter"}
    assert table.of_other_periods("Alpine in Q2 of 2022") == {"year"}
    assert table.of_other_periods("Alpine in 2Q22") == {"year"}
    assert table.of_other_periods("Alpine's lifts") == frozenset()

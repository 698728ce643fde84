"""Measure whether the document that a question names comes first: ``python -m tests.retrieval.measure_named_reports``.

Reports of invented companies say the same in the same words; only their file names and figures differ.
"""

from __future__ import annotations

from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.ingestion import files
from workbench import Workbench

COMPANIES = ("Ardent", "Bluewater", "Corvid Systems", "Dunmore", "Eastlake Foods", "Fennick", "Granite", "Holloway")
PERIODS = ("2020_10K", "2021_10K", "2022_10K", "2021Q2_10Q", "2022Q2_10Q")
STRATEGIES = ("vector", "keyword", "hybrid", "rerank", "learned")
PAGES = (
    ("Results of operations", "Net sales were ${} million, {} percent more than in the year before.", "Costs rose."),
    (
        "Liquidity",
        "Cash from operating activities was ${} million. The credit facility is of ${} million.",
        "No draws.",
    ),
    (
        "Legal proceedings",
        "We are party to {} claims, none of which we hold to be material beyond ${} million.",
        "None.",
    ),
    ("Employees", "At the end of the period we had {} employees at {} sites.", "Relations are good."),
)
ASKED = (
    "What were the net sales of {}?",
    "How much cash from operations did {} report?",
    "How many people worked for {}?",
)


def names(company: str, period: str) -> tuple[str, str]:
    """Return the usual ways to name a company's report: by fiscal year or quarter, by period or form."""
    year, form = period[:4], period.rpartition("_")[2]
    if form == "10Q":
        return f"{company} in Q2 of FY{year}", f"{company} according to its {form} for the second quarter of {year}"
    return f"{company} in FY{year}", f"{company} according to its {year} {form}"


def reports(folder: Path) -> dict[tuple[str, str], str]:
    """Write the reports, and return their file names by company and period."""
    written: dict[tuple[str, str], str] = {}
    for number, (company, period) in enumerate(product(COMPANIES, PERIODS)):
        pages = [
            (heading, first.format(100 + 7 * number + place, 3 + (5 * number + place) % 60), second)
            for place, (heading, first, second) in enumerate(PAGES)
        ]
        name = f"{company.replace(' ', '').upper()}_{period}.pdf"
        (folder / name).write_bytes(files.pdf(pages))
        written[company, period] = name
    return written


def main() -> None:
    """Print the share of questions whose first passage is from the report that they name, by strategy."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)  # if root runs this, the database server is another user
        (folder / "reports").mkdir()
        written = reports(folder / "reports")
        asked = [
            (form.format(said), report) for place, report in written.items() for said in names(*place) for form in ASKED
        ]
        with Workbench.open(home=folder / "home") as workbench:
            workbench.ingest([folder / "reports"], source="Reports")
            for strategy in STRATEGIES:
                right = sum(
                    any((hit.path or "").endswith(report) for hit in workbench.search(question, strategy, limit=1))
                    for question, report in asked
                )
                print(f"{strategy}: {right} of {len(asked)}, {right / len(asked):.3f}")


if __name__ == "__main__":
    main()

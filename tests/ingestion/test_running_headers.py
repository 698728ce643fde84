"""Running headers and footers of a PDF: only uninformative lines are left out."""

from __future__ import annotations

from tests.ingestion import files
from workbench.ingestion.readers.formats import read_bytes

ANIMALS = ("otters", "beavers", "herons", "newts", "voles")
HEADER, FOOTER, BODY = 810, 30, 600


def _text(*margins: tuple[int, str]) -> str:
    """Return the text of five pages with these lines at these heights; ``{page}`` is the page's number."""
    pages = [
        [*((height, line.format(page=page)) for height, line in margins if height > BODY),
         (BODY, f"What is known of {animal} is written here."),
         *((height, line.format(page=page)) for height, line in margins if height < BODY)]
        for page, animal in enumerate(ANIMALS, 1)
    ]  # fmt: skip
    return read_bytes(files.paged_pdf(pages), "animals.pdf").text


def test_chapter_headings_of_pages_that_repeat_each_other_all_stay() -> None:
    rules = "Every member of staff keeps this handbook at hand."
    chapters = [(f"Chapter {number}", rules, f"Doors stay closed at night. {rules}") for number in range(1, 6)]
    text = read_bytes(files.pdf(chapters), "handbook.pdf").text
    assert [line for line in text.splitlines() if "Chapter" in line] == [f"# Chapter {n}" for n in range(1, 6)]
    assert text.count(rules) == 10


def test_a_running_header_is_read_once() -> None:
    text = _text((HEADER, "Animals of the river"))
    assert text.startswith("Animals of the river")
    assert text.count("Animals of the river") == 1
    assert all(f"What is known of {animal}" in text for animal in ANIMALS)


def test_page_numbers_are_left_out() -> None:
    assert not any(character.isdigit() for character in _text((FOOTER, "Page {page} of 5")))


def test_a_numbered_line_in_the_margin_stays_where_it_first_is() -> None:
    text = _text((HEADER, "River report, sheet {page}"))
    assert "River report, sheet 1" in text
    assert "sheet 2" not in text


def test_the_number_of_a_section_is_no_page_number() -> None:
    text = _text((HEADER, "Section {page}.2 Animals"))
    assert all(f"Section {page}.2 Animals" in text for page in range(1, 6))


def test_a_line_that_repeats_away_from_the_margin_stays_on_every_page() -> None:
    assert _text((700, "Do not feed the animals.")).count("Do not feed the animals.") == len(ANIMALS)


def test_a_number_in_the_margin_that_does_not_count_the_pages_stays() -> None:
    pages = [[(HEADER, f"Seen {count} times"), (BODY, "Otters swim.")] for count in (7, 3, 9, 2)]
    text = read_bytes(files.paged_pdf(pages), "counts.pdf").text
    assert all(f"Seen {count} times" in text for count in (7, 3, 9, 2))

"""The words of a file's name and a document's own description, in the context of its passages."""

from __future__ import annotations

import pytest

from tests.ingestion.tokens import chunk, word_spans
from workbench.ingestion.chunking import ChunkInput
from workbench.ingestion.metadata import About, about_document, file_name_words


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("reports/3M_2018_10K.pdf", "3M 2018 10K"),
        ("PEPSICO_2023_8K_dated-2023-05-30.pdf", "PEPSICO 2023 8K dated 2023-05-30"),
        ("annualReport.docx", "annual Report"),
        ("guide/index.md", ""),
        ("0f3a9c1b2d4e5f60.pdf", ""),
        ("1734.pdf", ""),
        ("https://example.com/3M_2018_10K.pdf", ""),
        ("a-key-without-suffix", ""),
    ],
)
def test_a_file_name_is_split_into_words_if_it_is_informative(path: str, words: str) -> None:
    assert file_name_words(path) == words


def test_each_thing_is_stated_once() -> None:
    assert about_document("The slice function", "slice.md", {}) == About("", "The slice function", "")
    assert about_document("3M_2018_10K", "3M_2018_10K.pdf", {}) == About("3M 2018 10K", "", "")
    metadata = {"description": "Returns a part.", "summary": "returns a PART", "keywords": ["first", "rest"], "x": "y"}
    assert about_document("Slices", None, metadata).description == "Returns a part. · first, rest"


def test_every_passage_reports_which_file_it_is_from_and_what_its_author_reports_of_it() -> None:
    text = "# Cover\n\n" + "\n\n".join(f"Paragraph {n} tells of otters and rivers at length." for n in range(40))
    about = about_document("Cover", "3M_2018_10K.pdf", {"description": "Annual report of a maker of tape."})
    spans = chunk("structure", ChunkInput("Cover", text, about=about), word_spans, {"size": 60})
    assert len(spans) > 3
    assert {span.header for span in spans[1:]} == {"3M 2018 10K > Cover — Annual report of a maker of tape."}

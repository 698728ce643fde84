"""The table of readers is the only list of file formats, and the narrower lists agree with it."""

from __future__ import annotations

import pytest

from workbench.crawling.extraction import extract_page
from workbench.crawling.http import Response
from workbench.ingestion import incoming
from workbench.ingestion import links as addresses
from workbench.ingestion.readers.formats import (
    HTML_READER,
    INSTALLED_READERS,
    MARKDOWN_READER,
    READERS_BY_MEDIA_TYPE,
    READERS_BY_SUFFIX,
    is_prose,
    list_format_titles,
    original_type,
)
from workbench.services import article_files

# formats of which a page's address always names the ending
KEPT_IN_LINKS = frozenset(
    (
        ".mdown", ".text", ".log", ".adoc", ".tex", ".org", ".xhtml", ".csv", ".tsv", ".json", ".jsonl", ".ndjson",
        ".pptx", ".xlsx", ".epub", ".eml", ".mbox", ".rtf", ".docm", ".pptm", ".xlsm", ".png",
        ".jpg", ".jpeg", ".tif", ".tiff", ".webp", ".srt", ".vtt", ".ics", ".vcf", ".mht", ".mhtml",
        ".mkd", ".rmd", ".qmd", ".rest", ".asciidoc",
        ".shtml", ".tab", ".jsonld", ".geojson", ".dotx", ".dotm", ".ppsx", ".ppsm", ".potx", ".xltx", ".xltm",
    )
)  # fmt: skip


def test_no_suffix_and_no_media_type_is_in_two_rows() -> None:
    suffixes = [suffix for reader in INSTALLED_READERS for suffix in reader.suffixes]
    media_types = [media_type for reader in INSTALLED_READERS for media_type in reader.media_types]
    assert len(suffixes) == len(set(suffixes)) == len(READERS_BY_SUFFIX)
    assert len(media_types) == len(set(media_types)) == len(READERS_BY_MEDIA_TYPE)


def test_people_see_each_format_once() -> None:
    titles = list_format_titles()
    assert {"PDF", "Word", "Markdown", "code"} <= set(titles)
    assert len(titles) == len(set(titles)) < len(INSTALLED_READERS)


def test_a_file_whose_original_is_kept_has_a_media_type() -> None:
    assert all(reader.media_types for reader in INSTALLED_READERS if reader.keeps_original)
    types = [original_type(name) for name in ("A.PDF", "a.md", "a", "a.unknown")]
    assert types == ["application/pdf", None, None, None]


def test_the_suffixes_of_conversations_and_articles_are_some_of_the_readers() -> None:
    for suffix in incoming.CONVERSATION_SUFFIXES:
        assert is_prose(f"a{suffix}"), f"Take {suffix!r} out of SUFFIXES in ingestion/incoming.py: it is no prose."
    for suffix in article_files.ARTICLE_SUFFIXES:
        assert suffix in MARKDOWN_READER.suffixes, (
            f"Take {suffix!r} out of ARTICLE_SUFFIXES in services/article_files.py: it is no Markdown."
        )


def test_every_format_is_reported_whether_a_link_may_leave_out_its_ending() -> None:
    for suffix in addresses.PAGE_SUFFIXES:
        assert suffix in READERS_BY_SUFFIX, f"Take {suffix!r} out of ENDINGS in ingestion/links.py: no reader reads it."
    for reader in INSTALLED_READERS:
        for suffix in reader.suffixes if reader.document_type != "code" else ():
            told = (suffix in addresses.PAGE_SUFFIXES) != (suffix in KEPT_IN_LINKS)
            assert told, (
                f"Put {suffix!r} into ENDINGS in ingestion/links.py, where links leave that ending out, "
                "else into KEPT_IN_LINKS of this test."
            )


@pytest.mark.parametrize("media_type", sorted(set(READERS_BY_MEDIA_TYPE) - set(HTML_READER.media_types)))
def test_a_crawled_answer_is_named_for_the_reader_of_its_media_type(media_type: str) -> None:
    page = extract_page(_answer("https://docs.example/files/7", media_type))
    assert READERS_BY_SUFFIX["." + page.name.rpartition(".")[2]] is READERS_BY_MEDIA_TYPE[media_type]


@pytest.mark.parametrize(
    "suffix", sorted(suffix for reader in INSTALLED_READERS for suffix in reader.suffixes if reader.media_types)
)
def test_an_answer_that_reports_only_that_it_is_bytes_is_read_by_the_suffix_of_its_address(suffix: str) -> None:
    page = extract_page(_answer(f"https://docs.example/files/report{suffix}", "application/octet-stream"))
    assert page.name == f"report{suffix}"


def _answer(url: str, media_type: str) -> Response:
    return Response(url=url, status=200, headers={"content-type": media_type}, body=b"Some words.")

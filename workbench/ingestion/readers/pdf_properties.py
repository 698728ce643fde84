"""The properties of a PDF: title, author, subject and keywords, as far as they say something of its contents."""

from __future__ import annotations

import io
import re

from workbench.ingestion.about import NOTHING_SAYING

PROPERTIES = ("title", "author", "subject", "keywords")
LETTERS = re.compile(r"[^\W\d_]{2}")  # a number of a register says nothing to a reader
PRINTED_FROM = re.compile(r"microsoft (?:word|excel|powerpoint) - ", re.IGNORECASE)
FILE = re.compile(r"\S+\.(?:docx?|pptx?|xlsx?|pdf|indd|tex|dvi|rtf|odt|html?)", re.IGNORECASE)
NOBODY = frozenset(("anonymous", "unknown", "user", "admin", "administrator", "owner", "author"))
APART = re.compile(r"\s*[;,]\s*")
UNSAID = frozenset(("unspecified", "unknown", "none", "n/a"))  # written by programs where a person wrote nothing
LONGEST = 1_000  # characters of a property
LONGEST_TITLE = 300


def pdf_properties(data: bytes) -> dict[str, str]:
    """Return those of ``PROPERTIES`` that are set and say something; none of a file that cannot be read for them.

    A title that is the name of the file it was printed from is left out, and so are texts without a word in them.
    """
    from pypdf import PdfReader

    try:
        facts = PdfReader(io.BytesIO(data)).metadata or {}
        told = {name: str(facts.get(f"/{name.title()}") or "") for name in PROPERTIES}
    except Exception:  # noqa: BLE001 - damaged tables of objects; the text was read all the same
        return {}
    told = {name: " ".join(text.split())[:LONGEST] for name, text in told.items()}
    told["title"] = _title(told["title"])
    told["keywords"] = ", ".join(word for word in APART.split(told["keywords"]) if LETTERS.search(word))
    for name, unsaid in (("author", NOBODY), ("subject", UNSAID), ("keywords", UNSAID)):
        if told[name].casefold() in unsaid:
            told[name] = ""
    return {name: text for name, text in told.items() if LETTERS.search(text)}


def _title(text: str) -> str:
    words = PRINTED_FROM.sub("", text)
    is_file = words != text or FILE.fullmatch(words) is not None
    return "" if is_file or words.casefold() in NOTHING_SAYING else words[:LONGEST_TITLE]

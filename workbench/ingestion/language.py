"""The language of a text as the keyword search needs it: a Postgres text search configuration, or "cjk"."""

from __future__ import annotations

import re

from workbench.languages import CONFIGURATIONS
from workbench.models.language_identifier import LETTERS, identifier, is_cjk

NOISE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`|https?://\S+|<[^>\n]*>|\]\([^)\n]*\)", re.DOTALL)
SAMPLE_CHARS = 4_000  # characters that are looked at, out of twice as many
BEGINNING = 2 * SAMPLE_CHARS
THIN = 60  # letters; under this the statistics guess wildly
SURE = 0.9
PLAIN = 0.98  # share of plain letters: English borrows an accent now and then, other languages need them


def language_of_text(text: str, document_type: str) -> str:
    """Return the configuration for a document of a type: the words of code are English, other texts tell their own."""
    return "english" if document_type == "code" else detect_language(text)


def detect_language(text: str) -> str:
    """Return the configuration for a text, judged by its first 4,000 characters without code and addresses.

    "cjk" for Chinese, Japanese and Korean; "english" for short or doubtful ASCII; "simple" for anything unknown.
    """
    sample = NOISE.sub(" ", text[:BEGINNING])[:SAMPLE_CHARS]
    letters = len(LETTERS.findall(sample))
    if is_cjk(sample):
        return "cjk"
    doubtful = "english" if _latin_without_accents(sample) else "simple"
    if letters < THIN:
        return doubtful if letters else "simple"
    code, probability = identifier().classify(sample)
    if probability < SURE:
        return doubtful
    return CONFIGURATIONS.get(code, "simple")


def _latin_without_accents(sample: str) -> bool:
    """Tell whether nearly all letters are a to z; typographic quotes and dashes do not count."""
    letters = LETTERS.findall(sample)
    return sum(letter.isascii() for letter in letters) >= PLAIN * len(letters)

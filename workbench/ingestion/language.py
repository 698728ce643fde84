"""Tell a text's language as the keyword search needs it: a Postgres text search configuration, or "cjk"."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

CONFIGURATIONS = {
    "ar": "arabic", "ca": "catalan", "da": "danish", "de": "german", "el": "greek", "en": "english", "es": "spanish",
    "et": "estonian", "eu": "basque", "fi": "finnish", "fr": "french", "ga": "irish", "hi": "hindi", "hu": "hungarian",
    "hy": "armenian", "id": "indonesian", "it": "italian", "lt": "lithuanian", "nb": "norwegian", "ne": "nepali",
    "nl": "dutch", "nn": "norwegian", "no": "norwegian", "pt": "portuguese", "ro": "romanian", "ru": "russian",
    "sr": "serbian", "sv": "swedish", "ta": "tamil", "tr": "turkish",
}  # fmt: skip
CJK = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\uff66-\uff9d]")
NOISE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`|https?://\S+|<[^>\n]*>|\]\([^)\n]*\)", re.DOTALL)
LETTERS = re.compile(r"[^\W\d_]")
SAMPLE = 4_000
THIN = 60  # letters; under this the statistics guess wildly
SURE = 0.9
PLAIN = 0.98  # share of plain letters: English borrows an accent now and then, other languages need them


def detect_language(text: str) -> str:
    """Return the configuration for a text, judged by its first 4,000 characters without code and addresses.

    "cjk" for Chinese, Japanese and Korean; "english" for short or doubtful ASCII; "simple" for anything unknown.
    """
    sample = NOISE.sub(" ", text[: 2 * SAMPLE])[:SAMPLE]
    letters = len(LETTERS.findall(sample))
    if len(CJK.findall(sample)) > 0.2 * max(1, letters):
        return "cjk"
    doubtful = "english" if _latin_without_accents(sample) else "simple"
    if letters < THIN:
        return doubtful if letters else "simple"
    code, probability = _identifier().classify(sample)
    if probability < SURE:
        return doubtful
    return CONFIGURATIONS.get(code, "simple")


def _latin_without_accents(sample: str) -> bool:
    """True where nearly all letters are a to z; typographic quotes and dashes do not count."""
    letters = LETTERS.findall(sample)
    return sum(letter.isascii() for letter in letters) >= PLAIN * len(letters)


@cache
def _identifier() -> Any:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)

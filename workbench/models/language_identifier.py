"""Language identification with the statistical model of py3langid."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from workbench.text import CONFIGURATIONS

if TYPE_CHECKING:
    from py3langid.langid import LanguageIdentifier

CJK = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\uff66-\uff9d]")
LETTERS = re.compile(r"[^\W\d_]")
MIN_CJK_SHARE = 0.2  # minimum share of CJK letters; Chinese texts also contain foreign names


def is_cjk(text: str) -> bool:
    """Return whether a text is Chinese, Japanese or Korean, judged by its characters."""
    return len(CJK.findall(text)) > MIN_CJK_SHARE * max(1, len(LETTERS.findall(text)))


def rank_codes(text: str) -> dict[str, float]:
    """Return {ISO 639-1 code: probability} for all known languages; the probabilities sum to 1."""
    return {code: float(probability) for code, probability in load_identifier().rank(text)}


def rank_configurations(text: str) -> dict[str, float]:
    """Return the probabilities (0..1), keyed by the keyword index's language names: "english", "cjk", "simple"."""
    if is_cjk(text):
        return {"cjk": 1.0}
    shares: dict[str, float] = {}
    for code, probability in rank_codes(text).items():
        name = CONFIGURATIONS.get(code, "simple")
        shares[name] = shares.get(name, 0.0) + probability
    return shares


@cache
def load_identifier() -> LanguageIdentifier:
    """Return the identifier, loaded once per process."""
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)

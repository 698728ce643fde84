"""The languages that the built-in models were trained on, as ISO 639-1 codes."""

from __future__ import annotations

ENGLISH = frozenset({"en"})

# Conneau et al. 2020, arXiv:1911.02116, appendix A: the languages of XLM-RoBERTa's training text.
_XLM_ROBERTA = (
    "af am ar as az be bg bn br bs ca cs cy da de el en eo es et eu fa fi fr fy ga gd gl gu ha he hi hr hu hy id is it "
    "ja jv ka kk km kn ko ku ky la lo lt lv mg mk ml mn mr ms my nb ne nl nn no om or pa pl ps pt ro ru sa sd si sk sl "
    "so sq sr su sv sw ta te th tl tr ug uk ur uz vi xh yi zh"
)
XLM_ROBERTA = frozenset(_XLM_ROBERTA.split())

# Yang et al. 2020, arXiv:1907.04307, section 4: the sixteen languages, of which two are Chinese.
_UNIVERSAL = "ar de en es fr it ja ko nl pl pt ru th tr zh"
UNIVERSAL = frozenset(_UNIVERSAL.split())

"""The features that a learned ranker weighs: everything that the legs and the passage itself say of a candidate.

The stage measures them, training weighs them and an explanation shows them, all by this table. A weight is kept by its
feature's name, so that a row may be added: older rankers give it nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

from workbench.types import parameter


@dataclass(frozen=True, slots=True)
class Feature:
    """One thing that is known of a candidate; ``why`` says what it measures.

    ``leg`` names the leg that it is counted to, and whose vote for the question it shares; "" for what no leg says.
    """

    name: str
    title: str
    why: str
    leg: str = ""


BEFORE = "before"  # the score that the other weights correct: rerank's
FEATURES = (
    Feature(BEFORE, "Rerank's score", "what rerank makes of all legs"),
    Feature("meaning", "Meaning", "cosine of question and passage", parameter.VECTOR),
    Feature("words", "Words", "BM25", parameter.KEYWORD),
    Feature("coverage", "Words covered", "share of the question's words that it holds, by rarity", parameter.KEYWORD),
    Feature("closeness", "Words together", "how near to each other these words stand", parameter.KEYWORD),
    Feature("late", "Word by word", "MaxSim beyond chance", parameter.LATE),
    Feature("least", "Weakest words", "MaxSim of the half of the question that fits worst", parameter.LATE),
    Feature("document", "Its document", "share of the document's name that is said", parameter.DOCUMENT),
    Feature("title", "Title", "share of the question's words in the title, by rarity"),
    Feature("headings", "Headings", "share of the question's words in the headings above it, by rarity"),
    Feature("start", "Near the beginning", "1 / its place in the document"),
    Feature("length", "Length", "logarithm of its characters"),
    Feature("agreement", "Agreement", "the places that the legs give it, together"),
    Feature("beside", "Passages beside it", "the better score of its two neighbours"),
    Feature("elsewhere", "Rest of the document", "best score of the document's other passages"),
    Feature("language", "Language", "how likely the question is in its language"),
)
FAVOURS = frozenset({"language"})  # may count for a passage, never against it: of other languages questions tell little
NAMES = tuple(feature.name for feature in FEATURES)

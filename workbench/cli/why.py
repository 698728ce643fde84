"""An explanation on a terminal: legs, words, the likes of the question's words, and the other strategies' ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from workbench.cli.output import printable
from workbench.retrieval.legs import RERANKERS

if TYPE_CHECKING:
    from rich.console import Console

    from workbench.retrieval.explain.explanation import Explanation

INDENT = (0, 0, 0, 11)
WORTH_A_WORD = 0.01  # of the score: features that add less are left out


def print_why(console: Console, why: Explanation) -> None:
    """Print what an explanation adds to a passage's own lines."""
    from rich.padding import Padding
    from rich.text import Text

    for label, text in _lines(why):
        line = Text(f"{label:<10} ", style="dim")
        line.append(printable(text), style="not dim")
        console.print(Padding(line, INDENT))


def _lines(why: Explanation) -> list[tuple[str, str]]:
    legs = [
        f"{name} {leg.score:.3f}"
        + (f" (number {leg.rank} {'of the candidates' if name in RERANKERS else 'in scope'})" if leg.rank else "")
        + (f" (its vote counts {leg.vote:.0%} for this question)" if leg.vote < 1 else "")
        for name, leg in why.legs.items()
    ]
    terms = [f"{term.term} x{term.frequency} {term.share:.0%}" for term in why.terms]
    features = [
        f"{view.title.lower()} {view.share:.0%} ({view.value:.3f}, weight {view.weight:+.2f})"
        for view in why.features
        if view.share >= WORTH_A_WORD
    ]
    likes = [
        f"{word.query_token}~{word.passage_token} {word.similarity:.2f}" for word in why.alignment if word.weight > 0
    ]
    ranks = [f"{name} {rank if rank is not None else '-'}" for name, rank in why.elsewhere.items()]
    lines = [
        ("stands", ", ".join(legs)),
        ("weighs", ", ".join(features)),
        ("prefers", " · ".join(name.text for name in why.preferring)),
        ("words", ", ".join(terms) or "none of the question's"),
        ("lacks", ", ".join(why.missing_terms)),
        ("alike", ", ".join(likes)),
        ("elsewhere", ", ".join(ranks)),
        ("way", _way(why)),
    ]
    return [(label, text) for label, text in lines if text]


def _way(why: Explanation) -> str:
    """Return the steps of a passage that fell out, up to the one where it did; "" for one that is shown."""
    lost = next((place for place, step in enumerate(why.course) if not step.kept), None)
    if lost is None:
        return ""
    steps = [
        step.title + (f" (number {step.rank} of {step.count})" if step.rank is not None else f" ({step.count})")
        for step in why.course[: lost + 1]
    ]
    return " > ".join(steps) + ": fell out"

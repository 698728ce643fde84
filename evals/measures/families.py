"""The metrics that can be asked for, one row each: the options, the app's names and the guide's table read it here.

To add one, add a row. ``provider_name`` is what ir-measures calls it; a family without one is measured over characters
by ``span_metrics``, at a fixed number of passages.
"""

from __future__ import annotations

from dataclasses import dataclass

from workbench.types import Value

PAGES = (1, 5, 10)  # cutoffs at which pages are looked for


@dataclass(frozen=True, slots=True)
class Family(Value):
    """A metric without its cutoff; ``cutoffs`` are those that are offered, the first one by default."""

    name: str
    title: str
    meaning: str
    provider_name: str = ""
    cutoffs: tuple[int, ...] = (10,)
    by_default: bool = True
    higher_is_better: bool = True

    @property
    def offered(self) -> tuple[str, ...]:
        """The metrics of this family that a person may choose from, such as ``ndcg@10``."""
        return tuple(f"{self.name}@{cutoff}" for cutoff in self.cutoffs)


FAMILIES = {
    family.name: family
    for family in (
        Family("ndcg", "nDCG", "gain by grade, discounted by rank, against the best possible order", "nDCG", (10, 5)),
        Family("recall", "Recall", "share of the relevant documents among the first K", "R", (10, 50)),
        Family("mrr", "MRR", "1 / rank of the first relevant document", "RR"),
        Family("map", "MAP", "mean precision at the ranks of the relevant documents", "AP", (100,)),
        Family("hit", "Hit rate", "1 where any of the first K is relevant", "Success", (1, 5, 10)),
        Family("precision", "Precision", "share of the first K that is relevant", "P", (5,)),
        Family("span-recall", "Span recall", "share of the wanted characters in the first passages", "", (5,), False),
        Family("span-precision", "Span precision", "share of the passages that is wanted", "", (5,), False),
        Family("span-iou", "Span IoU", "wanted and retrieved characters against either", "", (5,), False),
        Family("page-hit", "Page hit", "1 where one of the first K passages is from a right page", "", PAGES, False),
        Family("page-hit-within", "Page hit within", "the same, within the right document", "", PAGES, False),
    )
}
OFFERED = tuple(name for family in FAMILIES.values() if family.provider_name for name in family.offered)
DEFAULT_METRICS = tuple(family.offered[0] for family in FAMILIES.values() if family.by_default)


def family_of(metric: str) -> Family | None:
    """Return the row of a metric such as ``ndcg@10``; None for one that only an old run knows."""
    return FAMILIES.get(metric.partition("@")[0])


def metric_title(metric: str) -> str:
    """Return a metric's usual spelling: "nDCG@10"."""
    family, (name, _, cutoff) = family_of(metric), metric.partition("@")
    title = family.title if family else name.replace("-", " ").capitalize()
    return f"{title}@{cutoff}" if cutoff else title

"""A ranker: what each feature of a candidate counts, and where these weights come from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from workbench.types.value import Value


@dataclass(frozen=True, slots=True)
class Ranker(Value):
    """The weights of the strategy ``learned`` under a name, by the feature's name; they may be negative.

    ``trained_on`` is the title of the test set (several with commas), ``version`` its version, ``index`` the index it
    was asked on, ``questions`` how many were learned from. ``figures`` are nDCG@10 cross-validated ("learned"), of the
    fixed strategies on the same questions, and "p" of the paired test against "rerank"; ``note`` says more.
    """

    name: str
    weights: Mapping[str, float]
    trained_on: str = ""
    version: int = 0
    index: str = ""
    questions: int = 0
    figures: Mapping[str, float] = field(default_factory=dict)
    note: str = ""
    created_at: datetime | None = None

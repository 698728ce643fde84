"""The parts of a learned score: what each feature of a passage adds to it."""

from __future__ import annotations

from workbench.retrieval.ranker.feature_table import FEATURES
from workbench.retrieval.ranker.scoring import shares, weight_row
from workbench.retrieval.request import Request
from workbench.retrieval.why.explanation import FeatureView


def feature_views(request: Request, passage: int) -> tuple[FeatureView, ...]:
    """Return what the ranker of a request that was served made of a passage, the heaviest part first.

    Nothing where the strategy has no ranker, or the passage was no candidate.
    """
    sheet, ranker = request.sheet, request.ranker
    if sheet is None or ranker is None or passage not in sheet.ids:
        return ()
    row, weights = sheet.ids.index(passage), weight_row(ranker.weights)
    parts = shares(sheet.scaled, weights)[row]
    total = float(parts.sum()) or 1.0
    views = [
        FeatureView(
            name=feature.name,
            title=feature.title,
            why=feature.why,
            value=float(sheet.raw[row, column]),
            scaled=float(sheet.scaled[row, column]),
            weight=float(weights[column]),
            share=float(parts[column]) / total,
        )
        for column, feature in enumerate(FEATURES)
    ]
    return tuple(sorted(views, key=lambda view: -view.share))

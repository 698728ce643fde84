"""The fates of a passage, by name: apart from the rule that decides, so that a page can import them in no time."""

from __future__ import annotations

FOUND = "found"
SHOWN = "shown within another"
NOT_INDEXED = "not in the index"
NOT_IN_SCOPE = "not in scope"
NOT_RETRIEVED = "not in the first of either leg"
LOST_IN_FUSION = "lost in fusion"
LOST_IN_RERANK = "lost in rerank"
LOST_IN_STAGE = "lost in a later stage"
FATES = (FOUND, SHOWN, NOT_INDEXED, NOT_IN_SCOPE, NOT_RETRIEVED, LOST_IN_FUSION, LOST_IN_RERANK, LOST_IN_STAGE)

"""The headers of tables that begin before a passage: the names of the columns that its first rows lack."""

from __future__ import annotations

from collections.abc import Sequence

from workbench.retrieval.request import Request
from workbench.storage.ranking import document_slices
from workbench.types import Passage, as_items, as_whole


def table_headers(request: Request, passages: Sequence[Passage]) -> dict[int, str]:
    """Return the Markdown of the headers, by the passages' numbers from 1; passages that need none are left out."""
    spans = {number: as_items(hit.metadata.get("table_header")) for number, hit in enumerate(passages, start=1)}
    places = {
        number: (passages[number - 1].document_id, as_whole(span[0]), as_whole(span[1]))
        for number, span in spans.items()
        if span and as_whole(span[0]) < passages[number - 1].start
    }
    if not places:
        return {}
    with request.store.reading() as connection:
        texts = document_slices(connection, request.index.name, list(places.values()))
    return {number: text for number, text in zip(places, texts, strict=True) if text is not None}

"""From a document to its passages in one index."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from workbench.ingestion.chunking import ChunkInput, chunk
from workbench.models.encoder import Encoder, OnBatch
from workbench.storage.rows import NewPassage
from workbench.types import Index


def cut(
    index: Index,
    encoder: Encoder,
    *,
    document_id: str,
    source_id: str,
    title: str,
    text: str,
    document_type: str,
    language: str,
    pages: Sequence[Sequence[int]] = (),
    on_batch: OnBatch | None = None,
) -> list[NewPassage]:
    """Cut a document as the index asks; passages with their heading context fit the model.

    ``on_batch`` is called where cutting needs the model, after each batch, and may raise to stop.
    """
    options: dict[str, Any] = {**index.chunker_options, "limit": encoder.max_tokens}
    if index.chunker == "semantic":
        options["embed"] = lambda sentences: encoder.encode(sentences, on_batch=on_batch).vectors
    document = ChunkInput(
        title=title, text=text, document_type=document_type, pages=tuple((n, start, end) for n, start, end in pages)
    )
    passages = []
    for ordinal, span in enumerate(chunk(index.chunker, document, encoder.token_spans, options)):
        metadata: dict[str, Any] = dict(span.metadata) | {"kind": span.kind}
        if span.heading_path:
            metadata["heading_path"] = list(span.heading_path)
        if span.page is not None:
            metadata["page"] = span.page
        if span.parent is not None:
            metadata["parent"] = list(span.parent)
        passages.append(
            NewPassage(
                document_id=document_id,
                source_id=source_id,
                text=text[span.start : span.end],
                context=span.header,
                start=span.start,
                end=span.end,
                ordinal=ordinal,
                language=language,
                metadata=metadata,
            )
        )
    return passages

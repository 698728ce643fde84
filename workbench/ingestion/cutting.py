"""The cutting of a document into its passages in one index."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, overload

from workbench.ingestion.about import about_document
from workbench.ingestion.chunking import ChunkInput, CutPassage, Spans, spans_of
from workbench.models.encoder import Encoder, OnBatch
from workbench.storage.passages import NewPassage
from workbench.types import Index
from workbench.types.results import Span


@dataclass(frozen=True, slots=True)
class Passages(Sequence[NewPassage]):
    """The passages of one document, in order, each made when it is asked for: a book has tens of thousands."""

    document_id: str
    source_id: str
    text: str
    language: str
    spans: Spans
    labels: Mapping[str, object] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.spans)

    @overload
    def __getitem__(self, place: int) -> NewPassage: ...
    @overload
    def __getitem__(self, place: slice) -> list[NewPassage]: ...
    def __getitem__(self, place: int | slice) -> NewPassage | list[NewPassage]:
        if isinstance(place, slice):
            return [self[index] for index in range(*place.indices(len(self)))]
        if place < 0:
            place += len(self)
        return self._passage(place, self.spans[place])

    def _passage(self, ordinal: int, span: CutPassage) -> NewPassage:
        noted: dict[str, Any] = dict(span.metadata) | {"kind": span.kind}
        if span.heading_path:
            noted["heading_path"] = list(span.heading_path)
        if span.page is not None:
            noted["page"] = span.page
            label = self.labels.get(str(span.page))
            if isinstance(label, str) and label != str(span.page):
                noted["page_label"] = label
        if span.parent is not None:
            noted["parent"] = list(span.parent)
        return NewPassage(
            document_id=self.document_id,
            source_id=self.source_id,
            text=self.text[span.start : span.end],
            context=span.header,
            start=span.start,
            end=span.end,
            ordinal=ordinal,
            language=self.language,
            metadata=noted,
        )


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
    path: str | None = None,
    metadata: Mapping[str, object] | None = None,
    on_batch: OnBatch | None = None,
) -> Passages:
    """Cut a document as the index asks; passages with their heading context fit the model.

    ``path`` and ``metadata`` are the document's own: the words of its file name and its description go into the
    context of every passage. ``on_batch`` is called again and again, with the number of texts that went through the
    model or 0, and may raise to stop.
    """

    def token_spans(part: str) -> list[Span]:
        if on_batch is not None:
            on_batch(0)
        return encoder.token_spans(part)

    options: dict[str, Any] = {**index.chunker_options, "limit": encoder.max_tokens}
    if index.chunker == "semantic":
        options["embed"] = lambda sentences: encoder.encode(sentences, on_batch=on_batch).vectors
    document = ChunkInput(
        title=title,
        text=text,
        document_type=document_type,
        pages=tuple((n, start, end) for n, start, end in pages),
        about=about_document(title, path, metadata or {}),
    )
    spans = spans_of(index.chunker, document, token_spans, options)
    labels = (metadata or {}).get("page_labels")
    return Passages(document_id, source_id, text, language, spans, labels if isinstance(labels, Mapping) else {})

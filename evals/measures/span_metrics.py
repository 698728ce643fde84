"""Token-level metrics over character spans: how much of what answers was retrieved, and how much else with it.

As in chunking_evaluation (Smith and Troynikov, "Evaluating Chunking Strategies for Retrieval", 2024), per question:

    recall    = |retrieved and relevant| / |relevant|
    precision = |retrieved and relevant| / sum of the lengths of all retrieved passages (overlap counts twice)
    IoU       = |retrieved and relevant| / (that sum + relevant characters that were missed)

where |...| counts characters of the union. Precision-omega is the IoU of every passage that touches a relevant
span: what a perfect retriever would reach with these passages.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

Range = tuple[str, int, int]  # document, start, end


def span_measures(relevant: Iterable[Range], retrieved: Sequence[Range]) -> dict[str, float]:
    """Return recall, precision and IoU of the retrieved passages; all 0 where nothing is relevant."""
    wanted = _union(relevant)
    length = _length(wanted)
    hit = _length(_intersection(wanted, _union(retrieved)))
    total = sum(end - start for _, start, end in retrieved)
    return {
        "span-recall": hit / length if length else 0.0,
        "span-precision": hit / total if total else 0.0,
        "span-iou": hit / (total + length - hit) if total + length else 0.0,
    }


def precision_omega(relevant: Iterable[Range], passages: Iterable[Range]) -> float:
    """Return the IoU of all passages that touch a relevant span."""
    wanted = _union(relevant)
    touching = [passage for passage in passages if _length(_intersection(wanted, _union([passage])))]
    return span_measures(relevant, touching)["span-iou"]


def _union(ranges: Iterable[Range]) -> dict[str, list[tuple[int, int]]]:
    """Return disjoint, sorted stretches by document."""
    by_document: dict[str, list[tuple[int, int]]] = {}
    for document, start, end in sorted(ranges):
        stretches = by_document.setdefault(document, [])
        if stretches and start <= stretches[-1][1]:
            stretches[-1] = (stretches[-1][0], max(end, stretches[-1][1]))
        elif end > start:
            stretches.append((start, end))
    return by_document


def _intersection(
    a: Mapping[str, Sequence[tuple[int, int]]], b: Mapping[str, Sequence[tuple[int, int]]]
) -> dict[str, list[tuple[int, int]]]:
    return {
        document: [
            (max(start, other_start), min(end, other_end))
            for start, end in a[document]
            for other_start, other_end in b[document]
            if max(start, other_start) < min(end, other_end)
        ]
        for document in a.keys() & b.keys()
    }


def _length(stretches: Mapping[str, Sequence[tuple[int, int]]]) -> int:
    return sum(end - start for spans in stretches.values() for start, end in spans)

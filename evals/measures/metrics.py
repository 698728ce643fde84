"""Ranking metrics from ir-measures, which calls trec_eval's own code, and metrics for spans and pages."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any, NotRequired, TypedDict

from workbench.errors import InvalidInput, list_choices
from workbench.runtime import check_extra
from workbench.types import PageSpan, Value

# Available metrics

PAGE_CUTOFFS = (1, 5, 10)  # cutoffs of page metrics
PAGE_METRIC = "page-hit@5"  # the metric that compares strategies if pages were judged


@dataclass(frozen=True, slots=True)
class Family(Value):
    """A metric without its cutoff; ``cutoffs`` are the available ones, the first is the default; () if it has none."""

    name: str
    title: str
    meaning: str
    provider_name: str = ""
    cutoffs: tuple[int, ...] = (10,)
    by_default: bool = True

    @property
    def metric_names(self) -> tuple[str, ...]:
        """The available metrics of this family, such as ``ndcg@10``."""
        return tuple(f"{self.name}@{cutoff}" for cutoff in self.cutoffs) or (self.name,)


FAMILIES = {
    family.name: family
    for family in (
        Family("ndcg", "nDCG", "gain by grade, discounted by rank, relative to the ideal order", "nDCG", (10, 5)),
        Family("recall", "Recall", "share of the relevant documents among the first K", "R", (10, 50)),
        Family("mrr", "MRR", "1 / rank of the first relevant document", "RR"),
        Family("map", "MAP", "mean precision at the ranks of the relevant documents", "AP", (100,)),
        Family("hit", "Hit rate", "1 if any of the first K is relevant", "Success", (1, 5, 10)),
        Family("precision", "Precision", "share of the first K that is relevant", "P", (5,)),
        Family(
            "bpref",
            "bpref",
            "relevant above judged irrelevant documents; unjudged ones are ignored",
            "Bpref",
            (),
            False,
        ),
        Family("infap", "infAP", "MAP, estimated from a judged sample of the pool", "infAP", (), False),
        Family("span-recall", "Span recall", "share of the relevant characters in the first passages", "", (5,), False),
        Family("span-precision", "Span precision", "share of the passages that is relevant", "", (5,), False),
        Family("span-iou", "Span IoU", "relevant and retrieved characters as a share of either", "", (5,), False),
        Family(
            "page-hit", "Page hit", "1 if one of the first K passages is from a relevant page", "", PAGE_CUTOFFS, False
        ),
        Family("page-hit-within", "Page hit within", "the same, within the right document", "", PAGE_CUTOFFS, False),
    )
}
OFFERED_METRICS = tuple(name for family in FAMILIES.values() if family.provider_name for name in family.metric_names)
DEFAULT_METRICS = tuple(family.metric_names[0] for family in FAMILIES.values() if family.by_default)


def metric_title(metric: str) -> str:
    """Return a metric's usual spelling: "nDCG@10"."""
    name, _, cutoff = metric.partition("@")
    family = FAMILIES.get(name)  # None if it no longer exists
    title = family.title if family else name.replace("-", " ").capitalize()
    return f"{title}@{cutoff}" if cutoff else title


PROVIDER_NAMES = {name: row.provider_name for name, row in FAMILIES.items() if row.provider_name}
MAX_CUTOFF = 1000
MAX_RANKING_DEPTH = 100  # of metrics without a cutoff
_METRIC_PATTERN = re.compile(r"([a-z]+)(?:@([1-9]\d{0,3}))?")

Qrels = Mapping[str, Mapping[str, int]]
Rankings = Mapping[str, Sequence[str]]  # question id -> document keys, best first


def check_metrics(names: Sequence[str]) -> tuple[str, ...]:
    """Return the metrics' names. Raises InvalidInput for one that is not FAMILY@K, or a name without a cutoff."""
    for name in names:
        match = _METRIC_PATTERN.fullmatch(name)
        family = match and FAMILIES.get(match[1])
        if not match or not family or not family.provider_name or not _has_valid_cutoff(family, match[2]):
            valid = list_choices((f"{key}@K" if FAMILIES[key].cutoffs else key for key in PROVIDER_NAMES), 20)
            raise InvalidInput(f"Unknown metric {name!r}; use {valid} with K from 1 to {MAX_CUTOFF}.")
    if not names:
        raise InvalidInput(f"No metric was given; use some of {list_choices(DEFAULT_METRICS)}.")
    return tuple(dict.fromkeys(names))


def _has_valid_cutoff(family: Family, cutoff: str | None) -> bool:
    return int(cutoff) <= MAX_CUTOFF if cutoff and family.cutoffs else not cutoff and not family.cutoffs


def max_ranking_depth(names: Sequence[str]) -> int:
    """Return the number of documents that these metrics need."""
    return max(int(name.partition("@")[2] or MAX_RANKING_DEPTH) for name in names)


def rank_documents(scores: Mapping[str, float]) -> list[str]:
    """Return documents as trec_eval ranks them: by descending score, then by descending document id."""
    return sorted(scores, key=lambda document: (scores[document], document), reverse=True)


def measure_rankings(
    qrels: Qrels, rankings: Rankings, names: Sequence[str] = DEFAULT_METRICS
) -> dict[str, dict[str, float]]:
    """Return {metric: {question id: value in 0..1}} for every question with a relevant document.

    A missing or empty ranking scores 0. Grades are used as gains (as in trec_eval's nDCG);
    for other metrics, grades above 0 are relevant. A document that is ranked twice counts only at its better rank.
    """
    check_extra("eval")
    import ir_measures

    names = check_metrics(names)
    judged = {key: dict(grades) for key, grades in qrels.items() if any(grade > 0 for grade in grades.values())}
    values: dict[str, dict[str, float]] = {name: dict.fromkeys(judged, 0.0) for name in names}
    # Distinct scores, so that no provider has to break ties.
    run = {
        key: {document: -float(place) for place, document in enumerate(dict.fromkeys(rankings[key]))}
        for key in judged
        if rankings.get(key)
    }
    if not run:
        return values
    parts = {name: name.partition("@") for name in names}
    by_measure: dict[Any, str] = {
        ir_measures.parse_measure(f"{PROVIDER_NAMES[family]}{at}{cutoff}"): name
        for name, (family, at, cutoff) in parts.items()
    }
    for metric in ir_measures.iter_calc(list(by_measure), judged, run):
        values[by_measure[metric.measure]][metric.query_id] = float(metric.value)
    return values


def measure_unjudged(qrels: Qrels, rankings: Rankings, depth: int) -> float:
    """Return the mean share (0..1) of the first ``depth`` documents that have no judgment (or a negative grade)."""
    shares: list[float] = []
    for key, grades in qrels.items():
        first = list(dict.fromkeys(rankings.get(key, ())))[:depth]
        shares.append(sum(grades.get(document, -1) < 0 for document in first) / len(first) if first else 0.0)
    return fmean(shares) if shares else 0.0


def measure_bounds(qrels: Qrels, rankings: Rankings, metric: str) -> tuple[float, float]:
    """Return the means of a metric if no unjudged document among the first K were relevant, and if all were.

    The lower one is first. A relevant document has the highest grade of its question. For nDCG, more relevant documents
    also raise the ideal order, so the mean can fall.
    """
    depth = max_ranking_depth([metric])
    filled: dict[str, dict[str, int]] = {}
    for key, grades in qrels.items():
        first = list(dict.fromkeys(rankings.get(key, ())))[:depth]
        top = max([1, *grades.values()])
        judged = {document: grade for document, grade in grades.items() if grade >= 0}
        filled[key] = dict.fromkeys(first, top) | judged
    low, high = sorted(mean_values(measure_rankings(given, rankings, [metric]))[metric] for given in (qrels, filled))
    return low, high


def mean_values(values: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """Return each metric's mean over the questions; 0 if there are none."""
    return {name: fmean(by_question.values()) if by_question else 0.0 for name, by_question in values.items()}


# Judged pages

PagePlace = tuple[str, int]  # document key, page counted from 1


def measure_page_hit(passages: Sequence[Collection[PagePlace]], truth: Collection[PagePlace], cutoff: int) -> float:
    """Return 1 if one of the first ``cutoff`` passages is on a relevant page, else 0.

    A passage is given by its pages. If page 7 of document a is relevant and the passages are on (a, 3), (b, 7) and (a,
    7), the third is a hit: @1 and @2 are 0, and @3 is 1.
    """
    return float(any(place in truth for places in passages[:cutoff] for place in places))


def find_pages(spans: Sequence[PageSpan], start: int, end: int) -> tuple[int, ...]:
    """Return the pages of the characters from ``start`` to ``end``."""
    return tuple(page for page, begin, stop in spans if begin < end and start < stop)


# Metrics over character spans

Range = tuple[str, int, int]  # document, start, end


def measure_spans(relevant: Iterable[Range], retrieved: Sequence[Range]) -> dict[str, float]:
    """Return recall, precision and IoU of the retrieved passages; all 0 if nothing is relevant."""
    wanted, found = list(relevant), list(retrieved)
    length, covered = _count_characters(wanted), _count_characters(found)
    hit, total = length + covered - _count_characters(wanted + found), sum(end - start for _, start, end in found)
    return {
        "span-recall": hit / length if length else 0.0,
        "span-precision": hit / total if total else 0.0,
        "span-iou": hit / (total + length - hit) if total + length else 0.0,
    }


def _count_characters(ranges: Iterable[Range]) -> int:
    """Return how many characters are in at least one of the ranges."""
    count, reached = 0, ("", 0)
    for document, start, end in sorted(ranges):
        begin = max((document, start), reached)
        if (document, end) > begin:
            count, reached = count + end - begin[1], (document, end)
    return count


# Stored verdicts


class RagasSummary(TypedDict):
    """One ragas metric of a run: its mean (None if nothing was measured), the question counts, and reasons."""

    mean: float | None
    measured: int
    not_measured: int
    reasons: dict[str, int]


def list_reasons(judged: Iterable[Mapping[str, RagasSummary]]) -> list[str]:
    """Return the reasons why questions could not be measured, with counts over all runs."""
    counts: Counter[tuple[str, str]] = Counter()
    for summaries in judged:
        for name, summary in summaries.items():
            counts.update({(name, reason): times for reason, times in summary["reasons"].items()})
    return [f"{name.replace('_', ' ')}, {times:,} not measured: {reason}" for (name, reason), times in counts.items()]


class JudgeAgreement(TypedDict):
    """Agreement of a language model with a test set: the share of equal verdicts, and Cohen's kappa (0 is chance)."""

    pairs: int  # judgments that both graded
    agreement: float | None
    kappa: float | None
    model: str
    not_graded: int
    reasons: dict[str, int]  # for missing grades, with counts


class StoredVerdict(TypedDict):
    """What a judge stored on a question of a run."""

    question_id: str
    scores: dict[str, float | str]  # by metric; the reason in place of a missing score
    grades: NotRequired[list[tuple[int, int | str]]]  # the test set's and the LLM's, or why it gave none


class Verdicts(TypedDict, total=False):
    """All verdicts on a run other than its metrics; parts that were not requested are absent."""

    ragas: dict[str, RagasSummary]
    prompts: str  # "built-in" or "ragas": whose prompts measured the metrics with an LLM
    judge: JudgeAgreement
    answers: Value  # ``AnswerScores``, which are computed from the stored answers

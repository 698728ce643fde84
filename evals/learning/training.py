"""Learning a ranker from judged questions: cross-validated next to fixed strategies, with the test that judges it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from evals.experiments.runs import StrategyRun
from evals.gateway import IndexedCorpus
from evals.learning.fitting import (
    FittedWeights,
    QuestionSheet,
    fit_best,
    make_rerank_prior,
    make_sheets,
    rank_by_weights,
    rank_documents,
    split_folds,
)
from evals.measures.metrics import mean_values, measure_rankings
from evals.measures.significance import Difference, compare_pairs, describe_tie
from evals.test_set import TestSet
from workbench.errors import Cancelled, InvalidInput
from workbench.retrieval.parameters import DEFAULT_RANKER, RANKER
from workbench.retrieval.ranker import NAMES, FeatureArray, load_default_ranker, make_weight_row
from workbench.retrieval.strategies import DEFAULT_STRATEGY
from workbench.types import OnProgress, Progress, Ranker, ShouldStop, Value
from workbench.workbench import Workbench

MIN_JUDGED_QUESTIONS = 30  # judged questions from which something can be learned
FOLD_COUNT = 5
TRAINING_METRIC = "ndcg@10"
LEARNED_STRATEGY = "learned"
TITLE_SEPARATOR = ", "  # of the titles of test sets
WEIGHT_DECIMALS = 6  # of the weights that are kept


@dataclass(frozen=True, slots=True)
class TrainingResult(Value):
    """The outcome of training: the ranker, its cross-validated figures next to the fixed strategies', and the verdict.

    ``figures`` are nDCG@10, 0..1: "learned" of each question by weights that were trained without its fold, "default"
    by the ranker that comes with the workbench. ``difference`` compares the first with rerank, question by question.
    """

    ranker: Ranker
    questions: int
    figures: Mapping[str, float]
    difference: Difference
    is_worth_it: bool
    verdict: str
    scope: str = ""  # the documents that were searched, as text


@dataclass(frozen=True)
class Material:
    """The questions of one or more test sets with their judgments; ``version`` is the first one's."""

    titles: str
    version: int
    index: str
    sheets: Sequence[QuestionSheet]
    qrels: Mapping[str, Mapping[str, int]]
    scope: str = ""  # the documents that were searched, as text


def check_enough(title: str, questions: int) -> None:
    """Raise InvalidInput, saying how many are missing, where a test set has too few judged questions."""
    if questions < MIN_JUDGED_QUESTIONS:
        missing = "1 is" if MIN_JUDGED_QUESTIONS - questions == 1 else f"{MIN_JUDGED_QUESTIONS - questions} are"
        raise InvalidInput(
            f"{title!r} has {questions} judged questions and learning needs {MIN_JUDGED_QUESTIONS}: "
            f"{missing} missing; judge hits in "
            "Compare, or import judgments."
        )


def was_trained_on(ranker: Ranker, titles: str) -> bool:
    """Return whether a ranker was trained on one of these test sets, by their titles with commas between."""
    return not set(ranker.trained_on.split(TITLE_SEPARATOR)).isdisjoint(titles.split(TITLE_SEPARATOR))


def make_priors(*, afresh: bool) -> list[FeatureArray]:
    """Return the weights that training starts from: rerank's, and unless ``afresh`` those that come with this."""
    return [make_rerank_prior()] if afresh else [make_rerank_prior(), make_weight_row(load_default_ranker().weights)]


def read_material(
    wb: Workbench,
    test_sets: Sequence[tuple[TestSet, IndexedCorpus]],
    index: str,
    *,
    on_progress: OnProgress | None = None,
    should_stop: ShouldStop | None = None,
) -> Material:
    """Ask every judged question once, of corpora that are cut and embedded like ``index``.

    Raises InvalidInput if there are fewer than 30, or none with a relevant document that is found; Cancelled."""
    titles = TITLE_SEPARATOR.join(test_set.name for test_set, _ in test_sets)
    check_enough(titles, sum(len(test_set.answerable) for test_set, _ in test_sets))
    sheets: list[QuestionSheet] = []
    qrels: dict[str, dict[str, int]] = {}
    for number, (test_set, corpus) in enumerate(test_sets):
        own = make_sheets(wb, test_set, corpus, on_progress=on_progress, should_stop=should_stop)
        sheets += [replace(sheet, question_id=f"{number} {sheet.question_id}") for sheet in own]
        qrels |= {f"{number} {question.id}": test_set.qrels[question.id] for question in test_set.answerable}
    if not any(sheet.grades.any() for sheet in sheets):
        raise InvalidInput(
            f"No search for a question of {titles!r} finds a document that was judged relevant, so nothing can be "
            "learned; see whether these documents are still there."
        )
    scope = ", ".join(dict.fromkeys(test_set.over for test_set, _ in test_sets))
    return Material(titles, test_sets[0][0].version, index, sheets, qrels, scope)


def train(
    material: Material,
    name: str,
    *,
    afresh: bool = False,
    on_progress: OnProgress | None = None,
    should_stop: ShouldStop | None = None,
) -> TrainingResult:
    """Cross-validate and train on what was read; the ranker is not kept (``wb.rankers.save`` does that).

    Weights are drawn towards those of rerank or of the ranker that comes with the workbench, whichever does better on
    questions left out; ``afresh`` leaves the second one out, as does a test set that it was trained on, whose figures
    would not be of unseen questions. Raises Cancelled.
    """
    afresh = afresh or was_trained_on(load_default_ranker(), material.titles)
    sheets, priors = material.sheets, make_priors(afresh=afresh)
    rankings = cross_validate(sheets, priors, on_progress=on_progress, should_stop=should_stop)
    if afresh:  # what comes with the workbench has no part in it
        del rankings[DEFAULT_RANKER]
    fitted = fit_best(sheets, priors)
    values = {
        strategy: measure_rankings(material.qrels, own, [TRAINING_METRIC])[TRAINING_METRIC]
        for strategy, own in rankings.items()
    }
    return _make_result(name, material, fitted, values)


def cross_validate(
    sheets: Sequence[QuestionSheet],
    priors: Sequence[FeatureArray],
    *,
    on_progress: OnProgress | None = None,
    should_stop: ShouldStop | None = None,
) -> dict[str, dict[str, list[str]]]:
    """Return strategy -> question id -> documents: the fixed ones, and "learned" by weights trained without its fold.

    Raises Cancelled.
    """
    rankings: dict[str, dict[str, list[str]]] = {
        strategy: {sheet.question_id: rank_documents(sheet, sheet.orders[strategy]) for sheet in sheets}
        for strategy in ("hybrid", DEFAULT_STRATEGY)
    }
    with_shipped = make_weight_row(load_default_ranker().weights)
    rankings[DEFAULT_RANKER] = {sheet.question_id: rank_by_weights(sheet, with_shipped) for sheet in sheets}
    learned: dict[str, list[str]] = {}
    for number, left_out in enumerate(split_folds(len(sheets), FOLD_COUNT), start=1):
        if should_stop is not None and should_stop():
            raise Cancelled("Stopped; nothing was learned.")
        away = set(left_out)
        fitted = fit_best([sheet for place, sheet in enumerate(sheets) if place not in away], priors)
        learned |= {sheets[at].question_id: rank_by_weights(sheets[at], fitted.weights) for at in left_out}
        if on_progress is not None:
            on_progress(Progress(number, FOLD_COUNT, "cross-validating"))
    return {LEARNED_STRATEGY: learned, **rankings}


def _make_result(
    name: str, material: Material, fitted: FittedWeights, values: Mapping[str, Mapping[str, float]]
) -> TrainingResult:
    [difference] = compare_pairs(
        TRAINING_METRIC, [(LEARNED_STRATEGY, values[LEARNED_STRATEGY], DEFAULT_STRATEGY, values[DEFAULT_STRATEGY])]
    )
    figures = {strategy: round(value, 4) for strategy, value in mean_values(values).items()}
    questions = len(values[LEARNED_STRATEGY])
    ranker = Ranker(
        name=name,
        weights=dict(zip(NAMES, (round(float(weight), WEIGHT_DECIMALS) for weight in fitted.weights), strict=True)),
        trained_on=material.titles,
        version=material.version,
        index=material.index,
        questions=questions,
        figures=figures | {"p": difference.p},
        note=f"drawn towards {('rerank', 'the default ranker')[fitted.prior]}, penalty {fitted.penalty:g}",
    )
    is_worth_it = difference.significant and difference.difference > 0
    return TrainingResult(
        ranker, questions, figures, difference, is_worth_it, describe_verdict(difference), material.scope
    )


def describe_verdict(difference: Difference) -> str:
    """Say in a sentence whether a ranker is worth promoting, by its comparison with rerank."""
    if difference.is_tie:
        return f"It is not worth promoting: it ties with rerank, {describe_tie(difference)} it did not see."
    how = (
        f"{difference.difference:+.4f} nDCG@10 against rerank on questions that it did not see "
        f"(p = {difference.p:.3f}; {difference.wins} won, {difference.losses} lost, {difference.ties} alike)"
    )
    if not difference.significant:
        return f"It is not worth promoting: {how} may be chance; judge more questions."
    if difference.difference < 0:
        return f"It is not worth promoting: {how}; rerank is better here."
    return f"It is worth promoting: {how}."


# Rankers trained on the measured questions


def find_rankers_trained_on(wb: Workbench, title: str, runs: Iterable[StrategyRun]) -> list[str]:
    """Return the rankers of these runs that a test set of this title taught, each once; deleted ones are not known."""
    used = {str(run.parameters.get(RANKER.name, DEFAULT_RANKER)) for run in runs if run.strategy == LEARNED_STRATEGY}
    return [ranker.name for ranker in wb.rankers.list() if ranker.name in used and was_trained_on(ranker, title)]


def describe_seen_ranker(ranker: str) -> str:
    """Say what such a figure is worth."""
    return f"The ranker {ranker!r} was trained on these questions: on others it will reach less."

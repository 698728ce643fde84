"""Training a ranker on judged questions, with cross-validation against fixed strategies."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from evals.experiments.runs import StrategyRun
from evals.gateway import IndexedCorpus, index_corpus
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
from evals.test_sets.store import load_named_test_set
from workbench.errors import Cancelled, InvalidInput
from workbench.retrieval.parameters import DEFAULT_RANKER, RANKER
from workbench.retrieval.ranker import NAMES, FeatureArray, load_default_ranker, make_weight_row
from workbench.retrieval.strategies import DEFAULT_STRATEGY
from workbench.types import OnProgress, Progress, Ranker, Scope, ShouldStop, Value
from workbench.workbench import Workbench

MIN_JUDGED_QUESTIONS = 30  # minimum of judged questions
FOLD_COUNT = 5
TRAINING_METRIC = "ndcg@10"
LEARNED_STRATEGY = "learned"
TITLE_SEPARATOR = ", "  # between titles of test sets
WEIGHT_DECIMALS = 6  # of stored weights


@dataclass(frozen=True, slots=True)
class TrainingResult(Value):
    """The result of training: the ranker, its cross-validated scores and those of fixed strategies, and the verdict.

    ``figures`` are nDCG@10, 0..1: "learned" by weights trained without the question's fold, "default"
    by the shipped ranker. ``difference`` compares the first with rerank, paired by question.
    """

    ranker: Ranker
    questions: int
    figures: Mapping[str, float]
    difference: Difference
    is_worth_it: bool
    verdict: str
    scope: str = ""  # the searched documents, as text


@dataclass(frozen=True)
class Material:
    """Judged questions of one or more test sets; ``version`` is the first one's."""

    titles: str
    version: int
    index: str
    sheets: Sequence[QuestionSheet]
    qrels: Mapping[str, Mapping[str, int]]
    scope: str = ""  # the searched documents, as text


def check_enough(title: str, questions: int) -> None:
    """Raise InvalidInput if a test set has too few judged questions."""
    if questions < MIN_JUDGED_QUESTIONS:
        raise InvalidInput(
            f"{title!r} has {questions} judged questions; training needs {MIN_JUDGED_QUESTIONS}. Judge "
            f"{MIN_JUDGED_QUESTIONS - questions} more in Compare, or import judgments."
        )


def has_seen_test_set(ranker: Ranker, titles: str) -> bool:
    """Return whether a ranker was trained on one of these test sets (comma-separated titles)."""
    return not set(ranker.trained_on.split(TITLE_SEPARATOR)).isdisjoint(titles.split(TITLE_SEPARATOR))


def make_priors(*, afresh: bool) -> list[FeatureArray]:
    """Return the priors for training: the weights of rerank and, unless ``afresh``, the shipped ones."""
    return [make_rerank_prior()] if afresh else [make_rerank_prior(), make_weight_row(load_default_ranker().weights)]


def read_material(
    wb: Workbench,
    test_sets: Sequence[tuple[TestSet, IndexedCorpus]],
    index: str,
    *,
    on_progress: OnProgress | None = None,
    should_stop: ShouldStop | None = None,
) -> Material:
    """Ask every judged question once, in corpora indexed like ``index``.

    Raises InvalidInput for fewer than 30 questions, or if no relevant document is found; Cancelled."""
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
            f"No relevant document was found for any question of {titles!r}, so there is nothing to train on; check "
            "that the judged documents still exist."
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
    """Cross-validate and train; the ranker is not stored (see ``wb.rankers.save``).

    Weights are regularised towards those of rerank or of the shipped ranker, whichever does better on held-out
    questions. The shipped ranker is excluded by ``afresh``, and for test sets that it was trained on, because it has
    seen their questions. Raises Cancelled.
    """
    afresh = afresh or has_seen_test_set(load_default_ranker(), material.titles)
    sheets, priors = material.sheets, make_priors(afresh=afresh)
    rankings = cross_validate(sheets, priors, on_progress=on_progress, should_stop=should_stop)
    if afresh:  # without the shipped ranker
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
    """Return documents by strategy and question: fixed strategies, and "learned" with weights trained on other folds.

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
        fitted = fit_best([sheet for place, sheet in enumerate(sheets) if place not in left_out], priors)
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
        note=f"prior {('rerank', 'the default ranker')[fitted.prior]}, penalty {fitted.penalty:g}",
    )
    is_worth_it = difference.significant and difference.difference > 0
    return TrainingResult(
        ranker, questions, figures, difference, is_worth_it, describe_verdict(difference), material.scope
    )


def describe_verdict(difference: Difference) -> str:
    """Return a sentence on whether a ranker is worth promoting, based on its comparison with rerank."""
    if difference.is_tie:
        return f"Not worth promoting: ties with rerank, {describe_tie(difference)} that it was not trained on."
    how = (
        f"{difference.difference:+.4f} nDCG@10 against rerank on questions that it was not trained on "
        f"(p = {difference.p:.3f}; {difference.wins} won, {difference.losses} lost, {difference.ties} tied)"
    )
    if not difference.significant:
        return f"Not worth promoting: {how} may be chance; judge more questions."
    if difference.difference < 0:
        return f"Not worth promoting: {how}; rerank is better here."
    return f"Worth promoting: {how}."


# Rankers trained on the measured questions


def find_trained_rankers(wb: Workbench, title: str, runs: Iterable[StrategyRun]) -> list[str]:
    """Return the distinct rankers of these runs that were trained on the test set; deleted ones are unknown."""
    used = {str(run.parameters.get(RANKER.name, DEFAULT_RANKER)) for run in runs if run.strategy == LEARNED_STRATEGY}
    return [ranker.name for ranker in wb.rankers.list() if ranker.name in used and has_seen_test_set(ranker, title)]


def describe_seen_ranker(ranker: str) -> str:
    """Return the warning for a ranker that was trained on the measured questions."""
    return f"The ranker {ranker!r} was trained on these questions: expect lower scores on others."


# Training by the names of test sets

DEFAULT_RANKER_NAME = "learned here"  # default name of a trained ranker


def learn(
    wb: Workbench,
    test_sets: str | Sequence[str],
    name: str,
    *,
    index: str | None = None,
    scope: Scope | None = None,
    afresh: bool = False,
    on_progress: OnProgress | None = None,
    should_stop: ShouldStop | None = None,
) -> TrainingResult:
    """Train a ranker on stored test sets (title or id), folders or the sample; ``wb.rankers.save`` stores it.

    ``scope`` replaces that of the stored test sets.

    Raises:
        InvalidInput: No such test set, or fewer than 30 judged questions. NotFound: No such index. Cancelled.
        ScopeError: An unknown name in the scope, or a part of a test set's scope has been deleted.
    """
    given = [load_named_test_set(wb, key, scope) for key in ([test_sets] if isinstance(test_sets, str) else test_sets)]
    named = list({(test_set.name, test_set.questions_hash): test_set for test_set in given}.values())  # each once
    check_enough(", ".join(test_set.name for test_set in named), sum(len(test_set.answerable) for test_set in named))
    indexed = [
        (test_set, index_corpus(wb, test_set, index, on_progress=on_progress, should_stop=should_stop))
        for test_set in named
    ]
    material = read_material(wb, indexed, wb.corpus.index(index).name, on_progress=on_progress, should_stop=should_stop)
    return train(material, name, afresh=afresh, on_progress=on_progress, should_stop=should_stop)

"""Training a ranker: it finds planted features, is deterministic, judges itself fairly, and needs enough data."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest

from benchmarks.added import format_table, measure_features, measure_test_set
from evals.experiments.runs import run_strategies as run_strategies
from evals.gateway import index_corpus
from evals.learning.fitting import (
    QuestionSheet,
    fit_best,
    fit_weights,
    make_rerank_prior,
    make_sheets,
    measure_ndcg,
    rank_by_weights,
)
from evals.learning.training import (
    Material,
    check_enough,
    cross_validate,
    describe_verdict,
    has_seen_test_set,
    learn,
    make_priors,
    train,
)
from evals.measures.significance import compare_pairs
from evals.test_set import TestSet
from evals.test_sets.folders import load_test_set
from tests.evals.conftest import WriteTestSet
from workbench import Workbench
from workbench.errors import Cancelled, InvalidInput, NotFound
from workbench.retrieval.ranker import NAMES, load_default_ranker

PLANTED = NAMES.index("title")
NUMBERS = range(36)
# The decoys contain the question's word three times in a short text; the answers contain it once in a long one.
LONG = "among the many other things that are kept in these rooms there is also an entry of the year "
TEXTS = {f"long{n}": (f"Entry {n}", f"{LONG} zq{n}x " + LONG * 3) for n in NUMBERS}
TEXTS |= {f"short{n}": (f"Note {n}", f"The archive: zq{n}x, zq{n}x and zq{n}x.") for n in NUMBERS}
ASKED = {f"q{n}": (f"Where in the archive is zq{n}x?", {f"long{n}": 1}) for n in NUMBERS}


def sheets(count: int = 60) -> list[QuestionSheet]:
    """Return questions whose relevant document has the highest value of one feature and random values of others."""
    rng = np.random.default_rng(7)
    made: list[QuestionSheet] = []
    for number in range(count):
        scaled = rng.random((8, len(NAMES)))
        relevant = int(scaled[:, PLANTED].argmax())
        documents = tuple(f"d{row}" for row in range(8))
        order = tuple(int(row) for row in np.argsort(-scaled[:, 0]))
        grades = np.eye(8)[relevant]
        orders = {"hybrid": order, "rerank": order}
        made.append(QuestionSheet(f"q{number}", documents, scaled, grades, np.ones(8, dtype=bool), orders))
    return made


@pytest.fixture
def test_set(beir: WriteTestSet) -> TestSet:
    return load_test_set(beir(TEXTS, ASKED, name="archive"))


def test_the_planted_feature_is_the_one_that_gains_when_it_is_added() -> None:
    made = sheets()
    judged = {sheet.question_id: {key: int(grade) for key, grade in zip(sheet.documents, sheet.grades, strict=True)}
              for sheet in made}  # fmt: skip
    added = measure_features(made, judged)
    assert [one.name for one in added] == list(NAMES[1:])
    best = max(added, key=lambda one: one.change)
    assert best.name == "title" and best.change > 0
    lines = format_table({"one": added, "two": added}).split("\n")
    assert lines[0] == "| added | one | two |" and len(lines) == 2 + len(added)
    assert f"| {best.why} | {1000 * best.change:+.1f} | {1000 * best.change:+.1f} |" in lines


def test_what_features_add_is_measured_on_a_folder(wb: Workbench, beir: WriteTestSet) -> None:
    added = {one.name: one.change for one in measure_test_set(wb, str(beir(TEXTS, ASKED, name="archive")))}
    assert set(added) == set(NAMES[1:])
    assert added["length"] >= 0  # the long ones are the answers; the short ones rank first by keywords


def test_a_planted_feature_is_found_and_orders_questions_that_were_not_seen() -> None:
    weights = fit_best(sheets()[:40], [make_rerank_prior()]).weights
    assert NAMES[int(np.abs(weights - make_rerank_prior()).argmax())] == "title" and weights[PLANTED] > 0
    unseen = sheets()[40:]
    assert np.mean([measure_ndcg(sheet, weights) for sheet in unseen]) > 0.9
    assert np.mean([measure_ndcg(sheet, make_rerank_prior()) for sheet in unseen]) < 0.7


def test_the_same_questions_give_the_same_weights() -> None:
    first, second = (fit_best(sheets(), [make_rerank_prior()]) for _ in range(2))
    assert first.weights.tolist() == second.weights.tolist() and first.penalty == second.penalty


def test_questions_that_teach_nothing_leave_the_weights_where_they_start() -> None:
    nothing = [
        QuestionSheet(s.question_id, s.documents, s.scaled, np.zeros(8), s.eligible, s.orders) for s in sheets(5)
    ]
    assert fit_weights(nothing, make_rerank_prior(), 1.0).tolist() == make_rerank_prior().tolist()


def test_a_document_is_taught_by_the_passage_that_was_judged() -> None:
    """Both passages are of the relevant document; only the second one touches the judged span."""
    scaled = np.zeros((3, len(NAMES)))
    scaled[0, PLANTED], scaled[1, NAMES.index("start")] = 1.0, 1.0
    grades, eligible = np.array([1.0, 1.0, 0.0]), np.array([False, True, True])
    sheet = QuestionSheet("q", ("a", "a", "b"), scaled, grades, eligible, {})
    weights = dict(zip(NAMES, fit_weights([sheet] * 20, make_rerank_prior(), 1.0), strict=True))
    assert weights["start"] > 0.5 and weights["title"] == pytest.approx(0)


def test_a_language_may_count_for_a_passage_and_never_against_it() -> None:
    column, other = NAMES.index("language"), NAMES.index("start")
    scaled = np.zeros((2, len(NAMES)))
    scaled[1, column], scaled[0, other] = 1.0, 1.0
    disliked = QuestionSheet("q", ("a", "b"), scaled, np.array([1.0, 0.0]), np.ones(2, dtype=bool), {})
    liked = QuestionSheet("q", ("a", "b"), scaled, np.array([0.0, 1.0]), np.ones(2, dtype=bool), {})
    against, for_it = (fit_weights([sheet] * 20, make_rerank_prior(), 1.0) for sheet in (disliked, liked))
    assert against[column] == 0.0 and against[other] > 0.5
    assert for_it[column] > 0.5


def test_figures_are_of_weights_that_did_not_see_the_question() -> None:
    """The label of each question is random, so nothing learned from the others can help."""
    rng = np.random.default_rng(3)
    random = [
        QuestionSheet(s.question_id, s.documents, s.scaled, np.eye(8)[rng.integers(8)], s.eligible, s.orders)
        for s in sheets(80)
    ]
    rankings = cross_validate(random, [make_rerank_prior()])
    found = np.mean([rankings["learned"][s.question_id].index(s.documents[int(s.grades.argmax())]) for s in random])
    assert set(rankings) == {"learned", "default", "hybrid", "rerank"}
    assert 2.5 < found < 4.5  # of eight places by chance 3.5


def test_a_ranker_is_trained_stored_and_used(wb: Workbench, test_set: TestSet, beir: WriteTestSet) -> None:
    learned = learn(wb, str(beir(TEXTS, ASKED, name="archive")), "long texts")
    assert learned.figures["learned"] > learned.figures["rerank"] + 0.2
    assert learned.is_worth_it and learned.verdict.startswith("Worth promoting: +")
    assert learned.ranker.weights["length"] > 0 or learned.ranker.weights["words"] < 0
    assert (learned.ranker.trained_on, learned.ranker.questions, learned.ranker.index) == ("archive", 36, "main")
    kept = wb.rankers.save(learned.ranker)
    assert kept.weights == learned.ranker.weights and kept.figures["p"] == learned.difference.p
    corpus = index_corpus(wb, test_set)
    run = run_strategies(
        wb, test_set, corpus, ["learned", "rerank"], ["ndcg@10"], parameters={"learned": {"ranker": "long texts"}}
    )
    assert run.strategies["learned"].means["ndcg@10"] > run.strategies["rerank"].means["ndcg@10"] + 0.2


def test_training_weighs_what_a_search_weighs(wb: Workbench, test_set: TestSet) -> None:
    corpus = index_corpus(wb, test_set)
    sheet = make_sheets(wb, test_set, corpus)[0]
    question = test_set.answerable[0]
    result = wb.search(question.text, "learned", limit=200, index=corpus.index.name)
    searched = list(dict.fromkeys(corpus.key(hit.document_id) for hit in result))
    weights = np.array([load_default_ranker().weights.get(name, 0.0) for name in NAMES])
    assert rank_by_weights(sheet, weights)[:10] == searched[:10]


def test_fewer_than_thirty_questions_are_reported_how_many_are_missing(wb: Workbench, beir: WriteTestSet) -> None:
    few = dict(itertools.islice(ASKED.items(), 12))
    with pytest.raises(InvalidInput, match=r"'archive' has 12 judged questions; training needs 30\. Judge 18 more"):
        learn(wb, str(beir(TEXTS, few, name="archive")), "x")
    check_enough("enough", 30)


def test_an_unknown_test_set_is_named_and_a_stop_ends_the_work(wb: Workbench, beir: WriteTestSet) -> None:
    with pytest.raises(InvalidInput, match="no test set folder 'nowhere'"):
        learn(wb, "nowhere", "x")
    looks = itertools.count()
    with pytest.raises(Cancelled, match="Stopped"):
        learn(wb, str(beir(TEXTS, ASKED, name="archive")), "x", should_stop=lambda: next(looks) > 20)
    with pytest.raises(NotFound):
        wb.rankers.get("x")


@pytest.mark.parametrize(
    ("learned", "sentence"),
    [
        (1.0, r"Worth promoting: \+0\.5000 nDCG@10 .* \(p = 0\.0\d\d; 20 won, 0 lost, 0 tied\)\."),
        (0.0, r"Not worth promoting: -0\.5000 .*; rerank is better here\."),
        (0.5, r"Not worth promoting: ties with rerank, equal on all 20 questions that it was not trained on\."),
    ],
)
def test_the_verdict_reports_whether_it_is_worth_promoting(learned: float, sentence: str) -> None:
    ids = [f"q{number}" for number in range(20)]
    pair = ("learned", dict.fromkeys(ids, learned), "rerank", dict.fromkeys(ids, 0.5))
    [difference] = compare_pairs("ndcg@10", [pair])
    assert re.fullmatch(sentence, describe_verdict(difference))


def test_a_ranker_that_saw_the_questions_has_no_part_in_their_figures() -> None:
    assert has_seen_test_set(load_default_ranker(), "sample") and not has_seen_test_set(
        load_default_ranker(), "archive"
    )
    qrels = {f"q{number}": {f"d{row}": int(row == 0) for row in range(8)} for number in range(60)}
    seen, unseen = (train(Material(title, 1, "main", sheets(), qrels), "x") for title in ("sample", "archive"))
    assert set(seen.figures) == {"learned", "hybrid", "rerank"} and seen.ranker.note.startswith("prior rerank")
    assert set(unseen.figures) == {"learned", "hybrid", "rerank", "default"}


def test_training_may_start_from_rerank_alone() -> None:
    assert [prior.tolist() for prior in make_priors(afresh=True)] == [make_rerank_prior().tolist()]
    assert len(make_priors(afresh=False)) == 2


def test_nothing_is_learned_if_no_judged_document_is_found_any_more(wb: Workbench, beir: WriteTestSet) -> None:
    gone = {key: (text, {"elsewhere": 1}) for key, (text, _) in ASKED.items()}
    corpus = TEXTS | {"elsewhere": ("Else", "Nothing of the sort.")}
    with pytest.raises(InvalidInput, match="nothing to train on"):
        learn(wb, str(beir(corpus, gone, name="gone")), "mine")


def test_a_test_set_that_is_named_twice_is_asked_once(wb: Workbench, beir: WriteTestSet) -> None:
    folder = str(beir(TEXTS, ASKED, name="archive"))
    learned = learn(wb, [folder, folder], "mine")
    assert (learned.questions, learned.ranker.trained_on) == (36, "archive")

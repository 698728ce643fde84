"""The verb of people who learn: test sets by their names, a ranker, and where it is asked for the learning curve."""

from __future__ import annotations

from collections.abc import Sequence

from evals.gateway import check_index, index_corpus
from evals.learning.curve import CurvePoint, learning_curve
from evals.learning.training import Learned, check_enough, has_seen, priors_of, read_material, trained
from evals.test_sets.named import named_test_set
from workbench.retrieval.ranker import shipped
from workbench.types import OnProgress, Scope, ShouldStop
from workbench.workbench import Workbench

LEARNED_HERE = "learned here"  # the name of a ranker until a person gives it one


def learn_from(
    wb: Workbench,
    test_sets: str | Sequence[str],
    name: str,
    *,
    index: str | None = None,
    scope: Scope | None = None,
    afresh: bool = False,
    with_curve: bool = False,
    on_progress: OnProgress | None = None,
    should_stop: ShouldStop | None = None,
) -> tuple[Learned, list[CurvePoint]]:
    """Train a ranker on stored test sets (title or id), folders or the sample; ``wb.rankers.save`` keeps it.

    ``scope`` is searched in place of the stored test sets' own. The second value is the learning curve, empty unless
    it is asked for.

    Raises:
        InvalidInput: no such test set, or fewer than 30 judged questions. NotFound: no such index. Cancelled.
        ScopeError: an unknown name in the scope, or a part of a test set's scope has been deleted.
    """
    given = [named_test_set(wb, key, scope) for key in ([test_sets] if isinstance(test_sets, str) else test_sets)]
    named = list({(test_set.name, test_set.questions_hash): test_set for test_set in given}.values())  # each once
    check_enough(", ".join(test_set.name for test_set in named), sum(len(test_set.answerable) for test_set in named))
    indexed = [
        (test_set, index_corpus(wb, test_set, index, on_progress=on_progress, should_stop=should_stop))
        for test_set in named
    ]
    material = read_material(wb, indexed, check_index(wb, index), on_progress=on_progress, should_stop=should_stop)
    learned = trained(material, name, afresh=afresh, on_progress=on_progress, should_stop=should_stop)
    if not with_curve:
        return learned, []
    priors = priors_of(afresh=afresh or has_seen(shipped(), material.titles))
    curve = learning_curve(material.sheets, material.qrels, priors, on_progress=on_progress, should_stop=should_stop)
    return learned, curve

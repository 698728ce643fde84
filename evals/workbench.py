"""The workbench with evaluation: notebooks and scripts get it with ``from workbench import Workbench``."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import workbench.workbench
from workbench.formatting import progress_bar
from workbench.retrieval.strategies import STRATEGIES, strategy_named
from workbench.runtime import check_extra

if TYPE_CHECKING:
    from evals.configuration import Change, CheckReport
    from evals.evaluation import AnyTestSet, Evaluation, Experiments, InterleavingResult, TestSets, TrainingResult
    from workbench.types import OnProgress, Scope, ShouldStop


class Workbench(workbench.workbench.Workbench):
    """One corpus, its operations and their evaluation; open it with ``Workbench.open()``."""

    @cached_property
    def test_sets(self) -> TestSets:
        """Test sets, stored and new."""
        from evals.evaluation import TestSets

        return TestSets(self)

    @cached_property
    def experiments(self) -> Experiments:
        """Stored experiments."""
        from evals.evaluation import Experiments

        return Experiments(self)

    def evaluate(
        self,
        test_set: AnyTestSet,
        strategies: str | Sequence[object] | Mapping[str, object],
        metrics: Sequence[str] | None = None,
        *,
        run_files: Mapping[str, str | Path] | None = None,
        parameters: Mapping[str, Mapping[str, object]] | None = None,
        index: str | None = None,
        scope: Scope | None = None,
        limit: int | None = None,
        budget: float | None = None,
        repeats: int = 1,
        on_progress: OnProgress | None = None,
        should_stop: ShouldStop | None = None,
    ) -> Evaluation:
        """Measure strategies, your own retrievers and run files on a test set.

        Args:
            test_set: A test set, the title or id of a stored one, a folder, or "sample".
            strategies: Names of strategies (NAME or NAME@INDEX), and retrievers as accepted by ``wb.strategies.add``,
                optionally by name. A retriever is added under its name, or its class's name.
            metrics: Metrics, the first of which orders the leaderboard; the defaults of ``workbench eval`` if None.
            run_files: Paths of run files (TREC or CSV) by name.
            parameters: Parameters by strategy and name.
            index: Index whose chunker and model are used; the default one if None.
            scope: Part of your documents to search, instead of the test set's own.
            limit: Use this many questions, evenly from the test set.
            budget: Stop when searches, and answers of the result, have cost this many dollars, by the known prices.
            repeats: Number of times that a strategy is run if it calls an LLM; the values are means, with a spread.
            on_progress: Called with each ``Progress``, instead of a progress bar.
            should_stop: Polled between questions; return True to stop.

        Raises:
            InvalidInput: An argument is invalid, no price is known, or the budget is used up.
            Cancelled: ``should_stop`` returned True.
        """
        check_extra("eval")
        from evals.evaluation import estimate_run, measure

        chosen = self.test_sets.read(test_set, scope).spread(limit)
        names = self._name_all(strategies)
        if budget is not None:
            estimate_run(self, chosen, names, parameters or {}, index, budget, answers=True, repeats=repeats)
        return measure(
            self,
            chosen,
            names,
            metrics,
            run_files=[f"{name}={path}" for name, path in (run_files or {}).items()],
            parameters=parameters,
            index=index,
            budget=budget,
            repeats=repeats,
            on_progress=on_progress,
            should_stop=should_stop,
        )

    def estimate(
        self,
        test_set: AnyTestSet,
        strategies: str | Sequence[object] | Mapping[str, object],
        *,
        parameters: Mapping[str, Mapping[str, object]] | None = None,
        index: str | None = None,
        scope: Scope | None = None,
        limit: int | None = None,
        answers: bool = False,
        repeats: int = 1,
    ) -> str:
        """Return what ``evaluate`` takes and costs at least: searches, calls of an LLM, tokens, dollars, time.

        The arguments mean what they mean for ``evaluate``; ``answers`` if its result will answer the questions as well.
        It is "" if no LLM is asked and no price is known.
        """
        check_extra("eval")
        from evals.evaluation import estimate_run

        chosen, names = self.test_sets.read(test_set, scope).spread(limit), self._name_all(strategies)
        return estimate_run(self, chosen, names, parameters or {}, index, None, answers=answers, repeats=repeats)

    def interleavings(self) -> list[InterleavingResult]:
        """Return, for each promotion with a rival, whose documents agents opened or cited more often."""
        check_extra("eval")
        from evals.evaluation import measure_interleavings

        return measure_interleavings(self)

    def apply(
        self,
        file: str | Path,
        *,
        dry_run: bool = False,
        on_progress: OnProgress | None = None,
        should_stop: ShouldStop | None = None,
    ) -> list[Change]:
        """Apply a configuration file, as ``workbench apply`` does.

        Args:
            file: TOML or YAML file of models, indexes, strategies, test sets and experiments.
            dry_run: Change nothing.
            on_progress: Called with each ``Progress``.
            should_stop: Polled during builds; return True to stop.

        Returns:
            The action for each object of the file, including unchanged ones.

        Raises:
            InvalidInput: The file is invalid; nothing was changed.
            Cancelled: ``should_stop`` returned True; the next call resumes.
        """
        check_extra("eval")
        from evals.configuration import apply, make_plan, read_configuration

        plan = make_plan(self, read_configuration(self, file))
        if not dry_run:
            apply(self, plan, on_progress=on_progress, should_stop=should_stop)
        return [change for change, _ in plan]

    def check(
        self,
        file: str | Path,
        *,
        save: bool = False,
        budget: float | None = None,
        on_progress: OnProgress | None = None,
        should_stop: ShouldStop | None = None,
    ) -> CheckReport:
        """Run the experiments of a configuration file and compare them with their bars, as ``workbench check`` does.

        Args:
            file: TOML or YAML file that was applied.
            save: Write the baselines instead of comparing with them.
            budget: Stop each experiment when its searches and answers have cost this many dollars.
            on_progress: Called with each ``Progress``.
            should_stop: Polled between questions; return True to stop.

        Raises:
            InvalidInput: The file is invalid or not applied, or a baseline is missing or not comparable.
            Cancelled: ``should_stop`` returned True; the answers so far are kept.
        """
        check_extra("eval")
        from evals.configuration import check

        return check(self, file, save=save, budget=budget, on_progress=on_progress, should_stop=should_stop)

    def learn(
        self,
        test_sets: str | Sequence[str],
        name: str = "",
        *,
        index: str | None = None,
        scope: Scope | None = None,
        on_progress: OnProgress | None = None,
        should_stop: ShouldStop | None = None,
    ) -> TrainingResult:
        """Train a ranker for the strategy ``learned``; ``wb.rankers.save(result.ranker)`` keeps it.

        Args:
            test_sets: Titles or ids of stored test sets, folders, or "sample", with 30 judged questions or more.
            name: Name of the ranker; "learned here" if empty.
            index: Index to train on; the default one if None.
            scope: Part of your documents to search, instead of the test sets' own.
            on_progress: Called with each ``Progress``, instead of a progress bar.
            should_stop: Polled between questions; return True to stop.

        Raises:
            InvalidInput: There is no such test set, or there are fewer than 30 judged questions.
            Cancelled: ``should_stop`` returned True.
        """
        check_extra("eval")
        from evals.learning.training import DEFAULT_RANKER_NAME, learn

        name = name or DEFAULT_RANKER_NAME
        with progress_bar("Learn", on_progress) as show:
            return learn(self, test_sets, name, index=index, scope=scope, on_progress=show, should_stop=should_stop)

    def _name_all(self, strategies: str | Sequence[object] | Mapping[str, object]) -> list[str]:
        """Return the names of strategies; retrievers are added first."""
        if isinstance(strategies, Mapping):
            for name, retriever in strategies.items():
                row = STRATEGIES.get(name)
                if row is None or row.own is None or row.own.retriever is not retriever:
                    self.strategies.add(name, retriever, replace=row is not None)
            return list(strategies)
        given = [strategies] if isinstance(strategies, str) else strategies
        return list(dict.fromkeys(self._name(one) for one in given))

    def _name(self, strategy: object) -> str:
        if isinstance(strategy, str) and "://" not in strategy:
            strategy_named(strategy.partition("@")[0])
            return strategy
        for name, row in STRATEGIES.items():
            if row.own is not None and row.own.retriever is strategy:
                return name
        words = getattr(strategy, "__name__", type(strategy).__name__)
        kebab = re.sub(r"[^a-z0-9]+", "-", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", words).lower()).strip("-")
        base = kebab[:36] if kebab[:1].isalpha() and kebab not in ("lambda", "str") else "own"
        name = next(one for one in [base, *(f"{base}-{n}" for n in range(2, 1000))] if one not in STRATEGIES)
        return self.strategies.add(name, strategy).name

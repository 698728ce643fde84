"""Evidence from agents: what they asked, opened and cited, their chains of searches, and interleaved strategies.

A chain is the searches of one connection without a pause of 30 minutes. A document that is opened or cited belongs to
the last search of its chain that found it. A call over plain HTTP has no connection, so it is a chain of its own.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import compress

from evals.gateway import ToolCall, list_documents, new_id, resolve_scope
from evals.measures.significance import Difference, compare_pairs, explain_difference
from evals.test_set import Judgment, MeasuredScope, Question, TestSet
from evals.test_sets.store import AGENT_JUDGE, ImportReport, Rating, TestSetStore
from workbench.types import Promotion, Value
from workbench.workbench import Workbench

# Chains of searches

MAX_PAUSE = timedelta(minutes=30)  # a longer one ends a session, as is usual for logs of searches
CITING_TOOL = "cite_documents"
EXPLAINING_TOOL = "explain"  # has a query, but finds nothing new


@dataclass(frozen=True, slots=True)
class Search(Value):
    """One search of a chain; ``opened`` and ``cited`` are those of its documents that no later search found."""

    query: str
    tool: str
    at: datetime
    found: tuple[str, ...]  # ids of documents, best first
    results: int | None  # None if the tool does not count them
    opened: tuple[str, ...] = ()
    cited: tuple[str, ...] = ()
    promotion: str = ""  # of an interleaved search
    teams: tuple[str, ...] = ()  # the strategy that contributed each found document

    @property
    def clicks(self) -> frozenset[str]:
        """Its documents that were opened or cited."""
        return frozenset((*self.opened, *self.cited))


@dataclass(frozen=True, slots=True)
class Chain(Value):
    """The searches of one connection, the first one first."""

    client: str  # name of the agent
    searches: tuple[Search, ...]
    unfound: tuple[str, ...] = ()  # documents that were opened or cited, but that none of the searches found

    @property
    def question(self) -> str:
        """The first query, which is the chain's question in a test set."""
        return self.searches[0].query


@dataclass(frozen=True, slots=True)
class ChainVerdict(Value):
    """A chain as one case: which relevant documents it found, and when."""

    chain: Chain
    found: Mapping[str, tuple[int, int]]  # by document: the first search that found it, and its rank there; from 1
    missed: tuple[str, ...]  # relevant documents that none of the searches found
    recall: tuple[float, ...]  # share of the relevant documents found, after each search
    is_judged: bool  # False: the relevant documents are those that the agent opened or cited
    is_weak: bool = False  # True if no person has judged them

    @property
    def hops(self) -> int:
        """The number of searches."""
        return len(self.chain.searches)

    def describe(self) -> str:
        """Return a sentence such as "3 searches found 2 of 3 relevant documents: search 1 rank 2, search 3 rank 1"."""
        searches = "1 search" if self.hops == 1 else f"{self.hops:,} searches"
        total = len(self.found) + len(self.missed)
        if not total:
            return f"{searches}; nothing was opened or judged"
        kind = ("weakly judged" if self.is_weak else "relevant") if self.is_judged else "opened or cited"
        places = ", ".join(f"search {hop} rank {rank}" for hop, rank in sorted(self.found.values()))
        documents = "document" if total == 1 else "documents"
        return f"{searches} found {len(self.found)} of {total} {kind} {documents}{places and f': {places}'}"


def list_chains(wb: Workbench, scope: MeasuredScope) -> list[Chain]:
    """Return the chains of searches that agents made in a scope, the newest first.

    Searches and documents outside the scope are left out. Raises ScopeError if a part of the scope has been deleted.
    """
    resolved = resolve_scope(wb, scope)
    listed = [call for call in reversed(wb.tool_calls.list(limit=None)) if call.tool != EXPLAINING_TOOL]
    calls = [call for call in listed if call.query or call.documents]
    searches = [call for call in calls if call.query]
    inside = {call.id for call in compress(searches, wb.requests.are_within([one.scope for one in searches], resolved))}
    known = {one.id for one in list_documents(wb, resolved)} if len(searches) < len(calls) else set[str]()
    chains = (
        _make_chain(group, known) for group in _group_calls(one for one in calls if not one.query or one.id in inside)
    )
    return sorted((one for one in chains if one.searches), key=lambda chain: chain.searches[0].at, reverse=True)


def _group_calls(calls: Iterable[ToolCall]) -> list[list[ToolCall]]:
    """Return calls by connection and pause, each group in order."""
    groups: list[list[ToolCall]] = []
    latest: dict[str, list[ToolCall]] = {}
    for call in calls:
        key = call.session or call.client or ""
        if not key or key not in latest or call.called_at - latest[key][-1].called_at > MAX_PAUSE:
            groups.append([])
            latest[key] = groups[-1]
        latest[key].append(call)
    return groups


def _make_chain(calls: Sequence[ToolCall], known: Collection[str]) -> Chain:
    searches: list[Search] = []
    unfound: dict[str, None] = {}
    for call in calls:
        if call.query:
            query, found, teams = " ".join(call.query.split()), tuple(call.documents), tuple(call.teams)
            searches.append(
                Search(
                    query, call.tool, call.called_at, found, call.results, promotion=call.promotion or "", teams=teams
                )
            )
            continue
        for key in filter(known.__contains__, call.documents):
            place = next((n for n in reversed(range(len(searches))) if key in searches[n].found), None)
            if place is None:
                unfound[key] = None
            else:
                name = "cited" if call.tool == CITING_TOOL else "opened"
                searches[place] = replace(searches[place], **{name: (*getattr(searches[place], name), key)})
    return Chain(calls[0].client or "", tuple(searches), tuple(unfound))


def judge_chain(chain: Chain, test_set: TestSet) -> ChainVerdict:
    """Judge a chain by what is relevant to any of its queries in a test set, else by what the agent opened or cited."""
    asked = {one.query.casefold() for one in chain.searches}
    ids = [one.id for one in test_set.questions if one.text.casefold() in asked and not one.turns]
    grades = [test_set.qrels.get(key, {}) for key in ids]
    judged = {key for own in grades for key, grade in own.items() if grade > 0}
    relevant = judged or {*chain.unfound, *(key for one in chain.searches for key in one.clicks)}
    found: dict[str, tuple[int, int]] = {}
    recall: list[float] = []
    for hop, search in enumerate(chain.searches, start=1):
        for rank, key in enumerate(search.found, start=1):
            if key in relevant:
                found.setdefault(key, (hop, rank))
        recall.append(round(len(found) / len(relevant), 4) if relevant else 0.0)
    strong = {(one.question_id, one.document) for one in test_set.judgments if one.place not in test_set.by_agents}
    is_weak = not any((key, name) in strong for key in ids for name in judged)
    return ChainVerdict(chain, found, tuple(sorted(relevant - found.keys())), tuple(recall), bool(judged), is_weak)


# Questions and weak judgments

MAX_AGENT_QUERIES = 5_000
WEAK_RATER = "traffic"  # rater of the judgments that are inferred from what agents did
OPENED_GRADE, CITED_GRADE = 1, 2  # at most the highest grade of the test set


def add_agent_queries(
    wb: Workbench, store: TestSetStore, key: str, *, zero_only: bool = False, as_chains: bool = False
) -> ImportReport:
    """Add the distinct queries that agents made over MCP in the scope of a test set, with weak judgments.

    A document that was opened gets the lowest relevant grade, one that was cited the next. These judgments are an
    agent's, by the rater "traffic", so those of people take precedence. A test set with its own corpus gets none.

    Args:
        wb: The workbench.
        store: The test sets.
        key: Id or title of the test set.
        zero_only: Only those without results.
        as_chains: Add each chain of searches as one question, its first query.
    """
    test_set = store.load(key)
    cases: dict[str, tuple[Question, Counter[str], Counter[str]]] = {}
    for chain in list_chains(wb, test_set.scope):
        parts = [chain.searches] if as_chains else [(one,) for one in chain.searches]
        for searches in parts:
            if zero_only and any(one.results != 0 for one in searches):
                continue
            text = searches[0].query
            metadata = {"chain": [one.query for one in searches]} if len(searches) > 1 else {}
            made = Question(new_id("question"), text, origin="agent", metadata=metadata), Counter[str](), Counter[str]()
            _, opened, cited = cases.setdefault(text.casefold(), made)
            for one in searches:
                opened.update(one.opened)
                cited.update(one.cited)
            if as_chains:
                opened.update(chain.unfound)
    cases = dict(list(cases.items())[:MAX_AGENT_QUERIES])
    known = {question.text.casefold(): question for question in test_set.questions if not question.turns}
    added = store.add_questions(key, [case[0] for text, case in cases.items() if text not in known])
    if test_set.corpus is not None:
        return ImportReport(len(added), 0)
    ratings = [
        one
        for text, (question, opened, cited) in cases.items()
        for one in _make_ratings(known.get(text, question).id, opened, cited, test_set.grades)
    ]
    stored = {(one.judgment, one.reason) for one in store.ratings(key) if one.rater == WEAK_RATER}
    fresh = [one for one in ratings if (one.judgment, one.reason) not in stored]
    if fresh:
        store.rate(key, fresh)
    return ImportReport(len(added), len(fresh))


def _make_ratings(question_id: str, opened: Counter[str], cited: Counter[str], grades: int) -> list[Rating]:
    """Return the weak judgments of a question from how often each document was opened and cited."""
    return [
        Rating(
            Judgment(question_id, key, min(CITED_GRADE if cited[key] else OPENED_GRADE, grades - 1)),
            WEAK_RATER,
            AGENT_JUDGE,
            f"opened {opened[key]:,}, cited {cited[key]:,} times by agents",
        )
        for key in {**opened, **cited}
    ]


# Interleaved strategies


@dataclass(frozen=True, slots=True)
class InterleavingResult(Value):
    """Which of two interleaved strategies contributed the documents that agents opened or cited."""

    promotion: Promotion
    lists: int  # distinct queries by day, each of which got one list
    difference: Difference  # of the promoted strategy from its rival, over the lists with an opened or cited document

    def describe(self) -> str:
        """Return one sentence."""
        names = f"{self.promotion.label} interleaved with {self.promotion.rival}"
        used = self.difference.wins + self.difference.losses + self.difference.ties
        lists = f"{self.lists:,} list{'' if self.lists == 1 else 's'} of results"
        if not used:
            return f"{names}: {lists}; no document has been opened or cited."
        outcome = explain_difference(self.difference).replace("question", "list")
        return f"{names}: {lists}, {used:,} with an opened or cited document. {outcome}"


def measure_interleavings(wb: Workbench) -> list[InterleavingResult]:
    """Return the outcome of each promotion with a rival, those in effect first.

    A list counts for the strategy that contributed more of the documents that were opened or cited. The test is the
    paired randomisation test, which is the sign test for such values.
    """
    rivals = [one for one in wb.promotions.history() if one.rival]
    credits: dict[str, dict[str, Counter[str]]] = defaultdict(lambda: defaultdict(Counter))
    for chain in list_chains(wb, MeasuredScope()) if rivals else ():
        for one in chain.searches:
            if one.promotion:
                own = credits[one.promotion][f"{one.query.casefold()} {one.at:%Y-%m-%d}"]
                own.update(team for key, team in zip(one.found, one.teams, strict=True) if team and key in one.clicks)
    results = [
        InterleavingResult(one, len(credits[one.key]), compare_teams(one.label, one.rival, credits[one.key]))
        for one in rivals
    ]
    return sorted(results, key=lambda result: not result.promotion.serves)


def compare_teams(first: str, second: str, credits: Mapping[str, Mapping[str, int]]) -> Difference:
    """Compare two strategies by their credits, {list: {strategy: used documents}}; lists without any are left out."""
    leads = {key: own.get(first, 0) - own.get(second, 0) for key, own in credits.items() if sum(own.values())}
    wins = {key: 0.5 if lead == 0 else float(lead > 0) for key, lead in leads.items()}
    [found] = compare_pairs("preference", [(first, wins, second, {key: 1 - value for key, value in wins.items()})])
    return found

"""A configuration file is applied completely or not at all, and its checks fail on a drop, not on noise."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest

from evals.configuration import CheckReport, read_configuration
from evals.experiments.leaderboard import Verdict, judge_gain
from evals.experiments.runs import Bar
from evals.measures.significance import compare_pairs
from tests.evals.conftest import WriteTestSet, lines
from workbench import Workbench
from workbench.errors import InvalidInput, WorkbenchError
from workbench.retrieval.strategies import STRATEGIES
from workbench.settings import Settings

WORDS = ("amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "heath", "inlet", "jetty", "knoll", "lagoon")
TEXTS = {word: (word.title(), f"The {word} is described here and nowhere else.") for word in WORDS}
ASKED = {f"q{n}": (f"Where is the {word}?", {word: 1}) for n, word in enumerate(WORDS)}

MODULE = f"""
WRONG = 0  # how many of twelve questions get a wrong document

def find(question, limit):
    word = question.removesuffix("?").split()[-1]
    words = {WORDS!r}
    return [{{"path": "amber" if words.index(word) > 11 - WRONG else word}}]
"""

FILE = """
[models.small]
name = "hash"

[indexes.precise]
chunker = "sentence"
options = {{ size = 40 }}
model = "small"

[strategies.mine]
use = "own_retrieval:find"

[test_sets.animals]
from = "animals"

[experiments.nightly]
test_set = "animals"
strategies = ["mine", "keyword", "hybrid@precise"]
metrics = ["ndcg@10"]
baseline = "baseline.json"

[[experiments.nightly.bars]]
strategy = "mine"
{bar}
"""
MIN, DROP, AGAINST = "min = 0.9", "max_drop = 0.1", 'max_drop = 0.1\nagainst = "keyword"'

WriteFile = Callable[..., Path]


@pytest.fixture
def wb(make_settings: Callable[..., Settings], tmp_path: Path) -> Iterator[Workbench]:
    """A workbench with a separate data folder, in which strategies are stored."""
    with Workbench.open(settings=make_settings(home=tmp_path / "home")) as workbench:
        yield workbench
    for name in ("mine", "other"):
        if name in STRATEGIES:
            STRATEGIES.remove(name)


@pytest.fixture
def write(tmp_path: Path, beir: WriteTestSet, monkeypatch: pytest.MonkeyPatch) -> WriteFile:
    """Write a file next to a test set, and a module with a retriever: ``write(bar)``, or with another text."""
    (tmp_path / "own_retrieval.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "own_retrieval", raising=False)
    beir(TEXTS, ASKED)

    def write_file(bar: str = MIN, text: str = FILE, name: str = "workbench.toml") -> Path:
        (tmp_path / name).write_text(text.format(bar=bar) if text is FILE else text)
        return tmp_path / name

    return write_file


def change_retriever(wb: Workbench, wrong: int) -> None:
    """Make the file's retriever find a wrong document for some of the twelve questions, as a new version of it."""
    sys.modules["own_retrieval"].WRONG = wrong  # pyright: ignore[reportAttributeAccessIssue]
    STRATEGIES.add(wb.strategies.define("mine", {"use": "own_retrieval:find"}), replace=True)


def actions(wb: Workbench, file: Path, *, dry_run: bool = False) -> dict[str, str]:
    """Apply a file; returns the action of each object."""
    return {change.name: change.action for change in wb.apply(file, dry_run=dry_run)}


def describe(wb: Workbench) -> tuple[object, ...]:
    """Return everything that applying a file can change."""
    indexes = [(one.name, one.chunker, dict(one.chunker_options), one.is_default) for one in wb.indexes.list()]
    sets = [(one.title, one.version, one.questions) for one in wb.test_sets.list()]
    return indexes, sets, wb.strategies.read_stored(), wb.jobs.count()


def test_a_dry_run_shows_the_plan_and_changes_nothing(wb: Workbench, write: WriteFile) -> None:
    wb.indexes.list()
    before = describe(wb)
    plan = actions(wb, write(), dry_run=True)
    assert plan == {"mine": "create", "precise": "create", "animals": "create", "nightly": "check"}
    assert describe(wb) == before


def test_the_second_apply_does_nothing(wb: Workbench, write: WriteFile) -> None:
    wb.indexes.list()
    wb.indexes.create("untouched", chunker="token")
    file = write()
    assert actions(wb, file) == {"mine": "create", "precise": "create", "animals": "create", "nightly": "check"}
    after = describe(wb)
    assert [(one.name, one.status, one.chunker) for one in wb.indexes.list()] == [
        ("main", "ready", "structure"), ("untouched", "building", "token"), ("precise", "ready", "sentence"),
    ]  # fmt: skip
    assert actions(wb, file) == {"mine": "keep", "precise": "keep", "animals": "keep", "nightly": "check"}
    assert describe(wb) == after


def test_a_yaml_file_means_the_same(wb: Workbench, write: WriteFile) -> None:
    actions(wb, write())
    text = """
models: {small: {name: hash}}
indexes:
  precise: {chunker: sentence, options: {size: 40}, model: small}
strategies: {mine: {use: 'own_retrieval:find'}}
test_sets: {animals: {from: animals}}
"""
    assert set(actions(wb, write(text=text, name="workbench.yaml")).values()) == {"keep"}


def test_a_changed_index_is_built_first_and_then_switched(
    wb: Workbench, write: WriteFile, folder: Callable[..., Path]
) -> None:
    wb.ingest(folder({"a.md": "# Bees\n\nBees make honey. They live in hives. A hive has one queen.\n"}))
    text = '[indexes.precise]\nchunker = "sentence"\noptions = {size = 16}\ndefault = true\n'
    file = write(text=text)
    assert [(one.kind, one.action) for one in wb.apply(file)] == [("index", "create"), ("index", "default")]
    wb.promotions.promote("keyword", index="precise")
    passages = wb.indexes.get("precise").passages_count
    file.write_text(text.replace("16", "200"))
    (change,) = wb.apply(file, dry_run=True)
    assert change.action == "change" and "size 200, was 16" in change.detail
    wb.apply(file)
    index = wb.indexes.get("precise")
    assert (index.is_default, dict(index.chunker_options), index.status) == (True, {"size": 200}, "ready")
    assert 0 < index.passages_count < passages
    assert [one.name for one in wb.indexes.list()] == ["main", "precise"]
    assert wb.search("queen of the hive", "rerank")[0].document_title == "Bees"
    assert [one.index for one in wb.promotions.current()] == ["precise"]
    wb.ingest(folder({"b.md": "# Owls\n\nOwls hunt at night.\n"}, "more"))  # the triggers know the new name
    assert wb.search("owls", "keyword")[0].document_title == "Owls"
    file.write_text(text)
    wb.apply(file)  # a second switch meets no names that the first one left
    assert wb.search("owls", "hybrid", index="precise")[0].document_title == "Owls"
    wb.documents.delete(wb.search("owls", "keyword")[0].document_id)
    assert not len(wb.search("owls", "keyword"))


def test_only_the_price_of_a_model_changes_without_a_build(wb: Workbench, write: WriteFile) -> None:
    name = "endpoint:m?url=http://127.0.0.1:9/v1&dimensions=8&tokens=none"
    wb.corpus.indexes.create("remote", chunker="structure", chunker_options={}, embedding_model=name, dimensions=8)
    file = write(text=f'[indexes.remote]\nmodel = "{name}&price=0.06"\n')
    (change,) = wb.apply(file)
    assert change.action == "change" and "without rebuilding" in change.detail
    assert wb.indexes.get("remote").embedding_model == f"{name}&price=0.06"
    assert actions(wb, file) == {"remote": "keep"}


def test_changed_documents_and_questions_of_a_test_set_replace_the_old_ones(
    wb: Workbench, write: WriteFile, beir: WriteTestSet
) -> None:
    file = write(text='[test_sets.animals]\nfrom = "animals"\n')
    actions(wb, file)
    beir({**TEXTS, "marsh": ("Marsh", "The marsh is new.")}, {**ASKED, "q99": ("Where is the marsh?", {"marsh": 1})})
    (change,) = wb.apply(file)
    assert (change.action, change.detail) == (
        "change", "other documents and questions or judgments; 13 questions, 13 judgments",
    )  # fmt: skip
    assert wb.evaluate("animals", ["keyword"]).run.corpus.documents == 13
    assert actions(wb, file) == {"animals": "keep"}


def test_a_second_apply_keeps_what_people_have_judged_since(wb: Workbench, write: WriteFile) -> None:
    file = write(text='[test_sets.animals]\nfrom = "animals"\n')
    assert actions(wb, file) == {"animals": "create"}
    first, second, third = wb.test_sets.load("animals").questions[:3]
    for rater, grade in (("Ada", 2), ("Bo", 0)):
        wb.test_sets.judge("animals", first.id, "bees", grade, rater=rater)
        wb.test_sets.judge("animals", second.id, "bees", grade, rater=rater)
    wb.test_sets.judge("animals", second.id, "bees", 2)  # settles
    own = next(one for one in wb.test_sets.load("animals").judgments if one.question_id == third.id)
    wb.test_sets.judge("animals", third.id, own.document, 0)  # the file has another grade
    before = wb.test_sets.ratings("animals")
    assert actions(wb, file) == {"animals": "keep"}
    questions = file.parent / "animals" / "queries.jsonl"
    questions.write_text(questions.read_text().replace(first.text, f"{first.text} Really"))
    assert actions(wb, file) == {"animals": "change"}
    assert len(wb.test_sets.disagreements("animals")) == 1
    assert {(one.judgment, one.rater) for one in wb.test_sets.ratings("animals")} == {
        (one.judgment, one.rater) for one in before
    }
    assert actions(wb, file) == {"animals": "keep"}


def test_a_test_set_over_own_documents_is_a_csv(wb: Workbench, write: WriteFile, folder: Callable[..., Path]) -> None:
    wb.ingest(folder({"a.md": "# Bees\n\nBees make honey.\n", "b.md": "# Owls\n\nOwls hunt at night.\n"}))
    file = write(text='[test_sets.own]\nfrom = "own.csv"\n')
    rows = "question,document\nWho makes honey?,Bees\nWho hunts?,Owls\nWho sings?,Larks\n"
    (file.parent / "own.csv").write_text(rows)
    (change,) = wb.apply(file)
    assert change.action == "create" and change.detail.startswith("2 questions, 2 judgments; Row 4: ")
    assert actions(wb, file) == {"own": "keep"}
    (file.parent / "own.csv").write_text(rows.replace("Who hunts?,Owls\n", ""))
    assert actions(wb, file) == {"own": "change"}
    assert [question.text for question in wb.test_sets.load("own").questions] == ["Who makes honey?"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[indexes.x", r"workbench.toml is unreadable \(Expected '\]' at the end of a table declaration"),
        ("", "is empty; add tables such as"),
        ("[indices.x]\n", r"workbench.toml, indices: unknown key; did you mean 'indexes'\?"),
        ("[indexes]\nx = 3\n", r"indexes.x: expected a table of keys and values, not 3\."),
        ('[indexes.x]\nchunkr = "token"\n', r"indexes.x.chunkr: unknown key; did you mean 'chunker'\?"),
        ('[indexes.x]\nchunker = "tokens"\n', r"indexes.x.chunker: there is no chunker 'tokens'; use one of"),
        ('[indexes.x]\nchunker = "token"\noptions = {size = 1}\n', r"indexes.x.options: Invalid size 1; use a whole"),
        ('[indexes.x]\ndefault = "yes"\n', r"indexes.x.default: expected true or false, not 'yes'\."),
        ('[indexes.x]\nmodel = "minilmm"\n', r"indexes.x: Unknown embedding model 'minilmm'"),
        ("[indexes.x]\ndefault = true\n[indexes.y]\ndefault = true\n", r"indexes: 'x', 'y' have default = true"),
        ("[indexes.X]\n", r"indexes.X: Invalid index name 'X'"),
        ('[models.m]\ndimensions = 5\n', r"models.m.name: a model needs a name"),
        ('[strategies.s]\nuse = "nothing_here:x"\n', r"strategies.s: loading nothing_here:x failed .*; install it"),
        ('[strategies.rerank]\nuse = "json:loads"\n', r"strategies.rerank: The strategy 'rerank' is built in"),
        ('[strategies.s]\nuze = "json:loads"\n', r"strategies.s: uze = 'json:loads' is not an option of a strategy"),
        ('[test_sets.t]\nfrom = "nowhere"\n', r"test_sets.t.from: there is no folder or file .*nowhere; paths are"),
        ('[experiments.e]\ntest_set = "t"\n', r"experiments.e.test_set: Test set not found: t"),
    ],
)  # fmt: skip
def test_an_invalid_file_is_one_sentence_and_changes_nothing(
    wb: Workbench, write: WriteFile, text: str, message: str
) -> None:
    wb.indexes.list()
    before = describe(wb)
    first = '[indexes.good]\nchunker = "token"\n' if text and not text.startswith("[indexes]") else ""
    with pytest.raises(InvalidInput, match=message):
        wb.apply(write(text=first + text))
    assert describe(wb) == before


@pytest.mark.parametrize(
    ("bar", "message"),
    [
        ("", r"experiments.nightly.bars\[1\].min: a bar needs min or max_drop"),
        ("min = 0.5\nmetric = 'mrr@10'", r"bars\[1\].metric: 'mrr@10' is not measured; add it"),
        ("min = -1", r"bars\[1\].min: expected a number of 0 or more, not -1"),
        ("min = 0.1\nagainst = 'keyword'", r"bars\[1\].against: add max_drop"),
        ("max_drop = 0.1\nagainst = 'vector'", r"bars\[1\].against: 'vector' is not one of the experiment's"),
        ("maxdrop = 0.1", r"bars\[1\].maxdrop: unknown key; did you mean 'max_drop'\?"),
    ],
)
def test_an_invalid_bar_is_one_sentence(wb: Workbench, write: WriteFile, bar: str, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        read_configuration(wb, write(bar))


@pytest.mark.parametrize(
    ("yaml", "message"),
    [
        ("indexes:\n  x:\n    chunker: token\n    chunker: sentence\n", "line 4: the key 'chunker' is repeated"),
        ("indexes: [\n", r"line 2: "),
        ("- a\n", "has no tables"),
        ("indexes:\n  no: {chunker: token}\n", "indexes.False: Invalid index name 'False'"),
        ("indexes:\n  x: {2: token}\n", "indexes.x: the key 2 is not a text; put it between quotes"),
    ],
)
def test_invalid_yaml_is_one_sentence(wb: Workbench, write: WriteFile, yaml: str, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        wb.apply(write(text=yaml, name="workbench.yaml"))


def check(wb: Workbench, file: Path, *, save: bool = False) -> CheckReport:
    """Apply a file, then check it."""
    wb.apply(file)
    return wb.check(file, save=save)


def judge(report: CheckReport, run: str = "mine") -> Verdict:
    """Return the only verdict on a run."""
    (verdict,) = [one for one in report.verdicts if one.run == run]
    return verdict


@pytest.mark.parametrize(("wrong", "passed"), [(0, True), (1, True), (2, False)])
def test_a_minimum_is_compared_with_the_mean(wb: Workbench, write: WriteFile, wrong: int, passed: bool) -> None:
    file = write(MIN)
    wb.apply(file)
    change_retriever(wb, wrong)
    report = wb.check(file)
    assert (report.is_passed, judge(report).state == "passed") == (passed, passed)
    assert judge(report).value == pytest.approx(1 - wrong / 12)  # 11 of 12 is above .9, 10 of 12 is below


@pytest.mark.parametrize(
    ("wrong", "state", "detail"),
    [
        (1, "passed", r"-0\.0833 against the baseline, p = \.500, won 0 and lost 1 questions$"),
        (3, "passed", r"-0\.2500 .* p = \.125, .*; a larger drop than 0\.1, but it may be noise"),
        (5, "failed", r"-0\.4167 .* p = \.031, won 0 and lost 5 questions$"),  # 1 of 32 sign patterns
    ],
)
def test_a_fall_fails_only_if_it_is_larger_than_tolerated_and_no_noise(
    wb: Workbench, write: WriteFile, wrong: int, state: str, detail: str
) -> None:
    file = write(DROP)
    assert check(wb, file, save=True).is_passed
    change_retriever(wb, wrong)
    report = wb.check(file)
    assert report.is_passed == (state != "failed")
    assert judge(report).state == state
    assert re.search(detail, judge(report).detail)


def test_a_fall_below_another_strategy_fails(wb: Workbench, write: WriteFile) -> None:
    file = write(AGAINST)
    assert not (file.parent / "baseline.json").exists()
    text = file.read_text().replace('baseline = "baseline.json"\n', "")
    file.write_text(text)
    assert check(wb, file).is_passed
    change_retriever(wb, 6)
    report = wb.check(file)
    assert judge(report).state == "failed" and "at most 0.1 below keyword" in judge(report).bar


def test_a_gain_is_met_not_met_or_not_decidable_and_changed_bars_are_reported(wb: Workbench, write: WriteFile) -> None:
    file = write('min_gain = 0.1\nagainst = "keyword"')
    file.write_text(file.read_text().replace('baseline = "baseline.json"\n', 'hypothesis = "As good as keyword"\n'))
    wb.apply(file)
    report = wb.check(file)
    verdict = judge(report)
    assert verdict.state in ("failed", "undecided") and verdict.bar == "at least 0.1 above keyword"
    assert report.is_passed == (verdict.state == "undecided")
    assert "nightly: Hypothesis: As good as keyword" in report.notes
    assert not any("were changed" in note for note in report.notes)
    change_retriever(wb, 6)
    assert judge(wb.check(file)).state == "failed"
    checked = wb.experiments.list()[0]
    assert checked.note == "Hypothesis: As good as keyword"
    assert [(bar["bar"], bar["state"]) for bar in checked.bars] == [("at least 0.1 above keyword", "failed")]
    file.write_text(file.read_text().replace("min_gain = 0.1", "min_gain = 0.01"))
    [note] = [note for note in wb.check(file).notes if "were changed" in note]
    assert note.startswith("nightly: Its hypothesis, runs or bars were changed: it first ran with others on 20")
    assert note.removeprefix("nightly: ") in wb.experiments.list()[0].note  # the app, the command and agents show it
    assert "were changed" not in wb.experiments.list()[1].note
    file.write_text(file.read_text().replace("min_gain = 0.01", "min_gain = 0.1"))
    assert not any("were changed" in note for note in wb.check(file).notes)  # these bars were there first


def test_bars_that_are_set_after_their_runs_were_measured_are_reported(wb: Workbench, write: WriteFile) -> None:
    file = write('min_gain = 0.1\nagainst = "keyword"')
    file.write_text(file.read_text().replace('baseline = "baseline.json"\n', ""))
    wb.apply(file)
    (test_set,) = wb.test_sets.list()
    wb.experiments.run(wb.experiments.create("A look", test_set.id, ["keyword"]).id)
    for _ in range(2):  # also when it is checked again
        [note] = [note for note in wb.check(file).notes if "were measured" in note]
        assert (
            note.startswith("nightly: Its runs were measured in 'A look' on 20") and "before its bars were set" in note
        )
        assert note.removeprefix("nightly: ") in wb.experiments.list()[0].note


@pytest.mark.parametrize(
    ("differences", "state", "detail"),
    [
        ([0.3] * 20, "passed", "95% interval +0.3000"),
        ([0.01, -0.01] * 20, "failed", "+0.0000 against keyword"),
        ([0.5, -0.3] * 6, "undecided", "not decidable with these questions: about "),
    ],
)
def test_a_gain_is_judged_by_its_interval(differences: list[float], state: str, detail: str) -> None:
    zero = dict.fromkeys(map(str, range(len(differences))), 0.0)
    values = {str(n): value for n, value in enumerate(differences)}
    [found] = compare_pairs("ndcg@10", [("mine", values, "keyword", zero)])
    verdict = judge_gain("nightly", Bar("mine", "ndcg@10", None, None, "keyword", 0.1), 0.5, found)
    assert verdict.state == state and detail in verdict.detail


def test_a_run_that_fails_fails_the_check(wb: Workbench, write: WriteFile) -> None:
    file = write("min = 0.1", FILE)
    wb.apply(file)
    STRATEGIES.add(wb.strategies.define("mine", {"url": "http://127.0.0.1:9/search"}), replace=True)
    report = wb.check(file)
    assert not report.is_passed and judge(report).value == 0.0
    assert any("mine failed on 12 of 12 questions" in note for note in report.notes)


def test_the_reports_are_read_by_their_readers(wb: Workbench, write: WriteFile) -> None:
    file = write(DROP)
    check(wb, file, save=True)
    change_retriever(wb, 6)
    report = wb.check(file)
    (suite,) = ElementTree.fromstring(report.to_junit())
    assert suite.attrib == {"name": "nightly", "tests": "3", "failures": "1", "errors": "0", "skipped": "2"}
    assert [(case.get("name"), [one.tag for one in case]) for case in suite] == [
        ("keyword: ndcg@10 no bar", ["skipped"]),
        ("hybrid@precise: ndcg@10 no bar", ["skipped"]),
        ("mine: ndcg@10 at most 0.1 below the baseline", ["failure"]),
    ]
    table = report.to_markdown().splitlines()
    assert table[0].startswith("### ❌ Retrieval checks of workbench.toml: 1 failed, 2 not judged.")
    assert all(row.count("|") == 8 for row in table[2:7])
    assert json.dumps(report.to_dict())


def test_a_text_with_signs_stays_one_cell_and_valid_xml() -> None:
    report = CheckReport("a|b.toml", (Verdict("e", "run", "m", "bar", None, "error", "a|b\n<c> \x00\x1b*d*"),))
    assert r"a\|b \<c\> " in report.to_markdown()
    assert ElementTree.fromstring(report.to_junit())[0][0][0].get("message") == "a|b\n<c>   *d*"


def test_a_check_needs_an_applied_file_and_a_fitting_baseline(
    wb: Workbench, write: WriteFile, beir: WriteTestSet
) -> None:
    file = write(DROP)
    with pytest.raises(InvalidInput, match=r"is not applied \(create the strategy 'mine', .*; run: workbench apply"):
        wb.check(file)
    wb.apply(file)
    with pytest.raises(InvalidInput, match=r"There is no baseline .*baseline.json; write it with: .* --save"):
        wb.check(file)
    wb.check(file, save=True)
    saved = (file.parent / "baseline.json").read_text()
    (file.parent / "baseline.json").write_text(saved.replace('"mine"', '"yours"'))
    with pytest.raises(InvalidInput, match=r"has no ndcg@10 of mine; write it again"):
        wb.check(file)
    beir({**TEXTS, "marsh": ("Marsh", "The marsh is new.")}, ASKED)
    wb.apply(file)
    with pytest.raises(InvalidInput, match=r"made on another corpus, so it is not comparable; save it again"):
        wb.check(file)


def test_a_list_of_values_is_a_run_for_each_and_bars_name_them(wb: Workbench, write: WriteFile) -> None:
    text = (
        FILE.format(bar=MIN)
        + """
[experiments.candidates]
test_set = "animals"
strategies = ["hybrid", "keyword"]
metrics = ["ndcg@10"]
parameters.hybrid = { fusion = ["rrf", "convex"], vector_weight = 0.2 }
[[experiments.candidates.bars]]
strategy = "hybrid fusion=rrf"
max_drop = 0.1
against = "hybrid fusion=convex"
"""
    )
    file = write(text=text)
    *_, made = read_configuration(wb, file).experiments
    assert list(made.runs) == ["hybrid fusion=rrf", "hybrid fusion=convex", "keyword"]
    assert [run.parameters.get("vector_weight") for run in made.runs.values()] == [0.2, 0.2, None]
    wb.apply(file)
    report = wb.check(file, save=True)
    verdict = next(one for one in report.verdicts if one.run == "hybrid fusion=rrf")
    assert (verdict.experiment, verdict.state) == ("candidates", "passed") and "hybrid fusion=convex" in verdict.bar
    with pytest.raises(InvalidInput, match="'hybrid' is not one of the experiment's strategies 'hybrid fusion=rrf'"):
        read_configuration(wb, write(text=text.replace('"hybrid fusion=rrf"', '"hybrid"')))


def test_a_file_without_experiments_checks_nothing(wb: Workbench, write: WriteFile) -> None:
    with pytest.raises(InvalidInput, match="has no experiments"):
        wb.check(write(text='[indexes.x]\nchunker = "token"\n'))


def test_own_strategies_of_the_data_folder_are_in_every_process(wb: Workbench, write: WriteFile) -> None:
    actions(wb, write())
    STRATEGIES.remove("mine")
    with Workbench.open(settings=wb.settings.model_copy(update={"home": wb.settings.home / "."})) as other:
        STRATEGIES.declare("another process", other.strategies._read_declared)  # pyright: ignore[reportPrivateUsage]
        assert other.strategies.get("mine").own is not None
    (wb.settings.home / "workbench.toml").write_text('[strategies.mine]\nuse = "own_retrieval:other"\n')
    with pytest.raises(WorkbenchError, match="declares the strategy 'mine' differently; change it there"):
        wb.apply(write())


def test_lines_left_out_are_reported(wb: Workbench, write: WriteFile) -> None:
    file = write(text='[test_sets.animals]\nfrom = "animals"\n')
    corpus = file.parent / "animals" / "corpus.jsonl"
    corpus.write_text(corpus.read_text() + "\nbroken\n" + lines([{"_id": "x", "text": "y"}]))
    (change,) = wb.apply(file)
    assert "corpus.jsonl, line 13 is not JSON" in change.detail

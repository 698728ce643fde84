"""Raters: agreement with published values, several raters on one queue, disagreements, an LLM, and files both ways."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from evals.background import enqueue_rating, make_runners
from evals.test_set import Judgment
from evals.test_sets.raters import cohens_kappa, krippendorffs_alpha, measure_raters
from evals.test_sets.store import Rating
from tests.evals.conftest import TEXTS, StartJudge
from workbench import Settings, Workbench
from workbench.cli import main
from workbench.errors import InvalidInput, NotFound

# Krippendorff, Computing Krippendorff's Alpha-Reliability (2011), section C: four observers, twelve units
KRIPPENDORFF = (
    (1, 2, 3, 3, 2, 1, 4, 1, 2, None, None, None),
    (1, 2, 3, 3, 2, 2, 4, 1, 2, 5, None, 3),
    (None, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, None),
    (1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, None),
)


def test_alpha_is_that_of_krippendorffs_example() -> None:
    units = [[grade for grade in unit if grade is not None] for unit in zip(*KRIPPENDORFF, strict=True)]
    assert krippendorffs_alpha(units, ordinal=False) == pytest.approx(0.743, abs=0.0005)
    assert krippendorffs_alpha(units) == pytest.approx(0.815, abs=0.0005)
    assert krippendorffs_alpha([[1, 1], [1, 1]]) is None
    assert krippendorffs_alpha([[1], [2]]) is None


def test_kappa_can_be_checked_by_hand() -> None:
    # 20 yes/yes, 5 yes/no, 10 no/yes, 15 no/no: observed .7, expected .5 * .6 + .5 * .4 = .5, kappa .4
    table = [(1, 1)] * 20 + [(1, 0)] * 5 + [(0, 1)] * 10 + [(0, 0)] * 15
    assert cohens_kappa(table) == 0.4
    # grades 0 1 2 against 0 2 2: distance 1/3; expected (0+2+2 + 1+1+1 + 2+0+0) / 9 = 1: 1 - 1/3
    assert cohens_kappa([(0, 0), (1, 2), (2, 2)], weighted=True) == pytest.approx(2 / 3, abs=1e-6)
    assert cohens_kappa([(1, 1), (1, 1)]) is None
    assert cohens_kappa([]) is None


def rate(rater: str, grades: str, judge: str = "person") -> list[Rating]:
    return [Rating(Judgment("q", f"d{n}", int(g)), rater, judge) for n, g in enumerate(grades) if g != "."]


def test_a_second_round_shows_consistency_and_is_no_rater() -> None:
    found = measure_raters(
        "Mine", 3, [*rate("Ada", "2210"), *rate("Bo", "2110"), *rate("m", "2.00", "llm"), *rate("m #2", "2.10", "llm")]
    )
    assert [(one.rater, one.kind, one.judgments, one.base_rate, one.consistency) for one in found.raters] == [
        ("Ada", "person", 4, 0.75, None),
        ("Bo", "person", 4, 0.75, None),
        ("m", "LLM", 3, pytest.approx(1 / 3, abs=1e-6), pytest.approx(2 / 3, abs=1e-6)),
    ]
    pairs = {(one.a, one.b, one.scale): (one.places, one.agreement) for one in found.pairs}
    assert pairs["Ada", "Bo", "3 grades"] == (4, 0.75)
    assert pairs["Ada", "Bo", "relevant or not"] == (4, 1.0)
    assert len(pairs) == 6
    assert found.disagreements == 1  # of the two people; the LLM's do not need to be settled


def test_a_sole_person_without_a_name_is_compared_with_an_llm_and_an_agent() -> None:
    found = measure_raters("Mine", 2, [*rate("", "1100"), *rate("m", "1110", "llm"), *rate("a", "1100", "agent")])
    assert [(one.rater, one.kind) for one in found.raters] == [("(no name)", "person"), ("m", "LLM"), ("a", "agent")]
    kappas = {(one.a, one.b): one.kappa for one in found.pairs}
    # 3 of 4 are equal, 1/2 * 3/4 + 1/2 * 1/4 = 1/2 by chance: (3/4 - 1/2) / (1 - 1/2)
    assert kappas == {("(no name)", "m"): 0.5, ("(no name)", "a"): 1.0, ("m", "a"): 0.5}
    assert measure_raters("Mine", 2, rate("", "1100")).raters == ()
    assert "(no name)" not in [one.rater for one in measure_raters("M", 2, [*rate("", "1"), *rate("A", "1")]).raters]


def test_agreement_is_by_scale_and_of_people_alone_if_a_machine_rates_too() -> None:
    people = [*rate("Ada", "0120"), *rate("Bo", "0120")]
    found = measure_raters("Mine", 3, [*people, *rate("m", "2000", "llm")])
    assert [(one.scale, one.places, one.alpha) for one in found.scales if "people" in one.scale] == [
        ("3 grades, people only", 4, 1.0), ("relevant or not, people only", 4, 1.0),
    ]  # fmt: skip
    assert [one.scale for one in found.scales[:2]] == ["3 grades", "relevant or not"] and found.scales[0].alpha != 1.0
    assert "1.00 for 3 grades, people only" in found.describe()
    assert [one.scale for one in measure_raters("Mine", 3, people).scales] == ["3 grades", "relevant or not"]


@pytest.fixture
def pets(wb: Workbench, folder: Callable[..., Path]) -> Workbench:
    """Two questions of a stored test set over the user's documents."""
    wb.ingest(folder({f"{key}.md": f"# {title}\n\n{text}" for key, (title, text) in TEXTS.items()}), source="Animals")
    made = wb.test_sets.create("Pets")
    wb.test_sets.add_questions(made.id, ["Why do cats purr?", "Who makes honey?"])
    return wb


def ids_of(wb: Workbench) -> tuple[list[str], dict[str, str]]:
    """Return the ids of the questions, and of the documents by title."""
    return [one.id for one in wb.test_sets.load("Pets").questions], {one.title: one.id for one in wb.documents.list()}


def test_two_raters_judge_one_queue_and_their_disagreement_is_settled(pets: Workbench) -> None:
    (first, _), documents = ids_of(pets)
    sets, cats, dogs = pets.test_sets, documents["Cats"], documents["Dogs"]
    sets.judge("Pets", first, cats, "relevant", rater="Ada", reason="It is about purring")
    sets.judge("Pets", first, cats, "not", rater="Bo")
    sets.judge("Pets", first, dogs, "not", rater="Ada")
    assert sets.load("Pets").qrels == {first: {cats: 0, dogs: 0}}  # the lower middle one
    (open_one,) = sets.disagreements("Pets")
    assert (open_one.document, open_one.grades) == (cats, {"Ada": 2, "Bo": 0})
    assert open_one.reasons == {"Ada": "It is about purring"}
    ratings = sets.ratings("Pets")
    assert [(one.rater, one.judgment.grade) for one in ratings] == [("Ada", 2), ("Bo", 0), ("Ada", 0)]
    assert all(one.at for one in ratings)
    with pytest.raises(NotFound, match="The raters are 'Ada', 'Bo'"):
        sets.settle("Pets", "Cy")
    assert sets.settle("Pets", "Ada") == 1
    assert sets.load("Pets").qrels[first] == {cats: 2, dogs: 0}
    assert sets.disagreements("Pets") == []
    sets.judge("Pets", first, cats, "partly", rater="Bo")  # changes Bo's own judgment only
    assert sets.load("Pets").qrels[first][cats] == 2
    assert sets.info("Pets").judgments == 2


def test_an_original_grade_is_one_more_opinion_until_a_person_settles_it(pets: Workbench, tmp_path: Path) -> None:
    (first, second), documents = ids_of(pets)
    sets, cats, bees = pets.test_sets, documents["Cats"], documents["Bees"]
    sets.update("Pets", grades=5)
    (tmp_path / "given.qrels").write_text(f"{first} 0 {cats} 1\n{second} 0 {bees} 2\n")
    assert sets.import_judgments("Pets", tmp_path / "given.qrels").judgments == 2
    sets.judge("Pets", first, cats, 4, rater="Ada")
    assert sets.agreement("Pets").describe() == (
        "Named raters of 'Pets': 1; agreement needs two. Disagreements to settle: 1."
    )
    sets.judge("Pets", second, bees, 2, rater="Ada")  # as the original
    sets.judge("Pets", first, cats, 2, rater="Bob")
    (open_one,) = sets.disagreements("Pets")
    assert (open_one.grades, open_one.counts) == ({"original": 1, "Ada": 4, "Bob": 2}, 1)
    assert sets.load("Pets").qrels == {first: {cats: 1}, second: {bees: 2}}
    sets.judge("Pets", first, cats, 1, judge="agent", rater="weak")  # of no weight if people have judged
    assert sets.disagreements("Pets") == [open_one]
    assert sets.settle("Pets", "original") == 1
    assert (sets.disagreements("Pets"), sets.load("Pets").qrels[first]) == ([], {cats: 1})
    assert sets.export("Pets", tmp_path / "all.csv") == 6
    assert sets.import_judgments("Pets", tmp_path / "all.csv").judgments == 6  # it stays settled
    assert sets.disagreements("Pets") == []
    sets.judge("Pets", first, cats, 3, rater="Bob")  # judged again after it was settled
    (again,) = sets.disagreements("Pets")
    assert (again.grades["Bob"], again.counts) == (3, 1)


def test_an_agent_without_a_name_replaces_no_grade_of_a_person(pets: Workbench, tmp_path: Path) -> None:
    (first, _), documents = ids_of(pets)
    sets, cats = pets.test_sets, documents["Cats"]
    sets.judge("Pets", first, cats, "relevant")
    sets.judge("Pets", first, cats, "not", judge="agent")
    row = f"question,id,document,grade,judge\n{sets.load('Pets').questions[0].text},{first},{cats},not,agent\n"
    (tmp_path / "agent.csv").write_text(row)
    assert sets.import_judgments("Pets", tmp_path / "agent.csv").judgments == 1
    assert [(one.rater, one.judgment.grade) for one in sets.ratings("Pets")] == [("", 2), ("agent", 0)]
    assert sets.load("Pets").qrels == {first: {cats: 2}}
    with pytest.raises(InvalidInput, match="'original' is the grade that a test set came with"):
        sets.judge("Pets", first, cats, "not", rater="original")


def test_each_rater_gets_the_same_queue_whatever_the_others_judged(pets: Workbench, tmp_path: Path) -> None:
    sets = pets.test_sets
    queue, text = sets.pool("Pets", ["keyword", "vector"], depth=3, rater="Ada", on_progress=lambda _: None)
    assert len(queue.items) > 3
    for item in queue.items:
        sets.judge("Pets", item.question_id, item.document, "not", rater="Ada")
    assert sets.pool("Pets", ["keyword", "vector"], depth=3, on_progress=lambda _: None)[0].items == ()
    assert sets.pool("Pets", ["keyword", "vector"], depth=3, rater="Bo", on_progress=lambda _: None) == (queue, text)
    first = queue.items[0]
    sets.judge("Pets", first.question_id, first.document, "relevant", rater="Bo")
    left, _ = sets.pool("Pets", ["keyword", "vector"], depth=3, rater="Bo", on_progress=lambda _: None)
    assert {one.document for one in queue.items if one not in left.items} == {first.document}
    assert (len(left.items), len(sets.disagreements("Pets"))) == (len(queue.items) - 1, 1)


def test_the_scale_of_raters_is_kept(pets: Workbench) -> None:
    (first, _), documents = ids_of(pets)
    sets = pets.test_sets
    sets.update("Pets", grades=4)
    sets.judge("Pets", first, documents["Cats"], "perfect", rater="Ada")
    assert sets.load("Pets").qrels[first][documents["Cats"]] == 3
    with pytest.raises(InvalidInput, match=r"Invalid grade 4 of a rater; use '0 \(not\)'"):
        sets.judge("Pets", first, documents["Cats"], 4, rater="Ada")
    with pytest.raises(InvalidInput, match="has the grade 3; 3 grades end at 2"):
        sets.update("Pets", grades=3)
    sets.create("Alone", grades=4)  # also without the name of a rater
    [own] = sets.add_questions("Alone", ["Why do cats purr?"])
    sets.judge("Alone", own.id, documents["Cats"], "perfect")
    with pytest.raises(InvalidInput, match="has the grade 3; 3 grades end at 2"):
        sets.update("Alone", grades=3)
    with pytest.raises(InvalidInput, match="Invalid number of grades 6"):
        sets.update("Pets", grades=6)
    with pytest.raises(InvalidInput, match="Invalid name '' of a rater"):
        sets.judge("Pets", first, documents["Cats"], 1, rater="  ")


def test_judgments_go_out_and_come_back(pets: Workbench, tmp_path: Path) -> None:
    (first, second), documents = ids_of(pets)
    sets = pets.test_sets
    sets.judge("Pets", first, documents["Cats"], "relevant", rater="Ada", reason="Says so")
    sets.judge("Pets", first, documents["Cats"], "partly", rater="Bo")
    sets.judge("Pets", second, documents["Bees"], "relevant", rater="Bo")
    assert sets.export("Pets", tmp_path / "all.csv") == 3
    assert sets.export("Pets", tmp_path / "bo.qrels", format="qrels", rater="Bo") == 2
    assert (tmp_path / "bo.qrels").read_text() == (
        f"{first} 0 {documents['Cats']} 1\n{second} 0 {documents['Bees']} 2\n"
    )
    assert sets.export("Pets", tmp_path / "beir", format="beir") == 2
    before = [(one.rater, one.judgment.place, one.judgment.grade, one.reason) for one in sets.ratings("Pets")]
    for rater in ("Ada", "Bo"):
        for question, title in ((first, "Cats"), (second, "Bees")):
            sets.judge("Pets", question, documents[title], None, rater=rater)
    assert sets.ratings("Pets") == []
    assert sets.import_judgments("Pets", tmp_path / "all.csv").judgments == 3
    after = [(one.rater, one.judgment.place, one.judgment.grade, one.reason) for one in sets.ratings("Pets")]
    assert sorted(after) == sorted(before)
    lines = (tmp_path / "bo.qrels").read_text() + f"{first} 0 nothing 1\nq9 0 {documents['Cats']} 1\n"
    (tmp_path / "cy.qrels").write_text(lines + f"{second} 0 {documents['Cats']} 7\n")
    read = sets.import_judgments("Pets", tmp_path / "cy.qrels", rater="Cy")
    assert (read.judgments, len(read.problems)) == (2, 3)
    assert sets.agreement("Pets").pairs[-1].places > 0


def test_an_llm_is_a_rater_with_its_base_rate_and_consistency(
    make_settings: Callable[..., Settings], start_judge: StartJudge, folder: Callable[..., Path], tmp_path: Path
) -> None:
    settings = make_settings(llm_base_url=start_judge("good")._base_url, llm_model="small")
    with Workbench.open(settings=settings) as wb:
        wb.ingest(folder({"cats.md": "# Cats\n\nCats purr when they are content."}), source="Animals")
        sets, (cats,) = wb.test_sets, wb.documents.list()
        sets.create("Pets")
        with pytest.raises(InvalidInput, match="Nothing in 'Pets' has been judged"):
            sets.rate_by_llm("Pets")
        purr, honey = sets.add_questions("Pets", ["Why do cats purr?", "Who makes honey?"])
        sets.judge("Pets", purr.id, cats.id, "relevant", rater="Ada")
        sets.judge("Pets", honey.id, cats.id, "not", rater="Ada")
        rated = sets.rate_by_llm("Pets", rounds=2)
        assert (rated.rater, rated.judged, rated.left_out, dict(rated.reasons)) == ("small", 4, 0, {})
        job = enqueue_rating(wb, "Pets")  # as the app does; the same grades take the place of these
        wb.work(make_runners(wb))
        ended = wb.jobs.wait(job.id, timeout=60)
        assert (ended.status, ended.message) == ("completed", "4 judgments stored by small.")
        found = sets.agreement("Pets")
        llm = next(one for one in found.raters if one.kind == "LLM")
        assert (llm.rater, llm.base_rate, llm.consistency) == ("small", 0.5, 1.0)
        assert found.scales[0].alpha == 1.0 and found.disagreements == 0
        assert sets.load("Pets").qrels == {purr.id: {cats.id: 2}, honey.id: {cats.id: 0}}
        with pytest.raises(InvalidInput, match="The rater 'small' is an agent or LLM"):
            sets.judge("Pets", purr.id, cats.id, "not", rater="small")
        # out and in again, an LLM stays one
        assert sets.export("Pets", tmp_path / "all.csv") == 6
        before = [(one.rater, one.judge == "llm", one.judgment.grade) for one in sets.ratings("Pets")]
        assert sets.import_judgments("Pets", tmp_path / "all.csv").judgments == 6
        assert sorted((one.rater, one.judge == "llm", one.judgment.grade) for one in sets.ratings("Pets")) == sorted(
            before
        )


def test_the_command_settles_what_two_files_disagree_on(
    pets: Workbench, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (first, second), documents = ids_of(pets)
    monkeypatch.setenv("WORKBENCH_HOME", str(pets.settings.home))
    monkeypatch.setenv("WORKBENCH_DATABASE_URL", pets.settings.database_url.get_secret_value())
    monkeypatch.setenv("WORKBENCH_EMBEDDING_MODEL", pets.settings.embedding_model)
    header = "id,question,document,title,text,grade"
    for name, grades in (("ada", ("relevant", "not")), ("bo", ("relevant", "relevant"))):
        rows = [f"{q},?,{documents['Cats']},Cats,,{g}" for q, g in zip((first, second), grades, strict=True)]
        table = "\n".join([header, *rows])
        (tmp_path / f"{name}.csv").write_text(table.replace(",", ";") if name == "bo" else table)
        assert main(["judgments", "import", "Pets", str(tmp_path / f"{name}.csv"), "--rater", name.title()]) == 0
    capsys.readouterr()
    assert main(["judgments", "agreement", "Pets", "--json"]) == 0
    shown = capsys.readouterr()
    value = json.loads(shown.out)
    assert (value["disagreements"], value["pairs"][0]["agreement"]) == (1, 0.5)
    assert "Disagreements to settle: 1." in shown.err
    assert main(["judgments", "disagreements", "Pets"]) == 0
    assert re.search(r"Ada 0, Bo 2\W+0\b", capsys.readouterr().out)  # and the grade that counts
    assert main(["judgments", "disagreements", "Pets"]) == 0
    assert "Counts" in capsys.readouterr().out
    chosen = ["--question", second, "--document", documents["Cats"], "--grade", "not", "--reason", "No honey"]
    assert main(["judgments", "settle", "Pets", *chosen]) == 0
    assert "Disagreements settled: 1. To settle: 0." in capsys.readouterr().out
    assert main(["judgments", "settle", "Pets"]) == 2
    assert main(["judgments", "export", "Pets", str(tmp_path / "out.qrels"), "--format", "qrels"]) == 0
    assert (
        tmp_path / "out.qrels"
    ).read_text() == f"{first} 0 {documents['Cats']} 2\n{second} 0 {documents['Cats']} 0\n"
    assert main(["judgments", "scale", "Pets", "5"]) == 0
    assert "0 not, 1 related, 2 partly, 3 relevant, 4 perfect" in capsys.readouterr().out

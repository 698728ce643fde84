"""Parts of the questions: what belongs to each, and differences and regressions that only a part shows."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from evals.evaluation import compare_in_slices
from tests.evals.conftest import WriteTestSet
from tests.evals.test_baseline import ASKED, TEXTS, WORDS, run
from workbench import Workbench
from workbench.errors import InvalidInput

AREAS = {word: ("north" if n < 6 else "south") for n, word in enumerate(WORDS)}


@pytest.fixture
def areas(beir: WriteTestSet) -> Path:
    """A test set whose documents are in two areas, and whose first question names another one itself."""
    root = beir(TEXTS, ASKED)
    corpus, queries = root / "corpus.jsonl", root / "queries.jsonl"
    documents = [json.loads(line) for line in corpus.read_text().splitlines()]
    corpus.write_text("\n".join(json.dumps({**one, "metadata": {"area": AREAS[one["_id"]]}}) for one in documents))
    asked = [json.loads(line) for line in queries.read_text().splitlines()]
    asked[0]["metadata"] = {"area": ["west", "north"]}
    queries.write_text("\n".join(map(json.dumps, asked)))
    return root


def test_each_question_is_in_the_slices_of_its_own_metadata_or_of_its_relevant_documents(
    wb: Workbench, areas: Path
) -> None:
    result = wb.evaluate(areas, ["keyword", "hybrid"], on_progress=lambda progress: None)
    by_area = result.slices("area")
    assert {one.name: one.questions for one in by_area.slices} == {"north": 6, "south": 6, "west": 1}
    assert {one.name: one.questions for one in result.slices("length").slices} == {"1 to 4 words": 12}
    assert {one.name: one.questions for one in result.slices("type").slices} == {"text": 12}
    assert {one.name for one in result.slices("tag").slices} == {"(none)"}
    frame = by_area.to_pandas()
    assert sorted(frame.columns) == ["differs", "hybrid", "keyword", "questions"]
    assert frame.loc["south", "keyword"] == 1.0
    with pytest.raises(InvalidInput, match="has 'colour' in its metadata; use 'length', 'origin'"):
        result.slices("colour")


def test_slices_by_length_go_from_short_to_long(wb: Workbench, beir: WriteTestSet) -> None:
    relevant = {next(iter(TEXTS)): 1}
    asked = {f"q{n}": ("tides " * words, relevant) for n, words in enumerate((12, 12, 12, 3, 6, 6, 25))}
    slices = wb.evaluate(beir(TEXTS, asked), ["keyword", "fuzzy"], on_progress=lambda progress: None).slices("length")
    assert [one.questions for one in slices.slices] == [1, 2, 3, 1]


@pytest.mark.parametrize("option", [["--by", "colour"], ["--refusals"]])
def test_the_command_finds_a_wrong_key_before_it_searches(wb: Workbench, areas: Path, option: list[str]) -> None:
    with pytest.raises(InvalidInput, match=r"has 'colour' in its metadata|is marked as without an answer"):
        run(wb, str(areas), "--strategies", "keyword", "--run-file", "mine=lacking", *option)  # it is read next


def test_the_language_of_a_slice_is_that_of_the_relevant_documents(wb: Workbench, beir: WriteTestSet) -> None:
    texts = {
        "cats": ("Cats", "Cats purr when they are content, and they hunt at night when it is quiet."),
        "bienen": ("Bienen", "Die Bienen sammeln den Nektar und machen daraus im Sommer den Honig für den Winter."),
    }
    asked = {"q1": ("Why do cats purr?", {"cats": 1}), "q2": ("Wer macht Honig?", {"bienen": 1})}
    sliced = wb.evaluate(str(beir(texts, asked)), ["keyword"], metrics=["mrr@10"]).slices("language")
    assert {one.name for one in sliced.slices} == {"english", "german"}


def test_a_planted_difference_is_found_in_its_slice_and_intervals_are_wider_than_alone() -> None:
    rng = np.random.default_rng(3)
    ids = [f"q{n}" for n in range(300)]
    best = {key: float(value) for key, value in zip(ids, rng.uniform(0.4, 0.6, 300), strict=True)}
    other = {
        key: value - (0.2 if n < 60 else -0.001) + rng.normal(0, 0.1) for n, (key, value) in enumerate(best.items())
    }
    groups = {f"part {n}": ids[n * 60 : n * 60 + 60] for n in range(5)}
    slices = compare_in_slices("part", "ndcg@10", groups, {"a": best, "b": other}).slices
    assert [one.name for one in slices if one.against_best[0].significant] == ["part 0"]
    [found] = slices[0].against_best
    assert found.comparisons == 5 and found.difference == pytest.approx(-0.2, abs=0.04)
    alone = (
        compare_in_slices("part", "ndcg@10", {"part 0": ids[:60]}, {"a": best, "b": other}).slices[0].against_best[0]
    )
    width, width_alone = found.interval[1] - found.interval[0], alone.interval[1] - alone.interval[0]
    assert width_alone * 1.2 < width < width_alone * 1.5  # normal quantiles: 2.576 / 1.96 = 1.31


def test_equal_runs_differ_in_some_slice_no_more_often_than_the_level_says() -> None:
    rng = np.random.default_rng(11)
    ids = [f"q{n}" for n in range(100)]
    groups = {f"part {n}": ids[n * 20 : n * 20 + 20] for n in range(5)}
    wrong = 0
    for _ in range(200):
        a, b = (dict(zip(ids, rng.normal(size=100).tolist(), strict=True)) for _ in range(2))
        slices = compare_in_slices("part", "ndcg@10", groups, {"a": a, "b": b}).slices
        wrong += any(one.against_best[0].significant for one in slices)
    assert wrong <= 0.05 * 200 + 2 * (200 * 0.05 * 0.95) ** 0.5  # two standard deviations


def test_a_regression_of_one_area_fails_the_check_though_the_whole_hides_it(
    wb: Workbench, areas: Path, tmp_path: Path
) -> None:
    file = tmp_path / "baseline.json"
    payload, _, said = run(wb, str(areas), "--strategies", "keyword", "--by", "area", "--save", str(file))
    assert [one["name"] for one in payload["slices"][0]["slices"]] == ["north", "south", "west"]
    assert "nDCG@10 by area" in said
    saved = json.loads(file.read_text())
    values = saved["questions"]["keyword"]["ndcg@10"]
    for key in values:  # as if the north was worse then, and the south better
        values[key] = 0.2 if int(key[1:]) < 6 else 1.2
    file.write_text(json.dumps(saved))
    arguments = (str(areas), "--strategies", "keyword", "--baseline", str(file))
    assert run(wb, *arguments)[1] == 0
    _, code, said = run(wb, *arguments, "--by", "area")
    assert code == 1
    assert "keyword on area south got worse: ndcg@10 -0.2000" in said and "area north got worse" not in said

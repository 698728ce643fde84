"""``wb.evaluate``, ``wb.test_sets`` and run files: a retriever, a run file and a built-in strategy, compared."""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pandas as pd
import pytest

import evals
from evals.experiments.runs import read_run_text
from evals.test_set import MAX_IMPORT_CHARS
from tests.evals.conftest import ASKED, TEXTS, WriteTestSet
from workbench import Workbench
from workbench.errors import Conflict, InvalidInput
from workbench.retrieval.strategies import BUILT_IN_STRATEGIES, STRATEGIES


def quiet(_: object) -> None:
    """Show no progress."""


@pytest.fixture(autouse=True)
def forget_own_strategies() -> Iterator[None]:
    """Remove the strategies that a test added."""
    yield
    for name in [name for name in STRATEGIES if name not in BUILT_IN_STRATEGIES]:
        STRATEGIES.remove(name)


def first_judged(question: str) -> str:
    """Return the best judged document of a question."""
    grades = next(grades for text, grades in ASKED.values() if text == question)
    return max(grades, key=lambda document: grades[document])


class PerfectRetriever:
    """A retriever that knows the relevant documents."""

    def invoke(self, question: str) -> list[str]:
        """Return the key of the best document."""
        return [first_judged(question)]


def test_a_retriever_a_run_file_and_a_strategy_are_compared(wb: Workbench, beir: WriteTestSet, tmp_path: Path) -> None:
    worst = {key: [document for document in TEXTS if document not in grades] for key, (_, grades) in ASKED.items()}
    rows = [f"{key} Q0 {document} 1 {9 - n} x" for key, found in worst.items() for n, document in enumerate(found)]
    run_file = tmp_path / "worst.trec"
    run_file.write_text("\n".join([*rows, "q-other Q0 d1 1 1 x"]), encoding="utf-8")
    retriever = PerfectRetriever()
    result = wb.evaluate(
        beir(), [retriever, "keyword"], ["hit@1", "ndcg@10"], run_files={"worst": run_file}, on_progress=quiet
    )
    assert result.best == "perfect-retriever"
    assert result.strategies["perfect-retriever"].means["hit@1"] == 1.0
    assert result.strategies["worst"].means["ndcg@10"] == 0.0
    frame = result.to_pandas()
    assert frame.index[0] == "perfect-retriever" and frame.loc["worst", "hit@1"] == 0.0
    assert list(result.questions.columns[:2]) == ["question", "perfect-retriever"]
    assert len(result.questions) == len(result.run.test_set.answerable)
    difference = result.compare("perfect-retriever", "worst")
    assert (difference.difference, difference.losses) == (1.0, 0)
    page = result._repr_html_()
    assert page.index("<td>perfect-retriever") < page.index("<td>worst")
    assert any("worst answers 1 question that the test set lacks" in note for note in result.notes)
    assert result.plot().to_dict()["title"]["text"] == result.run.test_set.name
    again = wb.evaluate(beir(), retriever_names := ["perfect-retriever"], ["hit@1"], on_progress=quiet)
    assert list(again.strategies) == retriever_names
    with pytest.raises(InvalidInput, match="There is no run 'best'"):
        result.compare("best", "worst")


def test_failures_of_a_retriever_are_counted(wb: Workbench, beir: WriteTestSet) -> None:
    def broken(question: str, limit: int) -> list[str]:
        raise OSError("disk")

    result = wb.evaluate(beir(), {"broken": broken}, ["hit@1"], on_progress=quiet)
    questions = len(result.run.test_set.answerable)
    assert any(
        note.startswith(f"broken failed on {questions} of {questions} question") and "OSError: disk" in note
        for note in result.notes
    )


def test_a_retriever_over_other_documents_is_reported(wb: Workbench, beir: WriteTestSet) -> None:
    def elsewhere(question: str, limit: int) -> list[tuple[str, str, float]]:
        return [("page-7", "Text of a document that is not in the test set.", 0.9)]

    def sometimes(question: str, limit: int) -> list[tuple[str, str, float]]:
        return elsewhere(question, limit) if question == texts[0] else [(first_judged(question), "", 0.9)]

    texts = [text for text, _ in ASKED.values()]
    result = wb.evaluate(beir(), {"elsewhere": elsewhere, "sometimes": sometimes}, ["hit@1"], on_progress=quiet)
    questions = len(result.run.test_set.answerable)
    assert result.strategies["elsewhere"].means["hit@1"] == 0.0
    (note,) = [note for note in result.notes if "found no document" in note]
    assert note.startswith(f"elsewhere found no document of this test set on {questions} of {questions} questions; ")


def test_test_sets_come_from_pairs_and_tables(wb: Workbench, folder: Callable[..., Path]) -> None:
    wb.ingest(
        folder({"owls.md": "# Owls\n\nOwls hunt at night.", "bees.md": "# Bees\n\nBees dance."}), on_progress=quiet
    )
    made = wb.test_sets.from_pairs("Pairs", [("who hunts at night?", "Owls"), ("who dances?", ["Bees", "Owls"])])
    assert (made.questions, made.judgments) == (2, 3)
    assert wb.evaluate(made, "keyword", ["hit@1"], on_progress=quiet).strategies["keyword"].means == {"hit@1": 1.0}
    frame = pd.DataFrame({"question": ["who dances?", "who digs?"], "document": ["Bees", "Moles"], "grade": [2, None]})
    frame["metadata.team"] = ["meadow", "garden"]
    frame["Remarks"] = "from a spreadsheet"
    notes = (
        r"2 notes on 'Table': The column 'remarks' is unknown and was ignored; .* Row 3: There is no document 'Moles'"
    )
    with pytest.warns(UserWarning, match=notes):
        table = wb.test_sets.from_pandas("Table", frame)
    stored = wb.test_sets.load(table.id)
    assert [one.grade for one in stored.judgments] == [2]
    assert {one.text: one.metadata for one in stored.questions}["who dances?"] == {"team": "meadow"}
    with pytest.raises(InvalidInput, match="No row of 'None' can be used"):
        wb.test_sets.from_pairs("None", [("who digs?", "Moles")])
    assert [one.title for one in wb.test_sets.list()] == ["Pairs", "Table"]
    with pytest.raises(InvalidInput, match="Invalid pair"):
        wb.test_sets.from_pairs("Odd", [("alone",)])  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("name", ["tabs.run", "plain.gz", "run.trec.gz", "packed.run", "cut.gz"])
def test_run_files_may_have_tabs_or_be_compressed(wb: Workbench, beir: WriteTestSet, tmp_path: Path, name: str) -> None:
    rows = "".join(f"{key}\tQ0\t{first_judged(text)}\t1\t0.5\tmy run\r\n" for key, (text, _) in ASKED.items())
    packed = gzip.compress(rows.encode())
    plain = {"tabs.run": rows.encode(), "plain.gz": rows.encode(), "cut.gz": packed[:30]}
    (tmp_path / name).write_bytes(plain.get(name, packed))
    run_files = {"theirs": tmp_path / name}
    if name == "cut.gz":
        with pytest.raises(InvalidInput, match=r"is unreadable \(it is damaged"):
            wb.evaluate(beir(), ["keyword"], ["hit@1"], run_files=run_files, on_progress=quiet)
        with pytest.raises(InvalidInput, match=r"^cut.gz is unreadable \(it is damaged"):  # as an upload
            read_run_text(name, plain[name])
        return
    assert read_run_text(name, (tmp_path / name).read_bytes()) == rows.replace("\r\n", "\n")
    result = wb.evaluate(beir(), ["keyword"], ["hit@1"], run_files=run_files, on_progress=quiet)
    assert result.strategies["theirs"].means == {"hit@1": 1.0}


def test_a_small_file_that_unpacks_to_a_large_one_is_refused(wb: Workbench, beir: WriteTestSet, tmp_path: Path) -> None:
    bomb = gzip.compress(b"q1 Q0 cats 1 0.5 mine\n" * (MAX_IMPORT_CHARS // 22 + 1), 1)
    (tmp_path / "bomb.txt").write_bytes(bomb)
    assert len(bomb) < 2_000_000
    reason = r"bomb.txt.* \(it has over 200 million characters\)"
    with pytest.raises(InvalidInput, match=reason):
        wb.evaluate(beir(), ["keyword"], run_files={"theirs": tmp_path / "bomb.txt"}, on_progress=quiet)
    with pytest.raises(InvalidInput, match=reason):
        read_run_text("bomb.txt", bomb)  # an upload
    stored = wb.test_sets.from_folder(beir())
    with pytest.raises(InvalidInput, match=reason):
        wb.test_sets.import_judgments(stored.id, tmp_path / "bomb.txt")


def test_a_run_file_is_a_column_of_a_stored_experiment(wb: Workbench, beir: WriteTestSet) -> None:
    info = wb.test_sets.from_folder(beir())
    made = wb.experiments.create("With a file", info.id, evals.make_cells(["keyword"]), metrics=["hit@1"])
    wb.experiments.run(made.id)
    rows = [f'"{text}",{first_judged(text)},{n}' for n, (text, _) in enumerate(ASKED.values())]
    content = "\n".join(["question,document,score", *rows])
    added = wb.experiments.add_run_file(made.id, "gold", content)
    assert added.notes == ()
    wb.experiments.add_run_file(made.id, "gold", content)  # replaces the first
    assert wb.experiments.estimate(made.id).startswith("5 searches; no price is known. It takes")  # it costs nothing
    wb.experiments.run(made.id)  # asks no run file
    lines = evals.make_leaderboard(wb.experiments.results(made.id), "hit@1")
    assert [line.label for line in lines if line.label != "keyword"] == ["gold (run file)"]
    assert next(line for line in lines if line.label != "keyword").metrics["hit@1"] == 1.0
    with pytest.raises(InvalidInput, match="not a strategy's name"):
        wb.experiments.add_run_file(made.id, "rerank", content)
    with pytest.raises(InvalidInput, match="Line 1 of the run file 'x' is not in TREC form"):
        wb.experiments.add_run_file(made.id, "x", "what is this")
    with pytest.raises(InvalidInput, match="contains none of the questions"):
        wb.experiments.add_run_file(made.id, "x", "q Q0 d 1 1 t")


def test_a_stored_experiment_with_an_unknown_strategy_reports_it(wb: Workbench, beir: WriteTestSet) -> None:
    info = wb.test_sets.from_folder(beir())
    wb.strategies.add("mine", PerfectRetriever())
    made = wb.experiments.create("Mine", info.id, evals.make_cells(["mine"]), metrics=["hit@1"])
    wb.strategies.remove("mine")
    with pytest.raises(InvalidInput, match="The strategy 'mine' is not registered in this process"):
        wb.experiments.run(made.id)
    with pytest.raises(Conflict):
        wb.strategies.remove("keyword")


def test_a_run_file_with_semicolons_is_read_and_repeated_documents_are_reported(
    wb: Workbench, beir: WriteTestSet, tmp_path: Path
) -> None:
    run_file = tmp_path / "theirs.csv"
    run_file.write_text("query;document;score\nq1;dogs;0,2\nq1;cats;0,9\nq1;cats;0.1\nq2;dogs;1\n")  # 0,9 is 0.9
    result = wb.evaluate(beir(), ["keyword"], ["hit@1"], run_files={"theirs": run_file}, on_progress=quiet)
    values = result.strategies["theirs"].values["hit@1"]
    assert [values[key] for key in ("q1", "q2", "q3")] == [1.0, 1.0, 0.0]
    assert "theirs repeats documents in 1 line; the best rank of each counts." in result.notes


@pytest.mark.parametrize("score", ["1,234", "-1,234.5", "1,234,567", "1.234,5", "1.234.567", "1'234", "1’234,5"])
def test_numbers_with_separators_of_thousands_are_refused_with_the_reason(
    wb: Workbench, beir: WriteTestSet, tmp_path: Path, score: str
) -> None:
    rows = {"theirs.csv": f"query;document;score\nq1;dogs;987\nq1;cats;0,875\nq1;fish;{score}\n"}
    rows |= {"theirs.run": f"q1 Q0 dogs 1 987 t\nq1 Q0 cats 2 1.234 t\nq1 Q0 owls 2 10,5 t\nq1 Q0 fish 3 {score} t\n"}
    reason = re.escape(f"{score!r} may have a separator of thousands; write 1234.5, not 1,234.5.")
    for name, text in rows.items():
        (tmp_path / name).write_text(text)
        with pytest.raises(InvalidInput, match=f"Line 4 of the run file 'theirs': {reason}"):
            wb.evaluate(beir(), ["keyword"], run_files={"theirs": tmp_path / name}, on_progress=quiet)
    (tmp_path / "qrels.txt").write_text(f"q2 0 dogs 1\nq1 0 cats {score}\n")
    stored = wb.test_sets.from_folder(beir())
    [problem] = wb.test_sets.import_judgments(stored.id, tmp_path / "qrels.txt").problems
    assert re.fullmatch(f"qrels.txt, line 2: {reason}", problem)

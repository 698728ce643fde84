"""Reading test sets: BEIR folders as found in practice, and the sample."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from evals.experiments.leaderboard import describe_weaknesses
from evals.experiments.runs import Ranking, score_answers
from evals.test_sets.folders import load_test_set
from tests.evals.conftest import WriteTestSet
from workbench.errors import InvalidInput
from workbench.sample import questions_dir


@pytest.mark.parametrize(
    ("qrels", "header"),
    [("qrels.tsv", ""), ("qrels/test.tsv", "query-id\tcorpus-id\tscore"), ("qrels.tsv", "query-id\tcorpus-id\tscore")],
)
def test_qrels_are_read_wherever_they_lie_with_or_without_a_header(beir: WriteTestSet, qrels: str, header: str) -> None:
    test_set = load_test_set(beir(qrels=qrels, header=header))
    assert len(test_set.questions) == 5
    assert test_set.qrels["q5"] == {"owls": 2, "cats": 1}
    assert [item.key for item in test_set.corpus.documents] == ["cats", "dogs", "fish", "bees", "owls"]


def test_the_four_columns_of_trec_eval_are_read_too(beir: WriteTestSet) -> None:
    root = beir()
    (root / "qrels.tsv").write_text("q1\t0\tcats\t1\nq2\tQ0\tdogs\t2\n")
    assert load_test_set(root).qrels == {"q1": {"cats": 1}, "q2": {"dogs": 2}}


def test_a_first_judgment_that_cannot_be_read_is_no_header(beir: WriteTestSet) -> None:
    root = beir()
    (root / "qrels.tsv").write_text("q1\tcats\thigh\nq2\tdogs\t2\n")
    test_set = load_test_set(root)
    assert test_set.qrels == {"q2": {"dogs": 2}}
    (problem,) = test_set.problems
    assert problem.startswith("qrels.tsv, line 1: expected query, document and grade")


def test_two_grades_of_one_pair_are_named_and_the_later_one_is_used(beir: WriteTestSet) -> None:
    root = beir()
    (root / "qrels.tsv").write_text("q1\tcats\t1\nq1\tcats\t1\nq1\tcats\t2\n")
    test_set = load_test_set(root)
    assert test_set.qrels == {"q1": {"cats": 2}}
    assert test_set.problems == ("qrels.tsv, line 3: 'cats' has two grades for 'q1'; this one is used.",)


def test_fields_may_have_the_names_of_other_collections(beir: WriteTestSet) -> None:
    root = beir()
    (root / "queries.jsonl").write_text('{"query_id": 1, "query": "Who purrs?"}\n')
    (root / "corpus.jsonl").write_text('{"docid": "cats", "contents": "Cats purr."}\n')
    (root / "qrels.tsv").write_text("1\tcats\t1\n")
    test_set = load_test_set(root)
    assert [(question.id, question.text) for question in test_set.questions] == [("1", "Who purrs?")]
    assert [(item.key, item.load()) for item in test_set.corpus.documents] == [("cats", b"Cats purr.")]


def test_a_broken_line_of_any_file_is_named_and_the_others_are_read(beir: WriteTestSet) -> None:
    root = beir()
    numbers = []
    for name, line in (("queries.jsonl", '{"_id": "q9"}'), ("qrels.tsv", "q1 cats"), ("corpus.jsonl", "{oops")):
        lines = (root / name).read_text().rstrip("\n").split("\n")
        (root / name).write_text("\n".join([*lines, line, ""]))
        numbers.append(f"{name}, line {len(lines) + 1}")
    test_set = load_test_set(root)
    assert (len(test_set.questions), len(test_set.corpus.documents)) == (5, 5)
    named = [problem.partition(":")[0].partition(" is not")[0] for problem in test_set.problems]
    assert named == numbers


@pytest.mark.parametrize("name", ["qrels.txt", "qrels/dev.tsv", "dev.tsv", "qrels/test.txt"])
def test_judgments_are_found_under_the_usual_names_and_between_blanks(beir: WriteTestSet, name: str) -> None:
    root = beir()
    (root / "qrels.tsv").unlink()
    (root / name).parent.mkdir(exist_ok=True)
    (root / name).write_text("q1 0 cats 1\nq2 0 dogs 2\n")
    assert load_test_set(root).qrels == {"q1": {"cats": 1}, "q2": {"dogs": 2}}
    (root / "qrels").mkdir(exist_ok=True)
    (root / "qrels" / "train.tsv").write_text("q1\tdogs\t1\n")
    (note,) = load_test_set(root).problems
    assert note == f"The judgments are from {'qrels/train.tsv' if name == 'dev.tsv' else name}; " + (
        "dev.tsv is not used." if name == "dev.tsv" else "qrels/train.tsv is not used."
    )


def test_a_folder_around_the_test_set_is_opened(beir: WriteTestSet) -> None:
    inner = beir(name="unpacked/animals")
    found = load_test_set(inner.parent)
    assert (found.name, found.qrels) == ("animals", load_test_set(inner).qrels)


def test_a_question_that_is_a_document_is_left_out_of_its_own_ranking(beir: WriteTestSet) -> None:
    asked = {"cats": ("Cats purr.", {"dogs": 1}), "fish": ("Fish?", {"fish": 1})}
    test_set = load_test_set(beir(asked=asked))
    answers = {key: Ranking(key, (key, "dogs"), (), 1.0) for key in asked}
    run = score_answers(test_set, "keyword", {}, answers, ["mrr@10"])
    assert run.values["mrr@10"] == {"cats": 1.0, "fish": 1.0}  # fish is judged relevant to itself, and stays
    assert [answer.documents for answer in run.answers.values()] == [("dogs",), ("fish", "dogs")]
    sentence = "Left out of the ranking of a question that is itself a document: 1 time."
    assert sentence in describe_weaknesses(test_set, {"keyword": run}, "mrr@10")


@pytest.mark.parametrize(
    "rows",
    [
        "q1, cats, 1\nq2, dogs, 2\n",
        'query id; document id; score\nq1; "cats"; 1\nq2;dogs;2\n',
        "q1 0 cats 1\nq2 0 dogs 2\n",
        f"query,document,grade\nq1,cats,1\nq1,{'x' * 200_000},1\nq2,dogs,2\n",
    ],
)
def test_qrels_may_be_a_csv_with_blanks_and_overlong_cells(beir: WriteTestSet, rows: str) -> None:
    root = beir()
    (root / "qrels.tsv").write_text(rows)
    test_set = load_test_set(root)
    assert test_set.qrels == {"q1": {"cats": 1}, "q2": {"dogs": 2}}
    assert [one[:18] for one in test_set.problems] == ["qrels.tsv, line 3:"] * ("xxx" in rows)


def test_a_header_may_come_after_empty_lines_and_ids_may_hold_whatever_ends_no_line(beir: WriteTestSet) -> None:
    root = beir(asked={"1": ("Cats?", {}), "\u20282\x85x": ("Dogs?", {})})
    rows = "\r\n\t\r\nquery-id\tcorpus-id\tscore\r\n1\tca\x00ts\t1.0\r\n\r\n\u20282\x85x\tdogs\t2\r\n"
    (root / "qrels.tsv").write_bytes(rows.encode())
    assert load_test_set(root).qrels == {"1": {"cats": 1}, "2\x85x": {"dogs": 2}}


def test_the_sample_takes_its_corpus_from_its_articles() -> None:
    test_set = load_test_set("sample")
    assert load_test_set(questions_dir()).corpus.hash == test_set.corpus.hash
    judged = {document for grades in test_set.qrels.values() for document in grades}
    assert len(test_set.answerable) == 125
    assert judged <= {item.key for item in test_set.corpus.documents}


def test_a_changed_word_changes_the_corpus_hash_and_the_order_of_the_judgments_changes_nothing(
    beir: WriteTestSet,
) -> None:
    first = load_test_set(beir(name="a"))
    root = beir(name="b")
    (root / "qrels.tsv").write_text("\n".join(reversed((root / "qrels.tsv").read_text().splitlines())))
    assert load_test_set(root).questions_hash == first.questions_hash
    assert load_test_set(root).corpus.hash == first.corpus.hash
    changed = beir({"cats": ("Cats", "Cats hiss.")}, {"q1": ("Why?", {"cats": 1})}, name="c")
    assert load_test_set(changed).corpus.hash != first.corpus.hash


def test_a_question_without_anything_relevant_is_not_answerable(beir: WriteTestSet) -> None:
    test_set = load_test_set(beir(asked={"q1": ("Cats?", {"cats": 1}), "q2": ("Dogs?", {"dogs": 0}), "q3": ("?", {})}))
    assert [question.id for question in test_set.answerable] == ["q1"]
    assert test_set.spread(5).questions == test_set.answerable


def test_some_questions_of_a_test_set_are_taken_from_all_of_its_order() -> None:
    sample = load_test_set("sample")
    assert [question.id for question in sample.spread(5).answerable] == ["q001", "q026", "q051", "q076", "q101"]
    assert len(sample.spread(10_000).questions) == len(sample.questions)


@pytest.mark.parametrize(
    ("file", "content", "says"),
    [
        ("corpus.jsonl", '{"text": "x"}', "line 1 has no '_id'"),
        ("corpus.jsonl", "", "corpus.jsonl is empty"),
        ("queries.jsonl", "[1]", "line 1 is not a JSON object"),
        ("queries.jsonl", "{", "line 1 is not JSON"),
        ("queries.jsonl", '{"id": "q1", "text": " "}', "has no text"),
        ("qrels.tsv", "q1\tcats\nq2 dogs", "line 1: expected query, document and grade"),
        ("qrels.tsv", "nobody\tcats\t1", "No question of"),
        ("qrels.tsv", "q1\tcats\t0.5", "line 1: the grade 0.5 is not a whole number from -100 to 100"),
        ("qrels.tsv", "q1\tcats\t3000000000", "line 1: the grade 3e+09"),
        ("spans.jsonl", '{"question_id": "q1", "document": "cats", "grade": 1, "start": 5, "end": 5}', "from 5 to 5"),
        ("spans.jsonl", '{"question_id": "q1", "document": "cats", "grade": 1, "start": -1, "end": 5}', "from -1 to 5"),
    ],
)
def test_what_cannot_be_read_is_named_with_its_line(beir: WriteTestSet, file: str, content: str, says: str) -> None:
    root = beir()
    (root / file).write_text(content)
    with pytest.raises(InvalidInput) as raised:
        load_test_set(root).corpus.documents
    assert says in str(raised.value)


@pytest.mark.parametrize("file", ["corpus.jsonl", "queries.jsonl", "qrels.tsv"])
def test_bytes_that_are_not_utf_8_cost_one_line(beir: WriteTestSet, file: str) -> None:
    root = beir()
    kept = load_test_set(root)
    (root / file).write_bytes((root / file).read_bytes().rstrip(b"\n") + b"\nq\xff1\td\xe9\t1\n")
    test_set = load_test_set(root)
    assert len(test_set.corpus.documents) == len(kept.corpus.documents)
    assert (test_set.questions, test_set.judgments) == (kept.questions, kept.judgments)
    lines = len((root / file).read_bytes().splitlines())
    assert test_set.problems == (f"{file}, line {lines} is not UTF-8 text; convert the line.",)


@pytest.mark.parametrize("missing", ["corpus.jsonl", "queries.jsonl", "qrels.tsv"])
def test_a_missing_file_is_named(beir: WriteTestSet, missing: str) -> None:
    root = beir()
    (root / missing).unlink()
    with pytest.raises(InvalidInput, match=missing):
        load_test_set(root)


def test_a_folder_that_is_not_there_is_no_test_set(folder: Callable[..., Path]) -> None:
    with pytest.raises(InvalidInput, match="no test set folder"):
        load_test_set(folder({}, "none") / "nowhere")

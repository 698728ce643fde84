"""Test sets from data sets of Hugging Face and ir_datasets that are on this machine."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
from datasets import Dataset, DatasetDict

from evals.test_sets.folders import load_test_set
from tests.evals.conftest import ASKED, TEXTS
from workbench.errors import ConfigurationError, InvalidInput

CORPUS = [{"_id": key, "title": title, "text": text} for key, (title, text) in TEXTS.items()]
QUERIES = [{"_id": key, "text": text} for key, (text, _) in ASKED.items()]
QRELS = [
    {"query-id": key, "corpus-id": document, "score": grade}
    for key, (_, grades) in ASKED.items()
    for document, grade in grades.items()
]
GRADES = {key: dict(grades) for key, (_, grades) in ASKED.items()}


def write_lines(path: Path, rows: list[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "".join(json.dumps(row) + "\n" for row in rows)
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())


def save_to_disk(folder: Path) -> None:
    tables = {"corpus": CORPUS, "queries": QUERIES, "qrels": QRELS}
    DatasetDict({name: Dataset.from_list(rows) for name, rows in tables.items()}).save_to_disk(folder)


def write_parquet(folder: Path) -> None:
    """Write the files of a repository of MTEB; its judgments of the train split must not be used."""
    wrong = [{"query-id": "q1", "corpus-id": "bees", "score": 1}]
    tables = {"corpus/test": CORPUS, "queries/test": QUERIES, "data/test": QRELS, "data/train": wrong}
    for name, rows in tables.items():
        path = folder / f"{name}-00000-of-00001.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        Dataset.from_list(rows).to_parquet(path)


def write_beir_repository(folder: Path) -> None:
    write_lines(folder / "corpus.jsonl.gz", CORPUS)
    write_lines(folder / "queries.jsonl.gz", QUERIES)
    lines = ["query-id\tcorpus-id\tscore", *("\t".join(map(str, row.values())) for row in QRELS)]
    (folder / "test.tsv").write_text("\n".join(lines), encoding="utf-8")


def write_compressed_beir(folder: Path) -> None:
    """Write a folder in BEIR format of which some files are compressed."""
    write_lines(folder / "corpus.jsonl.gz", CORPUS)
    write_lines(folder / "queries.jsonl", QUERIES)
    (folder / "qrels").mkdir()
    lines = "\n".join("\t".join(map(str, row.values())) for row in QRELS)
    (folder / "qrels" / "test.tsv.gz").write_bytes(gzip.compress(lines.encode()))


def write_tables_with_compressed_qrels(folder: Path) -> None:
    for name, rows in {"corpus": CORPUS, "queries": QUERIES}.items():
        folder.mkdir(exist_ok=True)
        Dataset.from_list(rows).to_parquet(folder / f"{name}.parquet")
    (folder / "qrels").mkdir()
    lines = "\n".join("\t".join(map(str, row.values())) for row in QRELS)
    (folder / "qrels" / "test.tsv.gz").write_bytes(gzip.compress(lines.encode()))


@pytest.mark.parametrize(
    "write",
    [
        save_to_disk,
        write_parquet,
        write_beir_repository,
        write_compressed_beir,
        write_tables_with_compressed_qrels,
    ],
)
def test_tables_of_hugging_face_are_a_test_set(write: Any, tmp_path: Path) -> None:
    folder = tmp_path / "animals"
    write(folder)
    test_set = load_test_set(folder)
    assert (test_set.name, test_set.qrels, test_set.problems) == ("animals", GRADES, ())
    assert [question.text for question in test_set.questions] == [text for text, _ in ASKED.values()]
    assert test_set.corpus is not None
    documents = {item.key: (item.title, item.load().decode()) for item in test_set.corpus.documents}  # pyright: ignore
    assert documents == TEXTS


def test_rows_with_a_question_and_its_context_are_a_test_set(tmp_path: Path) -> None:
    rows = [
        {
            "question": "Why do cats purr?",
            "context": "Cats purr.",
            "answers": {"text": ["content"], "answer_start": [3]},
        },
        {"question": "Who purrs?", "context": "Cats purr.", "answers": {"text": ["cats"], "answer_start": [0]}},
        {"question": "Who barks?", "context": "Dogs bark.", "answers": {"text": [], "answer_start": []}},
        {"question": "Who sings?", "context": "", "answers": {"text": [], "answer_start": []}},
    ]
    DatasetDict({"validation": Dataset.from_list(rows), "train": Dataset.from_list(rows[:1])}).save_to_disk(tmp_path)
    test_set = load_test_set(tmp_path)
    assert test_set.qrels == {"q1": {"p1": 1}, "q2": {"p1": 1}, "q3": {"p2": 1}}
    assert [question.reference_answer for question in test_set.questions] == ["content", "cats", ""]
    assert test_set.problems == ("Left out because a question or its context is missing: 1 of the rows.",)


def test_a_data_set_in_the_cache_of_hugging_face_has_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache, commit = tmp_path / "datasets--farm--animals", "0" * 40
    save_to_disk(cache / "snapshots" / commit)
    (cache / "refs").mkdir()
    (cache / "refs" / "main").write_text(commit)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    assert load_test_set("hf:farm/animals").qrels == GRADES
    with pytest.raises(
        InvalidInput, match="'farm/plants' is not in the cache of Hugging Face; get it first: hf download"
    ):
        load_test_set("hf:farm/plants")


def test_tables_without_questions_are_one_sentence(tmp_path: Path) -> None:
    write_lines(tmp_path / "train.jsonl", [{"label": 1, "sentence": "Cats purr."}])
    with pytest.raises(InvalidInput, match=r"no question and context in a row \(its columns: 'label', 'sentence'\)"):
        load_test_set(tmp_path)
    (tmp_path / "train.jsonl").rename(tmp_path / "train.parquet")
    with pytest.raises(InvalidInput, match=r"train\.parquet is not readable"):
        load_test_set(tmp_path)


def test_tables_may_be_in_folders_with_their_names_and_have_them_too(tmp_path: Path) -> None:
    tables = {"corpus": {"_id": "d1", "text": "Cats purr."}, "queries": {"_id": "q1", "text": "Who purrs?"}}
    for name, row in (tables | {"qrels": {"query-id": "q1", "corpus-id": "d1", "score": 1}}).items():
        (tmp_path / name).mkdir()
        write_lines(tmp_path / name / f"{name}.jsonl", [row])
    assert load_test_set(tmp_path).qrels == {"q1": {"d1": 1}}


def test_an_error_about_tables_names_their_folder(tmp_path: Path) -> None:
    for name, row in (
        ("corpus", {"_id": "d1", "text": "Cats purr."}),
        ("queries", {"_id": "q1", "text": "Who purrs?"}),
    ):
        (tmp_path / "cats" / name).mkdir(parents=True)
        write_lines(tmp_path / "cats" / name / "test.jsonl", [row])
    (tmp_path / "cats" / "qrels").mkdir()
    write_lines(tmp_path / "cats" / "qrels" / "test.jsonl", [{"query-id": "q9", "corpus-id": "d1", "score": 1}])
    with pytest.raises(InvalidInput, match="No question of 'cats' has a relevant document"):
        load_test_set(tmp_path / "cats")


def read_name(name: str, home: Path) -> subprocess.CompletedProcess[str]:
    """Read a data set in another process, because ir_datasets reads its variable when it is imported."""
    script = f"from evals.test_sets.folders import load_test_set as load; print(load({name!r}).qrels)"
    environment = {**os.environ, "IR_DATASETS_HOME": str(home)}
    return subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=False)


def test_a_name_of_ir_datasets_is_read_if_its_data_are_here(tmp_path: Path) -> None:
    place = tmp_path / "beir" / "scifact" / "source.zip"  # as ir_datasets stores BEIR's archive
    place.parent.mkdir(parents=True)
    with zipfile.ZipFile(place, "w") as archive:
        for name, rows in (("corpus", CORPUS), ("queries", QUERIES)):
            archive.writestr(f"scifact/{name}.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
        lines = ["query-id\tcorpus-id\tscore", *("\t".join(map(str, row.values())) for row in QRELS)]
        archive.writestr("scifact/qrels/test.tsv", "\n".join(lines))
    read = read_name("ir_datasets:beir/scifact/test", tmp_path)
    assert read.stdout.strip() == str(GRADES), read.stderr


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("beir/nfcorpus/test", "The data of 'beir/nfcorpus/test' are not on this machine; get them first: ir_datasets"),
        ("beir/nothing", "ir_datasets has no data set 'beir/nothing'"),
        ("beir/nfcorpus", "'beir/nfcorpus' has no documents, questions or judgments of its own"),
    ],
)
def test_a_name_without_data_downloads_nothing(name: str, message: str, tmp_path: Path) -> None:
    read = read_name(f"ir_datasets:{name}", tmp_path)
    assert message in read.stderr.splitlines()[-1]
    assert not list(tmp_path.rglob("*.zip"))


def test_a_missing_package_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save_to_disk(tmp_path)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ConfigurationError, match="pip install pyarrow"):
        load_test_set(tmp_path)
    monkeypatch.setitem(sys.modules, "ir_datasets", None)
    with pytest.raises(ConfigurationError, match="pip install ir-datasets"):
        load_test_set("ir_datasets:beir/scifact/test")

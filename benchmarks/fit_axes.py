"""Fits a model's 128 token axes to text: ``python -m benchmarks.fit_axes --model multilingual``.

The axes belong to the model, not to a corpus: fitted once on one
corpus, they are as good for others. Indexes store bits on these axes, so after a change everything must be re-embedded.
MiniLM's axes are fitted to the sample, which this command repeats; the multilingual model's are fitted to the sample
and to the Debian project's manuals (GPL) in eleven languages. The manuals are not included in the workbench: put them
as Markdown in a folder with the sample's articles and pass it with ``--folder``.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from workbench.errors import InvalidInput, WorkbenchError
from workbench.models.bert.encoder import AXES_FILE, BertEncoder, TokenAxes
from workbench.models.encoder import TOKEN_AXES, FloatArray
from workbench.models.minilm import MINILM
from workbench.models.multilingual import MULTILINGUAL
from workbench.sample import articles_dir

MODELS = {model.name: model for model in (MINILM, MULTILINGUAL)}
PASSAGE_TOKENS = 200  # as in indexes


def fit_token_axes(tokens: FloatArray) -> TokenAxes:
    """Fit mean and principal axes to token vectors of shape (tokens, dimensions).

    The axes are the eigenvectors of the covariance with the largest eigenvalues (Pearson 1901), strongest first. The
    largest component of each axis is made positive, so that refitting gives the same bits.

    Measured nDCG@10 by MaxSim alone over passages of 200 tokens (100 questions on documentation; 150 claims on 1500
    abstracts): full floats .744 and .865, bits on these axes .735 and .859. Whitening the query's coordinates, rotating
    the axes or keeping the mean changed both by less than .02, in different directions.
    """
    mean = tokens.mean(axis=0, dtype=np.float64)
    covariance = np.cov(tokens.astype(np.float64), rowvar=False)
    _, vectors = np.linalg.eigh(covariance)
    axes = vectors.T[::-1][:TOKEN_AXES]
    strongest = np.abs(axes).argmax(axis=1)
    axes *= np.sign(axes[np.arange(len(axes)), strongest])[:, None]
    return TokenAxes(mean.astype(np.float32), axes.astype(np.float32))


def save_token_axes(fitted: TokenAxes, path: Path = AXES_FILE) -> None:
    """Write the axes as float16, about 100 kB; this rarely changes a bit."""
    halves: dict[str, NDArray[np.float16]] = {"mean": fitted.mean.astype("f2"), "axes": fitted.axes.astype("f2")}
    np.savez_compressed(path, allow_pickle=False, **halves)


def split_passages(encoder: BertEncoder, text: str) -> list[str]:
    """Split a text into pieces of 200 tokens."""
    spans = encoder.token_spans(text)
    cuts = [spans[start : start + PASSAGE_TOKENS] for start in range(0, len(spans), PASSAGE_TOKENS)]
    return [text[cut[0][0] : cut[-1][1]] for cut in cuts]


def fit_axes(encoder: BertEncoder, folder: Path, out: Path) -> int:
    """Fit the axes to the Markdown files in ``folder``, write them to ``out``, and return the number of tokens."""
    files = sorted(folder.rglob("*.md"))
    texts = [passage for file in files for passage in split_passages(encoder, file.read_text(encoding="utf-8"))]
    tokens = [vectors for batch in encoder.batches(texts) for vectors in batch.token_vectors]
    if sum(map(len, tokens)) <= encoder.dimensions:
        raise InvalidInput(f"{folder} has too little Markdown to fit axes; use a folder with more.")
    save_token_axes(fit_token_axes(np.concatenate(tokens)), out)
    return sum(map(len, tokens))


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fit_axes", description="Fit the token axes.")
    parser.add_argument("--model", choices=sorted(MODELS), default="minilm", help="model (default: %(default)s)")
    parser.add_argument(
        "--folder", type=Path, default=articles_dir(), help="folder of Markdown files (default: the sample)"
    )
    parser.add_argument("--out", type=Path, help="file to write (default: the file in the package)")
    arguments = parser.parse_args()
    model = MODELS[arguments.model]
    out: Path = arguments.out or model.axes_file
    try:
        with tempfile.TemporaryDirectory() as models_dir:
            count = fit_axes(BertEncoder(model, Path(models_dir), passages="float"), arguments.folder, out)
    except WorkbenchError as error:
        print(error, file=sys.stderr)
        return 1
    print(f"Fitted the axes to {count} tokens: {out}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

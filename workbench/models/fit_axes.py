"""Fits the 128 axes of MiniLM's token vectors to the sample corpus: ``python -m workbench.models.fit_axes``.

Writes ``token_axes.npz`` beside this file. The axes belong to the model, not to a corpus: fitted once on one corpus
they serve the others as well as their own would. Indexes store bits on these axes, so new ones mean that everything has
to be embedded again.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import numpy as np

from workbench.errors import InvalidInput, WorkbenchError
from workbench.models.minilm import MiniLMEncoder
from workbench.models.token_axes import AXES_FILE, fit_token_axes, save_token_axes

SAMPLE = Path(__file__).resolve().parent.parent / "sample" / "articles"
PASSAGE_TOKENS = 200  # the length of the passages that the bits are kept of


def passages(encoder: MiniLMEncoder, text: str) -> list[str]:
    """Cut a text into pieces of 200 tokens."""
    spans = encoder.token_spans(text)
    cuts = [spans[start : start + PASSAGE_TOKENS] for start in range(0, len(spans), PASSAGE_TOKENS)]
    return [text[cut[0][0] : cut[-1][1]] for cut in cuts]


def fit(folder: Path, models_dir: Path, out: Path) -> int:
    """Fit the axes to the Markdown files below ``folder``, write them to ``out`` and return the tokens used."""
    encoder = MiniLMEncoder(models_dir)
    files = sorted(folder.rglob("*.md"))
    texts = [passage for file in files for passage in passages(encoder, file.read_text(encoding="utf-8"))]
    tokens = [vectors for batch in encoder.batches(texts) for vectors in batch.token_vectors]
    if sum(map(len, tokens)) <= encoder.dimensions:
        raise InvalidInput(f"{folder} holds too little Markdown to fit axes to; name a folder with more.")
    save_token_axes(fit_token_axes(np.concatenate(tokens)), out)
    return sum(map(len, tokens))


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m workbench.models.fit_axes", description="Fit the token axes.")
    parser.add_argument("--folder", type=Path, default=SAMPLE, help="folder of Markdown files (default: the sample)")
    parser.add_argument("--out", type=Path, default=AXES_FILE, help="file to write (default: the package's own)")
    arguments = parser.parse_args()
    try:
        with tempfile.TemporaryDirectory() as models_dir:
            count = fit(arguments.folder, Path(models_dir), arguments.out)
    except WorkbenchError as error:
        print(error, file=sys.stderr)
        return 1
    print(f"Fitted the axes to {count} tokens: {arguments.out}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

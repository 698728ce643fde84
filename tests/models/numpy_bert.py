"""BERT in plain numpy, written from the paper, as a reference for the fused graph; run it to write the file."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file
from scipy.special import erf
from tokenizers import Tokenizer

from workbench.models.minilm import find_minilm_file

REFERENCE = Path(__file__).with_name("reference_embedding.json")
SENTENCES = (
    "This is an example sentence",
    "Passages are cut in the model's own tokens, so that nothing is truncated unseen.",
    "Größe, naïveté and 東京: accents, capitals and other scripts.",
    "def reciprocal_rank(ranks):\n    return 1 / min(ranks) if ranks else 0.0",
)
HEADS, HEAD = 12, 32


class NumpyBert:
    """One text at a time, in float64, without padding or other optimisations."""

    def __init__(self) -> None:
        stored = load_file(find_minilm_file("model.safetensors"))
        self.weights = {name: value.astype(np.float64) for name, value in stored.items()}
        self.tokenizer = Tokenizer.from_file(str(find_minilm_file("tokenizer.json")))
        self.tokenizer.no_padding()
        self.tokenizer.enable_truncation(256)
        self.layers = 6

    def ids(self, text: str) -> list[int]:
        """Return the tokens, including special ones."""
        return self.tokenizer.encode(text).ids

    def hidden(self, text: str) -> np.ndarray:
        """Return the last layer's vectors of all tokens, including special ones."""
        ids = self.ids(text)
        at = "embeddings."
        x = self.weights[f"{at}word_embeddings.weight"][ids] + self.weights[f"{at}token_type_embeddings.weight"][0]
        x = self._normalise(f"{at}LayerNorm", x + self.weights[f"{at}position_embeddings.weight"][: len(ids)])
        for layer in range(self.layers):
            at = f"encoder.layer.{layer}."
            x = self._normalise(f"{at}attention.output.LayerNorm", x + self._attention(f"{at}attention.", x))
            inner = self._dense(f"{at}intermediate.dense", x)
            gelu = inner * 0.5 * (1 + erf(inner / np.sqrt(2)))
            x = self._normalise(f"{at}output.LayerNorm", x + self._dense(f"{at}output.dense", gelu))
        return x

    def embedding(self, text: str) -> np.ndarray:
        """Return the mean of the tokens, scaled to length 1."""
        mean = self.hidden(text).mean(axis=0)
        return mean / np.linalg.norm(mean)

    def _attention(self, at: str, x: np.ndarray) -> np.ndarray:
        query, key, value = (
            self._dense(f"{at}self.{part}", x).reshape(-1, HEADS, HEAD).swapaxes(0, 1)
            for part in ("query", "key", "value")
        )
        scores = query @ key.swapaxes(1, 2) / np.sqrt(HEAD)
        shares = np.exp(scores - scores.max(axis=2, keepdims=True))
        context = (shares / shares.sum(axis=2, keepdims=True)) @ value
        return self._dense(f"{at}output.dense", context.swapaxes(0, 1).reshape(len(x), -1))

    def _dense(self, name: str, x: np.ndarray) -> np.ndarray:
        return x @ self.weights[f"{name}.weight"].T + self.weights[f"{name}.bias"]

    def _normalise(self, name: str, x: np.ndarray) -> np.ndarray:
        centred = x - x.mean(axis=1, keepdims=True)
        scaled = centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + 1e-12)
        return scaled * self.weights[f"{name}.weight"] + self.weights[f"{name}.bias"]


if __name__ == "__main__":
    bert = NumpyBert()
    rows = [{"text": text, "vector": [round(float(x), 7) for x in bert.embedding(text)]} for text in SENTENCES]
    REFERENCE.write_text(json.dumps(rows, ensure_ascii=False) + "\n", encoding="utf-8")

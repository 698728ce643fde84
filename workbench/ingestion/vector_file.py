"""Vectors on their way from the model to the database: few stay in memory, those of a book in a file."""

from __future__ import annotations

import tempfile
import weakref
from array import array

import numpy as np
from numpy.typing import NDArray

from workbench.sizes import MB

IN_MEMORY = 2 * MB  # bytes of vectors and token bits; a batch of small documents takes a third of it
NO_BITS = -1  # in the place of their number of bytes


class VectorFile:
    """Vectors and token bits by their row, in a nameless temporary file that ends with its last user."""

    def __init__(self) -> None:
        file = tempfile.SpooledTemporaryFile(max_size=IN_MEMORY)  # noqa: SIM115 - closed when nothing refers to it
        self._file = file
        self._places = array("Q", (0,))
        self._bits = array("l")
        weakref.finalize(self, file.close)

    def __len__(self) -> int:
        return len(self._bits)

    def append(self, vector: NDArray[np.float32], token_bits: bytes | None) -> int:
        """Keep a vector and its tokens; returns its row."""
        data = vector.tobytes()
        self._file.seek(self._places[-1])
        self._file.write(data)
        self._file.write(token_bits or b"")
        self._places.append(self._places[-1] + len(data) + len(token_bits or b""))
        self._bits.append(NO_BITS if token_bits is None else len(token_bits))
        return len(self._bits) - 1

    def read(self, row: int) -> tuple[NDArray[np.float32], bytes | None]:
        """Return the vector and the token bits of a row."""
        first, after, bits = self._places[row], self._places[row + 1], self._bits[row]
        self._file.seek(first)
        data = self._file.read(after - first)
        if bits == NO_BITS:
            return np.frombuffer(data, dtype=np.float32), None
        return np.frombuffer(data, dtype=np.float32, count=(len(data) - bits) // 4), data[len(data) - bits :]

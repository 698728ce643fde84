"""The explanation of a rank: legs, words, and the steps of the strategy."""

from __future__ import annotations

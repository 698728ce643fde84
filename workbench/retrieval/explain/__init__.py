"""The explanation of a rank: legs, words, and the course through the strategy."""

from __future__ import annotations

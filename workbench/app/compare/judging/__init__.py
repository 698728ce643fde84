"""Judging hits on the board, into a test set."""

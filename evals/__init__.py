"""Evaluation: test sets, metrics, runs, and what their differences are worth."""

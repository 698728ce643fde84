"""Metrics, and the worth of a difference between two runs."""

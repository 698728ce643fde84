"""Metrics, and significance of differences between runs."""

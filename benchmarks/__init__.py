"""Benchmarks of speed, size and quality against bare baselines; not part of the product."""

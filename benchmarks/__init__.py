"""Measurements of speed, size and quality next to bare baselines; no part of the product."""

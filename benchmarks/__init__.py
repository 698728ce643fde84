"""Measurements of speed, size and quality beside bare baselines; no part of the product."""

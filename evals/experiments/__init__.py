"""Experiments: runs of strategies over a test set, stored and compared; tuning of parameters."""

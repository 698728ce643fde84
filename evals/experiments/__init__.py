"""Experiments: runs of strategies over a test set, kept, compared and searched for parameters."""

"""The Evaluate page: test sets, experiments, and the search for parameters."""

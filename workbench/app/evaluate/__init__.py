"""The Evaluate page: test sets, experiments, tuning and learning."""

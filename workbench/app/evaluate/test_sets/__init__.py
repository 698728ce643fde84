"""The test sets of the Evaluate page: listed, edited, added to."""

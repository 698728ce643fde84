"""Training of the strategy ``learned`` on judged questions."""

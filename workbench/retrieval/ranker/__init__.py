"""The learned ranker: its features, how they make a score, and the weights that come with it."""

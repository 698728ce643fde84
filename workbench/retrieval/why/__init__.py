"""The explanation of a rank: legs, words, and the course through the strategy."""

"""The answer above the board, written as it comes."""

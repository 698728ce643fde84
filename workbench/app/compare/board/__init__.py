"""The board of a comparison: its columns, their hits, and how far they agree."""

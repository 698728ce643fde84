"""The retrievers, which find candidates."""

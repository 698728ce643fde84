"""The stages, which order, widen or drop candidates."""

"""Strategies: retrievers and stages over the legs, run for one request."""

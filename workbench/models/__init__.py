"""Encoders, rerankers and the LLM."""

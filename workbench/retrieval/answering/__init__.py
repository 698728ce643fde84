"""Answers from passages, with citation marks."""

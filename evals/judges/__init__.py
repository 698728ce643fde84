"""Judges: LLMs with our prompts or those of ragas, within limits; missing scores have a reason."""

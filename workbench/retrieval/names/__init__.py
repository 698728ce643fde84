"""The names of documents: what documents say of themselves, and which of it a question says."""

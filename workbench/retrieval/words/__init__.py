"""The question's words: terms, guesses, names of documents, and marks."""

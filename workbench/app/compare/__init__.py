"""The Compare page: one question, several strategies side by side."""

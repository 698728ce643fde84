"""Documents' Markdown as elements of a closed list, each stretch of text with its place in the document."""

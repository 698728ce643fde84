"""The way of a document into an index: read, cut, embedded, written."""

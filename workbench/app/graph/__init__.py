"""The Graph page: citations between documents, and the archive search."""

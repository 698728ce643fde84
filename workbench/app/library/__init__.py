"""The Library page: sources, documents, projects and uploads."""

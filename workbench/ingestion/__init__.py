"""Ingestion: reading, chunking, embedding and storing documents."""

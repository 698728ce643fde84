"""Readers by file suffix, and file discovery."""

"""Test sets: read, stored, made, imported and exported."""

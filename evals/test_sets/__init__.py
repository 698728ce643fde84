"""Test sets: reading, storing, generating, importing and exporting."""

"""Websites: fetched politely and guarded, read, and stored as documents."""

"""One module a page; each has ``page()``, and one line in navigation.py."""

"""The state of a page: its URL, and values shared by all visitors."""

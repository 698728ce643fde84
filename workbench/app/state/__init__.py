"""The state of a page: its address, and the values that all visitors share."""

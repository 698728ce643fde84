"""The Connect page: agents and their tools."""

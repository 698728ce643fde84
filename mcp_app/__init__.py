"""The MCP server: the tools of agents, over stdio and HTTP, and the plain HTTP routes."""

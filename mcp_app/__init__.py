"""The MCP server: tools for agents, over stdio and HTTP, and the plain HTTP routes."""

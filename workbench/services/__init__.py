"""The operations of the workbench, called by command line, app, MCP server and notebooks."""

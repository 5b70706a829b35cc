"""The service on this machine: HTTP, and MCP beside it."""

"""Reads the MCP servers that other clients on this machine are configured with."""

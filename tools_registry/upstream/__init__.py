"""Calls the tools of upstream MCP servers."""
